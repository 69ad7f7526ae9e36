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
	"github.com/operatorkit/operatorkit/internal/access"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/operator/internal/slots"
)

// ShardingConfig shares the work among all replicas of an operator. Each replica reconciles a part
// of the primary objects of every framework.
//
// An object belongs to one of 256 slots, by its namespace, or by its name if it has no namespace.
// All objects of a namespace are reconciled by one replica, so a big namespace can't be split. Each
// slot has a Lease that records which replica holds it. Slots move when replicas come and go, so
// that each replica holds about the same number of slots with objects. A new holder starts work in
// a slot only after the former holder has finished its last reconciliation there, or can no longer
// write (Fence). No replica leads: each computes the distribution and claims its own part.
// Runnables run on the holder of slot 0.
//
// A replica holds only the objects of its own namespaces, for primary sources and for watches that
// stay in their namespace (framework.Watch.SameNamespace, which Dependencies.Own sets). It drops
// other objects before they are stored. Every replica holds everything else in full: sources of
// other watches, sources of informer.NewReader, sources with HoldAll, Config.Sources, objects
// without a namespace and the objects that they own, and objects outside Kubernetes.
//
// Sharding requires a leader election on Kubernetes and uses its times. All replicas with sharding
// hold the Lease of the election together, which keeps replicas without sharding from working. That
// Lease expires after the last replica has gone. The Leases are:
//
//	website-operator              all replicas that share the work
//	website-operator-shards-3f0c…  a replica, for each of them, which renews it
//	website-operator-slot-17      a slot, for each of the 256, written when it moves
//
// A replica works in a slot that is to move until the next holder has listed its objects, and the
// sources of all frameworks of the next holder are synced. A replica that shuts down does the same,
// for LeaseDuration at most. Without finalizers, a deletion that no replica sees is missed: while
// the operator is down, or after a replica was killed or cut off and before its slots have a new
// holder. A deletion is processed before its slot moves, unless it fails for longer than
// LeaseDuration. The next holder may process the deletion once more.
type ShardingConfig struct {
	// Enabled turns sharding on. LeaderElection must be enabled too, without a Lock, and with an
	// Identity that no other process ever had, as the default one is. Default: false, one replica
	// works.
	Enabled bool
	// Version is the version of the program. While replicas of several versions run, as in a
	// rolling update, only replicas of the newest version get anything. Default: empty, all
	// replicas have the same version.
	Version string
}

// The endings of the names of Leases, and the holder of the Lease that all replicas hold together.
// A way of sharing by other Leases must use another identity, so that the two kinds of replicas
// don't work at the same time.
const (
	shardsEnding   = "-shards-"
	slotEnding     = "-slot-"
	sharedIdentity = "replicas that share the work by slots"
)

// maxLeaseName is the maximum length of LeaderElection.Name with sharding: the name of the Lease of
// a replica is longer by the ending and 16 characters.
const maxLeaseName = 253 - len(shardsEnding) - 16

func (c *ShardingConfig) validate(wrong *faults.List, election LeaderElectionConfig) {
	if !c.Enabled {
		return
	}
	wrong.If(!election.onKubernetes(), "Sharding must not be enabled without LeaderElection on Kubernetes, that is Enabled and without a Lock")
	wrong.If(len(election.Name) > maxLeaseName, "LeaderElection.Name must not be longer than %d with Sharding", maxLeaseName)
}

// onceSlot is the slot for everything that must run only once. Its holder runs it.
const onceSlot = 0

// sharing is the part of an operator that shares the objects of its frameworks with other replicas.
type sharing struct {
	frameworks []*framework.Framework
	version    string
	logger     micrologger.Logger
	// fence is the fence of the operator. It is open while this replica renews its Lease and the
	// Lease of all replicas is held.
	fence *Fence
	// together is the election that all replicas with sharding win together.
	together *election
	member   *member
	holder   *slots.Holder
	division *division
	page     func() location
	// able is set once the sources of all frameworks are synced.
	able atomic.Bool
	// patience is the maximum time that this replica waits at shutdown for others to take its
	// slots.
	patience time.Duration
	// following is held while the frameworks are updated to the ring. closed is set when no more
	// work may start. owns has a value when the owned slots may have changed.
	following sync.Mutex
	closed    bool
	owns      chan struct{}

	counts shardCounts
	// used are the slots in which objects were found when objects and in had these values. All
	// three belong to the goroutine of the member.
	used    slots.Set
	objects int
	in      slots.Set
	// passing is when this replica first tried to pass a slot to another one. It belongs to the
	// goroutine of the member.
	passing [slots.Count]time.Time
}

// newSharing makes the frameworks share their objects. config has a leader election with a fence.
func newSharing(config Config, httpClient *http.Client, page func() location) (*sharing, error) {
	election := config.LeaderElection
	s := &sharing{
		frameworks: config.Frameworks, version: config.Sharding.Version, fence: election.Fence, logger: config.Logger.With("operator", config.Name),
		page: page, patience: election.LeaseDuration, owns: make(chan struct{}, 1),
	}
	s.division = newDivision(config, func() { s.member.wake() })
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
		if err := access.EngineOf(f).Share(shard{s.holder}); err != nil {
			return nil, fmt.Errorf("operator.Config: Sharding: %w", err)
		}
	}
	return s, nil
}

// notify puts a value into a channel, unless the channel is full.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// leads reports whether this replica runs what must run only once.
func (s *sharing) leads() bool { return s.holder.Part().Owned.Has(onceSlot) && s.fence.Check() == nil }

// work takes part in the sharing until ctx ends or something fails, and then until other replicas
// have the slots of this replica. It runs the frameworks of the operator, and the runnables while
// this replica owns onceSlot.
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
		// Work that is still running must not write. Its objects stay with this replica until the
		// Lease expires.
		s.fence.lose()
		leave()
	}
	beside.Wait()
	return errors.Join(membership, once, err)
}

// runOnce runs the runnables while this replica owns their slot. The slot is busy meanwhile, so the
// next holder does not start before the runnables have ended. runOnce returns when ctx ends, or
// with an error if the runnables fail or don't end.
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

// waitForSlots waits until the owned slots may have changed, or ctx ends.
func (s *sharing) waitForSlots(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-s.owns:
	}
}

// close prevents new work from starting.
func (s *sharing) close() {
	s.following.Lock()
	s.closed = true
	s.following.Unlock()
	s.follow()
}

// follow updates the sources and the frameworks to the ring, as far as the sources have listed the
// slots that the ring gives to this replica. It returns the ring and the listed slots. The owned
// slots never follow an older ring than before.
func (s *sharing) follow() (ring *slots.Ring, listed slots.Set) {
	s.following.Lock()
	defer s.following.Unlock()
	ring, _ = s.member.view()
	s.counts.follow(ring.Complete(), time.Now())
	before, now := s.holder.Part(), ring.Part(s.This())
	// Deletions that come after a list of the sources must be remembered.
	s.holder.Have(slots.Part{Owned: before.Owned, Releasing: before.Releasing, Held: now.Held})
	listed = s.division.hold(now.Held)
	now.Owned = now.Owned.And(listed)
	if s.closed {
		now = slots.Part{}
	}
	if before == now {
		return ring, listed
	}
	gained, lost := within(now.Owned.Without(before.Owned)), within(now.Releasing.Without(before.Releasing))
	if gained != nil {
		for _, f := range s.frameworks {
			access.EngineOf(f).Gain(gained)
		}
	}
	s.holder.Have(now)
	for i := range s.passing {
		if !now.Releasing.Has(i) {
			s.passing[i] = time.Time{}
		}
	}
	for _, f := range s.frameworks {
		access.EngineOf(f).Reshare(lost)
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

// pass reports whether this replica can pass a slot to another one: no work is under way, and the
// deletions of objects that are gone are processed, or patience has passed since the first attempt
// to pass the slot.
func (s *sharing) pass(slot int) bool {
	if s.passing[slot].IsZero() {
		s.passing[slot] = time.Now()
	}
	in := func(key informer.Key) bool { return slotOf(key) == slot }
	unprocessed := slices.ContainsFunc(s.frameworks, func(f *framework.Framework) bool { return access.EngineOf(f).HasUnprocessed(in) })
	if unprocessed && time.Since(s.passing[slot]) < s.patience {
		return false
	}
	return s.holder.Pass(slot)
}

// state is what this replica publishes about itself. Objects are counted again only if their number
// or the listed slots have changed.
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

// shard decides on which objects this replica may work. It implements access.Shard.
type shard struct{ holder *slots.Holder }

// Owns implements access.Shard.
func (s shard) Owns(key informer.Key) bool { return s.holder.Part().Owned.Has(slotOf(key)) }

// Holds implements access.Shard.
func (s shard) Holds(key informer.Key) bool { return s.holder.Part().Held.Has(slotOf(key)) }

// Begin implements access.Shard.
func (s shard) Begin(key informer.Key, gone bool) bool { return s.holder.Begin(slotOf(key), gone) }

// End implements access.Shard.
func (s shard) End(key informer.Key) { s.holder.End(slotOf(key)) }
