package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/operator/internal/slots"
)

// ShardingConfig lets all replicas of an operator work, each on a part of the primary objects of every framework.
//
// An object is in one of 256 slots by its namespace, or by its name if it has none: all objects of a namespace are worked
// on by one replica, and a big namespace can't be split. Each slot has a Lease that says which replica holds it. Slots
// move when replicas come and go, so that each holds about as many slots with objects as the others. A new holder
// begins after the former one has finished its last reconciliation there, or can't write any more (Fence). No replica
// leads: each computes who is to hold what, and claims its own part. Runnables run on the holder of slot 0.
//
// A replica holds the objects of its own namespaces only, of the primary sources and of those watches that stay in their
// namespace (framework.Watch.SameNamespace, which Dependencies.Own says of its own): it drops the others before they
// are stored. Everything else is held in full by every replica: sources of other watches, sources of informer.NewReader,
// those with HoldAll and Config.Sources, objects without a namespace, what these own, and what is not in Kubernetes.
//
// It takes a leader election on Kubernetes, whose times it uses. The Lease of that, under its name, keeps away replicas
// without sharding: all replicas with it hold it together, and it expires when the last one has gone. Further Leases:
//
//	website-operator              all replicas that share the work
//	website-operator-shards-3f0c…  a replica, for each of them, which renews it
//	website-operator-slot-17      a slot, for each of the 256, written when it moves
//
// A replica works in what another one is to get until that one has listed it, and the sources of all its frameworks are
// synced, and so does one that is told to end, for LeaseDuration at most. Without finalizers, a deletion that nobody
// sees is missed: while the operator is down, and while nobody has taken over from a replica that was killed or cut off.
// A deletion is processed before its slot moves, unless it fails for longer than LeaseDuration, and may be processed by
// the next holder once more.
type ShardingConfig struct {
	// Enabled turns it on. LeaderElection must be enabled too, without a Lock, and with an Identity that no other
	// process ever had, as the default one is. Default: off, one replica works.
	Enabled bool
	// Version is that of the program. While replicas of several versions run, as in a rolling update, only those of
	// the newest one get anything. Default: empty, all are of the same.
	Version string
}

// The endings of the names of Leases, and who holds that of all replicas together. The identity is another one than that
// of replicas which share by other Leases than these: the two don't work at the same time.
const (
	shardsEnding   = "-shards-"
	slotEnding     = "-slot-"
	sharedIdentity = "replicas that share the work by slots"
)

// maxLeaseName is how long the name of a Lease may be with sharding: that of a replica is longer by the ending and 16
// characters.
const maxLeaseName = 253 - len(shardsEnding) - 16

func (c *ShardingConfig) validate(wrong *faults.List, election LeaderElectionConfig) {
	if !c.Enabled {
		return
	}
	wrong.If(!election.onKubernetes(), "Sharding must not be enabled without LeaderElection on Kubernetes, that is Enabled and without a Lock")
	wrong.If(len(election.Name) > maxLeaseName, "LeaderElection.Name must not be longer than %d with Sharding", maxLeaseName)
}

// onceSlot is the slot whose holder runs what must run once.
const onceSlot = 0

// sharing is the part of an operator that shares the objects of its frameworks with other replicas.
type sharing struct {
	frameworks []*framework.Framework
	version    string
	logger     micrologger.Logger
	// fence is that of the operator: it is open while this replica renews its Lease, and that of all replicas is held.
	fence *Fence
	// together is the election that all replicas with sharding have won.
	together *election
	member   *member
	holder   *slots.Holder
	division *division
	page     func() location
	// able is set once the sources of all frameworks are synced.
	able atomic.Bool
	// patience is how long this replica waits, when it is told to end, until others have what it had.
	patience time.Duration
	// listed has a value when the sources have listed what they hold now.
	listed chan struct{}

	// following is held while the frameworks follow the ring. closed is set when nothing is begun any more, and owns has
	// a value when that may have changed.
	following sync.Mutex
	closed    bool
	owns      chan struct{}

	counts shardCounts
	// used are the slots in which objects were found when there were that many objects and these slots. They belong to
	// the goroutine of the member.
	used    slots.Set
	objects int
	in      slots.Set
	// passing is when this replica first tried to pass a slot to another one. It belongs to that
	// goroutine too.
	passing [slots.Count]time.Time
}

// newSharing makes the frameworks share their objects. config has a leader election with a fence.
func newSharing(config Config, httpClient *http.Client, page func() location) (*sharing, error) {
	election := config.LeaderElection
	s := &sharing{
		frameworks: config.Frameworks, version: config.Sharding.Version, fence: election.Fence, logger: config.Logger.With("operator", config.Name),
		page: page, patience: election.LeaseDuration, listed: make(chan struct{}, 1), owns: make(chan struct{}, 1),
	}
	s.division = newDivision(config, func() { notify(s.listed) })
	together := election
	together.Fence, together.Identity = NewFence(), sharedIdentity
	together.Fence.bind(together.validity(), true)
	lock, err := newLeaseLock(together, config.RESTConfig, httpClient)
	if err != nil {
		return nil, err
	}
	together.Lock = commonLock{lock}
	s.together = newElection(together, config.Logger)
	s.together.keeps = true
	s.fence.require(together.Fence)
	leases, err := newLeases(config.RESTConfig, httpClient)
	if err != nil {
		return nil, err
	}
	s.holder = slots.NewHolder(func() { s.member.wake() })
	s.member = newMember(memberConfig{
		leases: leases.Leases(election.Namespace), ring: election.Name, name: election.Identity,
		duration: election.LeaseDuration, retry: election.RetryPeriod, timeout: s.together.lock.timeout,
		state: s.state, follow: s.follow, renewed: s.fence.renewed, works: func() bool { return s.fence.Check() == nil },
		holder: s.holder, pass: s.pass, logger: s.logger,
	})
	for _, f := range config.Frameworks {
		if err := f.Share(shard{s.holder}); err != nil {
			return nil, fmt.Errorf("operator.Config: Sharding: %w", err)
		}
	}
	return s, nil
}

// notify has a channel have a value.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// leads reports whether this replica runs what must run once.
func (s *sharing) leads() bool { return s.holder.Part().Owned.Has(onceSlot) && s.fence.Check() == nil }

// work is one of the replicas until ctx ends or something fails, and then until others have what it had. It runs the
// frameworks of the operator, and the runnables while it holds their slot.
func (s *sharing) work(ctx context.Context, o *Operator) error {
	staying, end := context.WithCancel(ctx)
	defer end()
	working, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	leaving, leave := context.WithCancel(withoutFence(context.WithoutCancel(ctx)))
	defer leave()
	var membership, once error
	var beside sync.WaitGroup
	beside.Go(func() {
		err := s.member.run(withoutFence(staying), s.patience)
		if err == nil {
			stop(context.Cause(ctx))
			s.close()
			err = s.member.leave(leaving)
		}
		if err != nil {
			s.fence.lose()
			s.close()
			membership = err
			stop(errors.Join(err, framework.ErrStopNow))
			return
		}
		s.fence.close()
	})
	beside.Go(func() {
		if once = s.runOnce(working, o, end); once != nil {
			s.fence.lose()
			leave()
			stop(errors.Join(once, framework.ErrStopNow))
		}
	})
	beside.Go(func() { s.division.resolve(working) })
	beside.Go(func() {
		for {
			select {
			case <-working.Done():
				return
			case <-s.listed:
				s.member.wake()
			}
		}
	})
	beside.Go(func() {
		for _, f := range s.frameworks {
			if !synced(working, f) {
				return
			}
		}
		s.able.Store(true)
		s.member.wake()
	})
	err := o.startFrameworks(working, end).wait()
	end()
	if errors.Is(err, framework.ErrStillRunning) {
		// What works on must not write, and keeps its objects until the Lease of this replica has expired.
		s.fence.lose()
		leave()
	}
	beside.Wait()
	return errors.Join(membership, once, err)
}

// runOnce runs the runnables while this replica owns their slot, which is busy then: the next holder does not begin
// before they have ended. It returns when ctx ends, or with an error if they don't end.
func (s *sharing) runOnce(ctx context.Context, o *Operator, failed func()) error {
	for len(o.config.Runnables) > 0 {
		if s.holder.Begin(onceSlot, false) {
			running, cancel := context.WithCancel(ctx)
			runnables := o.startRunnables(running, failed)
			for ctx.Err() == nil && s.holder.Part().Owned.Has(onceSlot) {
				s.waitForSlots(ctx)
			}
			cancel()
			err := runnables.waitFor(o.config.ShutdownTimeout)
			if errors.Is(err, framework.ErrStillRunning) {
				return err
			}
			s.holder.End(onceSlot)
			if err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		s.waitForSlots(ctx)
	}
	return nil
}

// waitForSlots waits until other slots may be owned than before, or ctx ends.
func (s *sharing) waitForSlots(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-s.owns:
	}
}

// close has nothing be begun any more.
func (s *sharing) close() {
	s.following.Lock()
	s.closed = true
	s.following.Unlock()
	s.follow()
}

// follow has the sources and the frameworks follow the ring, as far as the sources have listed what it gives to this
// replica, and returns the ring and what is listed. What is owned never follows an older ring than before.
func (s *sharing) follow() (ring *slots.Ring, listed slots.Set) {
	s.following.Lock()
	defer s.following.Unlock()
	ring, _ = s.member.view()
	s.counts.follow(ring.Complete(), time.Now())
	before, now := s.holder.Part(), slots.Part{Releasing: ring.Releasing(s.This()), Held: ring.Held(s.This())}
	// Deletions that come after a list of the sources must be remembered.
	s.holder.Have(slots.Part{Owned: before.Owned, Releasing: before.Releasing, Held: now.Held})
	listed = s.division.hold(now.Held)
	now.Owned = ring.Owned(s.This()).And(listed)
	if s.closed {
		now = slots.Part{}
	}
	if before == now {
		return ring, listed
	}
	s.holder.Have(now)
	for i := range s.passing {
		if !now.Releasing.Has(i) {
			s.passing[i] = time.Time{}
		}
	}
	gained, lost := within(now.Owned.Without(before.Owned)), within(now.Releasing.Without(before.Releasing))
	for _, f := range s.frameworks {
		f.Reshare(gained, lost)
	}
	if before.Owned != now.Owned {
		s.counts.note(before.Owned, now.Owned)
		s.logger.Log("level", "info", "message", "this replica has another part of the objects", "slots", now.Owned.Len())
		notify(s.owns)
	}
	return ring, listed
}

// within reports whether a key is in one of the slots. It is nil if there are none.
func within(in slots.Set) func(key informer.Key) bool {
	if in == (slots.Set{}) {
		return nil
	}
	return func(key informer.Key) bool { return in.Has(slotOf(key)) }
}

// pass reports whether this replica can pass a slot to another one: no work is under way, and deletions
// of objects that are gone are processed, or fail for longer than its patience.
func (s *sharing) pass(slot int) bool {
	if s.passing[slot].IsZero() {
		s.passing[slot] = time.Now()
	}
	in := func(key informer.Key) bool { return slotOf(key) == slot }
	unprocessed := slices.ContainsFunc(s.frameworks, func(f *framework.Framework) bool { return f.HasUnprocessed(in) })
	if unprocessed && time.Since(s.passing[slot]) < s.patience {
		return false
	}
	return s.holder.Pass(slot)
}

// state is what this replica says of itself. Objects are counted anew if there are more or less than before, or in
// other slots.
func (s *sharing) state() statement {
	listed, objects := s.division.ready(), 0
	for _, source := range primariesOf(s.frameworks) {
		objects += source.Status().Objects
	}
	if listed != s.in || objects != s.objects {
		s.in, s.objects, s.used = listed, objects, slots.Set{}
		own := 0
		for _, f := range s.frameworks {
			for _, key := range f.Keys() {
				if slot := slotOf(key); listed.Has(slot) {
					s.used.Add(slot)
					own++
				}
			}
		}
		s.counts.objects.Store(int64(own))
	}
	return statement{
		Version: s.version, Able: s.able.Load(), Used: s.used, Objects: int(s.counts.objects.Load()), Page: s.page(),
	}
}

// shard is what this replica may work on. It implements framework.Shard.
type shard struct{ holder *slots.Holder }

// Owns implements framework.Shard.
func (s shard) Owns(key informer.Key) bool { return s.holder.Part().Owned.Has(slotOf(key)) }

// Holds implements framework.Shard.
func (s shard) Holds(key informer.Key) bool { return s.holder.Part().Held.Has(slotOf(key)) }

// Begin implements framework.Shard.
func (s shard) Begin(key informer.Key, gone bool) bool { return s.holder.Begin(slotOf(key), gone) }

// End implements framework.Shard.
func (s shard) End(key informer.Key) { s.holder.End(slotOf(key)) }
