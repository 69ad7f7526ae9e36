package command_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// fleet are copyists that share the work of a gallery, as a Deployment has them.
type fleet struct {
	*gallery
	replicas []*operatortest.Replica
}

// grow starts copyists until there are so many, and waits until they share the work.
func (f *fleet) grow(n int) {
	f.t.Helper()
	for len(f.replicas) < n {
		f.replicas = append(f.replicas, f.start("--sharding"))
	}
	f.share(fmt.Sprintf("%d share the work", n))
}

// share waits until the copyists share the work, and tells how long a change has waited for its copy at most.
func (f *fleet) share(what string) {
	f.t.Helper()
	f.sharedBy(what, f.replicas...)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.t.Logf("%s; the longest wait for a copy was %s", what, f.longest.Round(time.Millisecond))
	f.longest = 0
}

// without takes copyists out of the fleet, which does not wait for them any more.
func (f *fleet) without(gone ...*operatortest.Replica) {
	f.replicas = slices.DeleteFunc(f.replicas, func(r *operatortest.Replica) bool { return slices.Contains(gone, r) })
}

// leads waits until it is known which copyist leads: it holds slot 0.
func (f *fleet) leads() *operatortest.Replica {
	f.t.Helper()
	var leader *operatortest.Replica
	operatortest.Eventually(f.t, "one leads", func() error {
		lease := &coordinationv1.Lease{}
		if err := f.client.Get(f.t.Context(), client.ObjectKey{Namespace: f.name, Name: "copyist-slot-0"}, lease); err != nil {
			return err
		}
		// The identities are the name of the host and a random part: a replica has renewed the Lease that says so.
		members := &coordinationv1.LeaseList{}
		if err := f.client.List(f.t.Context(), members, client.InNamespace(f.name)); err != nil {
			return err
		}
		for _, member := range members.Items {
			if !strings.HasPrefix(member.Name, "copyist-shards-") || *member.Spec.HolderIdentity != *lease.Spec.HolderIdentity {
				continue
			}
			for _, r := range f.replicas {
				if slices.ContainsFunc(r.Requests(), func(e operatortest.Exchange) bool {
					return operatortest.Leases(e.Request) && e.Name == member.Name && e.Changed()
				}) {
					leader = r
					return nil
				}
			}
		}
		return fmt.Errorf("slot 0 is held by %s", *lease.Spec.HolderIdentity)
	})
	return leader
}

// follower returns a copyist that does not lead.
func (f *fleet) follower() *operatortest.Replica {
	f.t.Helper()
	leader := f.leads()
	return f.replicas[slices.IndexFunc(f.replicas, func(r *operatortest.Replica) bool { return r != leader })]
}

// die kills copyists.
func (f *fleet) die(what string, victims ...*operatortest.Replica) {
	f.t.Helper()
	for _, r := range victims {
		f.disturb(r)
		r.Signal(syscall.SIGKILL)
	}
	f.without(victims...)
	f.share("the others have taken over from " + what)
}

// moved returns how often the copies that moved most went from one copyist to another since the marks.
func (f *fleet) moved(since map[client.ObjectKey]int) (most int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, strokes := range f.history {
		moves := 0
		for i := max(1, since[key]); i < len(strokes); i++ {
			if strokes[i].by != strokes[i-1].by {
				moves++
			}
		}
		most = max(most, moves)
	}
	return most
}

// settled waits until the slots have stayed as they are for as long as replicas take to say what they have, and nothing
// moves: what moves then, moves for what happens then.
func (f *fleet) settled() {
	f.t.Helper()
	last := ""
	since := time.Now()
	operatortest.Eventually(f.t, "nothing moves any more", func() error {
		list := &coordinationv1.LeaseList{}
		if err := f.client.List(f.t.Context(), list, client.InNamespace(f.name), client.HasLabels{"operatorkit.io/slot"}); err != nil {
			return err
		}
		text, moving := "", 0
		for _, lease := range list.Items {
			text += lease.ResourceVersion + " "
			if lease.Annotations["operatorkit.io/slot-next"] != "" {
				moving++
			}
		}
		if text != last {
			last, since = text, time.Now()
		}
		if stays := time.Since(since); moving > 0 || stays < 3*time.Second {
			return fmt.Errorf("%d slots move, and they are like this since %s", moving, stays)
		}
		return nil
	})
}

// TestTwoThousandObjectsThatChangeAllTheTimeAreSharedWhateverHappens has three copyists, of whom each that is lost is replaced.
func TestTwoThousandObjectsThatChangeAllTheTimeAreSharedWhateverHappens(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it takes minutes; TestReplicasThatShareWorkAreKilledAndPaused… is its small sister")
	}
	f := &fleet{gallery: newGallery(t, 200, 10, operatortest.Dedicated())}
	stop := f.change()
	f.grow(3)

	f.die("one that was killed", f.follower())
	f.grow(3)

	cut := f.follower()
	f.disturb(cut)
	cut.Faults().Cut()
	f.without(cut)
	f.share("two have taken over from one that is cut off")
	before := len(cut.Requests())
	cut.Faults().Restore()
	if code := cut.Wait(); code != command.ExitFailure {
		t.Errorf("the one that was cut off ended with %d, want %d", code, command.ExitFailure)
	}
	for _, e := range cut.Requests()[before:] {
		if e.Changed() && !operatortest.Leases(e.Request) && !operatortest.Events(e.Request) {
			t.Errorf("%s of the one that was cut off was carried out afterwards", e.Request)
		}
	}
	f.grow(3)

	paused := f.follower()
	f.disturb(paused)
	f.without(paused)
	since := f.mark()
	pause := paused.PausedUntil("two have taken over from one that is paused", func() error { return f.worked(since, f.replicas...) }, time.Minute)
	for _, e := range pause.Changed {
		t.Errorf("%s of the one that was paused was carried out after the pause", e.Request)
	}
	if code := paused.Wait(); code != command.ExitFailure {
		t.Errorf("the one that was paused ended with %d, want %d", code, command.ExitFailure)
	}
	f.grow(3)

	f.die("the leader, which was killed", f.leads())
	f.grow(3)
	f.die("two that were killed at once", f.leads(), f.follower())
	f.grow(3)

	// Copyists that have not heard of the API server for too long end, and are started again.
	stop()
	if err := f.instance.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop = f.change()
	operatortest.Eventually(t, "the work is shared after the API server was restarted", func() error {
		for _, r := range slices.Clone(f.replicas) {
			if r.Ended() {
				t.Logf("process %d has ended meanwhile", r.Pid())
				f.disturb(r)
				f.without(r)
			}
		}
		for len(f.replicas) < 3 {
			f.replicas = append(f.replicas, f.start("--sharding"))
			since = f.mark()
		}
		return f.worked(since, f.replicas...)
	})
	f.ends(stop)
}

// TestARollingUpdateAndOtherNumbersOfReplicasMoveEachObjectTwiceAtMost goes from one copyist to three, to three of another version, to ten, and back
// to three.
func TestARollingUpdateAndOtherNumbersOfReplicasMoveEachObjectTwiceAtMost(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it has up to ten processes; package slots has the distribution")
	}
	f := &fleet{gallery: newGallery(t, 100, 2)}
	f.version = "1.0.0"
	stop := f.change()
	f.grow(1)
	step := func(what string, do func()) {
		t.Helper()
		f.settled()
		since := f.mark()
		do()
		most := f.moved(since)
		t.Logf("%s: no object has moved more than %d times", what, most)
		if most > 2 {
			t.Errorf("%s: an object has moved %d times", what, most)
		}
	}
	step("from one to three", func() { f.grow(3) })
	step("a rolling update", func() {
		f.version = "2.0.0"
		for _, old := range slices.Clone(f.replicas) {
			created := f.start("--sharding")
			// It gets what old ones leave, and nothing before.
			operatortest.Eventually(t, "a new one is there", func() bool {
				return slices.ContainsFunc(created.Requests(), func(e operatortest.Exchange) bool {
					return operatortest.Leases(e.Request) && strings.HasPrefix(e.Name, "copyist-shards-") && e.Changed()
				})
			})
			f.leaves(old)
			f.without(old)
			f.replicas = append(f.replicas, created)
		}
		f.share("three new ones share the work")
	})
	step("from three to ten", func() { f.grow(10) })
	step("from ten to three", func() {
		leaving := slices.Clone(f.replicas[3:])
		f.leaves(leaving...)
		f.without(leaving...)
		f.share("three share the work of ten")
	})
	f.ends(stop)
}
