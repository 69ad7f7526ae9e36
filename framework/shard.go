package framework

import (
	"context"
	"fmt"
	"slices"

	"github.com/operatorkit/operatorkit/informer"
)

// Shard says which objects of a framework this replica reconciles, of several replicas that share them: see
// operator.ShardingConfig. Its methods are called for each reconciliation: they are quick, and safe for concurrent use.
type Shard interface {
	// Owns reports whether this replica may begin to work on an object.
	Owns(key informer.Key) bool
	// Holds reports whether this replica owns an object, is about to own it, or has not passed it to
	// another replica yet.
	Holds(key informer.Key) bool
	// Begin begins to work on an object, until End, and reports whether that is allowed. The deletion
	// of an object that is gone may begin until the object is passed to another replica.
	Begin(key informer.Key, gone bool) bool
	// End ends the work that Begin has begun. No other replica begins to work on the object before.
	End(key informer.Key)
}

// Share limits the framework to the objects that a shard owns. Events of others are passed over, as far as the sources
// hold them. IsInvalidConfig holds for the error: the framework runs already, or is driven by a queue that is not its
// own. operator.New calls it.
func (f *Framework) Share(s Shard) error {
	switch {
	case f.begun.Load():
		return fmt.Errorf("%w: framework %q runs already: make the operator before", ErrInvalidConfig, f.Name())
	case f.config.Driven:
		return fmt.Errorf("%w: framework %q is driven by a queue that is not its own, and can't be shared by replicas", ErrInvalidConfig, f.Name())
	}
	f.shard = s
	return nil
}

// Reshare is called each time that the shard owns or holds other objects than before. The framework
// forgets its state of objects that the shard does not own, except for unprocessed deletions of objects
// that it holds, and its state of objects that the source does not hold. The gained objects that the
// source holds become backlog, and so do their unprocessed deletions; nil stands for none. It may be called at any time,
// also before Run and after it, but not twice at once.
//
// lost are the objects that are about to be passed to another replica; nil stands for none. Where only
// this process remembers deletions, the source is compared with the live objects, so that no deletion
// is missed that the source shows late.
func (f *Framework) Reshare(gained, lost func(key informer.Key) bool) {
	for _, key := range f.remembered() {
		if !f.shard.Owns(key) && !f.tracksDeletion(key) {
			f.disown(key)
		}
	}
	for _, key := range f.metrics.ages.deletion.Keys() {
		if _, exists, err := f.source.Get(key); err != nil || !exists {
			f.metrics.ages.deletion.Delete(key)
		}
	}
	if gained != nil {
		f.takeover.add(takenPart{has: gained})
	}
	if lost != nil && f.remover == nil && !f.usesFinalizer() {
		f.takeover.add(takenPart{has: lost, lost: true})
	}
}

// remembered are the keys of which the framework remembers something. Some may come twice.
func (f *Framework) remembered() []informer.Key {
	return slices.Concat(f.takeover.behind.Keys(), f.tombstones.gone.Keys(), f.tombstones.processed.Keys(), f.failures.Keys(),
		f.reportedPlans.Keys(), f.unmatched.Keys(), f.retries.Keys())
}

// HasUnprocessed reports whether there are deletions to process of objects that are gone, or may be
// any, among objects that has accepts. It is safe for concurrent use.
func (f *Framework) HasUnprocessed(has func(key informer.Key) bool) bool {
	lost := func(p takenPart) bool { return p.lost }
	return slices.ContainsFunc(f.takeover.parts(), lost) || slices.ContainsFunc(f.tombstones.gone.Keys(), has) || slices.ContainsFunc(f.takeover.behind.Keys(), func(key informer.Key) bool {
		lag, known := f.takeover.behind.Get(key)
		return known && lag.Gone && has(key)
	})
}

// tracksDeletion reports whether a deletion is remembered until this replica has processed it. Where
// the source keeps deletions until they are processed, only the owner of an object remembers them.
func (f *Framework) tracksDeletion(key informer.Key) bool {
	switch {
	case f.shard == nil || f.shard.Owns(key):
		return true
	case f.remover != nil:
		return false
	}
	return f.shard.Holds(key)
}

// disown forgets the state of an object that another replica owns. That replica starts over.
func (f *Framework) disown(key informer.Key) {
	f.takeover.behind.Delete(key)
	f.tombstones.gone.Delete(key)
	f.tombstones.processed.Delete(key)
	f.failures.Delete(key)
	f.reportedPlans.Delete(key)
	f.unmatched.Delete(key)
	f.retries.Forget(key)
	if f.shadows != nil {
		f.shadows.Forget(key)
	}
}

// reconcileShared is reconcileEntry for an object that this replica may not own.
func (f *Framework) reconcileShared(ctx context.Context, e *waiting) {
	key := e.Key
	_, gone := f.tombstones.gone.Get(key)
	if !f.shard.Begin(key, gone) {
		return
	}
	defer func() {
		if !f.shard.Owns(key) && !f.tracksDeletion(key) {
			f.disown(key)
		}
		f.shard.End(key)
	}()
	f.reconcileEntry(ctx, e)
}
