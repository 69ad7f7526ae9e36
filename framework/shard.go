package framework

import (
	"context"
	"fmt"
	"slices"

	"github.com/operatorkit/operatorkit/informer"
)

// Shard says which objects of a framework one of several replicas reconciles. The operator has one when replicas share the work, see
// operator.ShardingConfig. Its methods are called for each reconciliation: they are quick, and safe for concurrent use.
type Shard interface {
	// Owns tells whether this replica may begin to work on an object.
	Owns(key informer.Key) bool
	// Expects tells whether this replica is to get an object that it does not own, or gives it up, and knows what happens to it.
	Expects(key informer.Key) bool
	// Begin begins to work on an object, until End, and tells whether that may be.
	Begin(key informer.Key) bool
	// Resume begins to work on an object that this replica gives up, until End, and tells whether that may be. It is for deletions of which
	// who gets the object next can't know.
	Resume(key informer.Key) bool
	// End ends what Begin or Resume has begun. Nobody else begins to work on an object before.
	End(key informer.Key)
}

// Share limits the framework to the objects that a shard has. What happens to others is passed over, as far as the sources hold them. For the error IsInvalidConfig holds: the framework runs already, or is driven by a queue
// that is not its own. operator.New calls it.
func (f *Framework) Share(s Shard) error {
	switch {
	case f.begun.Load():
		return fmt.Errorf("%w: framework %q runs already: make the operator before", ErrInvalidConfig, f.Name())
	case f.config.Driven:
		return fmt.Errorf("%w: framework %q is driven by a queue that is not its own, and can't be shared by replicas", ErrInvalidConfig, f.Name())
	}
	f.shard = s
	if f.HandsOver() {
		f.tombstones.done = &doneDeletions{}
	}
	return nil
}

// Reshare is called each time that the shard has more or less than before. What is remembered of objects that it has not any more is
// forgotten: whoever has them starts over, and so is what is remembered of objects that the source holds no more. The objects that are gained, and that the source holds, become backlog. It may be called at
// any time, also before Run and after it, and not twice at once.
func (f *Framework) Reshare(gained func(key informer.Key) bool) {
	for _, key := range f.remembered() {
		if !f.shard.Owns(key) && !f.isFinishing(key) {
			f.disown(key)
		}
	}
	for _, key := range f.metrics.ages.deletion.Keys() {
		if _, exists, err := f.source.Get(key); err != nil || !exists {
			f.metrics.ages.deletion.Delete(key)
		}
	}
	f.takeover.add(gained)
}

// remembered are the keys of which the framework remembers something. Some may come twice.
func (f *Framework) remembered() []informer.Key {
	return slices.Concat(f.takeover.behind.Keys(), f.tombstones.gone.Keys(), f.tombstones.processed.Keys(), f.failures.Keys(),
		f.reportedPlans.Keys(), f.unmatched.Keys(), f.retries.Keys())
}

// disown forgets what is remembered of an object that is another replica's. That one is gone which this replica is to get, or gives up, and
// which nothing held for whoever cleans up after it, is not forgotten, nor that its deletion was processed. The same holds for one that it
// has got meanwhile.
func (f *Framework) disown(key informer.Key) {
	f.takeover.behind.Delete(key)
	// It may get the object between the two questions, and then owns it.
	if f.usesFinalizer() || !f.shard.Expects(key) && !f.shard.Owns(key) {
		f.tombstones.gone.Delete(key)
		f.tombstones.processed.Delete(key)
	}
	f.failures.Delete(key)
	f.reportedPlans.Delete(key)
	f.unmatched.Delete(key)
	f.retries.Forget(key)
	if f.shadows != nil {
		f.shadows.Forget(key)
	}
}

// reconcileShared is reconcileEntry for an object of which it is not known whether it is this replica's.
func (f *Framework) reconcileShared(ctx context.Context, e *waiting) {
	key := e.Key
	if !f.shard.Begin(key) && (!f.isFinishing(key) || !f.shard.Resume(key)) {
		f.disown(key)
		return
	}
	defer func() {
		if !f.shard.Owns(key) && !f.isFinishing(key) {
			f.disown(key)
		}
		f.shard.End(key)
	}()
	f.reconcileEntry(ctx, e)
}
