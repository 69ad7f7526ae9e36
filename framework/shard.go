package framework

import (
	"context"
	"fmt"
	"slices"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/access"
)

// Share implements access.Engine.
func (f engine) Share(s access.Shard) error {
	switch {
	case f.begun.Load():
		return fmt.Errorf("%w: framework %q runs already: make the operator before", ErrInvalidConfig, f.Name())
	case f.config.Driven:
		return fmt.Errorf("%w: framework %q is driven by a queue that is not its own, and can't be shared by replicas",
			ErrInvalidConfig, f.Name())
	}
	f.shard = s
	return nil
}

// Gain implements access.Engine.
func (f engine) Gain(gained func(key informer.Key) bool) { f.takeover.add(takenPart{has: gained}) }

// Reshare implements access.Engine.
func (f engine) Reshare(lost func(key informer.Key) bool) {
	for _, key := range f.remembered() {
		if !f.tracksDeletion(key) {
			f.disown(key)
		}
	}
	for _, key := range f.metrics.ages.deletion.Keys() {
		if _, exists, err := f.source.Get(key); err != nil || !exists {
			f.metrics.ages.deletion.Delete(key)
		}
	}
	if lost != nil && f.remover == nil && !f.usesFinalizer() {
		f.takeover.add(takenPart{has: lost, lost: true})
	}
	f.takeover.start()
}

// remembered are the keys of which the framework remembers something. Some may come twice.
func (f *Framework) remembered() []informer.Key {
	return slices.Concat(
		f.takeover.behind.Keys(),
		f.tombstones.gone.Keys(),
		f.tombstones.processed.Keys(),
		f.failures.Keys(),
		f.fights.keys(),
		f.reportedPlans.Keys(),
		f.unmatched.Keys(),
		f.retries.Keys(),
	)
}

// HasUnprocessed implements access.Engine.
func (f engine) HasUnprocessed(has func(key informer.Key) bool) bool {
	lost := func(p takenPart) bool { return p.lost }
	late := func(key informer.Key) bool {
		lag, known := f.takeover.behind.Get(key)
		return known && lag.Gone && has(key)
	}
	return slices.ContainsFunc(f.takeover.parts(), lost) ||
		slices.ContainsFunc(f.takeover.behind.Keys(), late) ||
		slices.ContainsFunc(f.tombstones.gone.Keys(), has)
}

// tracksDeletion reports whether a deletion is remembered until this replica has processed it.
// Where the source keeps deletions until they are processed, only the owner of an object remembers
// them.
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
	f.fights.forget(key)
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
		if !f.tracksDeletion(key) {
			f.disown(key)
		}
		f.shard.End(key)
	}()
	f.reconcileEntry(ctx, e)
}
