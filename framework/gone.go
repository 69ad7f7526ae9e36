package framework

import (
	"context"
	"fmt"
	"time"

	"github.com/operatorkit/operatorkit/informer"
)

// reconcileTombstones processes the deletions of objects that are not in the source any more, beginning at start, and
// returns the result of the last one and when it ended.
func (f *Framework) reconcileTombstones(ctx context.Context, e *waiting, start time.Duration) (res result, end time.Duration) {
	key := e.Key
	for {
		last, ok := f.tombstones.first(key)
		if !ok {
			return res, start
		}
		if res.reconciliation != nil {
			f.observe(key, res, e, 0)
		}
		res = f.reconcileGone(ctx, key, last)
		start = f.metrics.reconciled(res, start)
		switch {
		case IsPermanent(res.err) && f.hasSuccessor(key):
			res.err = fmt.Errorf("%w (given up, since another object has its name)", res.err)
			f.conclude(ctx, key, res, e)
			res = result{}
		case res.err != nil || res.outcome == Waiting:
			return res, start
		}
		f.tombstones.drop(key, last)
		if !res.lives {
			f.tombstones.done.add(key, uidOf(last))
		}
		f.forget(key, seenOf(last))
	}
}

// hasSuccessor tells whether another object has, or had, the name of one that is gone. It waits for the deletion of the first, and
// must not wait for ever.
func (f *Framework) hasSuccessor(key informer.Key) bool {
	gone, _ := f.tombstones.gone.Get(key)
	_, exists, _ := f.source.Get(key)
	return exists || len(gone) > 1
}

// reconcileGone processes one object that is not in the source any more: it was deleted, left what the source selects, or was not
// in a list.
func (f *Framework) reconcileGone(ctx context.Context, key informer.Key, last any) result {
	succeeded := false
	if f.live != nil {
		now, exists, err := f.live.GetLive(ctx, key)
		if err != nil {
			return result{outcome: Failed, err: fmt.Errorf("look for deleted %s: %w", describe(last, key), err)}
		}
		if exists && seenOf(last).sameLife(seenOf(now)) {
			return f.reconcileMissing(f.answered(ctx, key, now), key, now)
		}
		succeeded = exists && f.mayOwn(key, seenOf(last), now)
		ctx = f.answered(ctx, key, last)
	}
	if f.usesFinalizer() && !f.hasFinalizer(last) {
		// It was never ours, or its deletion was processed and the finalizer taken off.
		return result{outcome: Ignored, reason: reasonGone}
	}
	if succeeded {
		f.log("info", "deletion is left alone", "object", describe(last, key), "reason", reasonSucceeded)
		return result{outcome: Ignored, reason: reasonSucceeded}
	}
	if f.onlyPlanned(last) {
		return f.planInstead(ctx, key, last, true)
	}
	res := f.delete(ctx, key, informer.Copy(last))
	if res.outcome == Succeeded && f.remover != nil {
		return f.finishDeletion(ctx, key, last, res)
	}
	return res
}

// reconcileMissing takes the finalizer off an object that exists but is no longer selected: it belongs to somebody else
// now. A deletion that waits for us is processed first. One that is selected all the same comes back to the source.
func (f *Framework) reconcileMissing(ctx context.Context, key informer.Key, now any) result {
	if selector, ok := f.live.(informer.LiveSelector); ok {
		selected, err := selector.SelectsLive(ctx, now)
		if err != nil {
			return result{outcome: Failed, err: fmt.Errorf("look for missing %s: %w", describe(now, key), err)}
		}
		if stored, exists, _ := f.source.Get(key); selected && exists && uidOf(stored) == uidOf(now) {
			return result{outcome: Ignored, reason: reasonBack, lives: true}
		}
		if selected && !beingDeleted(now) {
			return result{outcome: Waiting, reason: reasonMissing}
		}
	}
	if f.onlyPlanned(now) {
		f.reportedPlans.Delete(key)
		return result{outcome: Ignored, reason: reasonUnselected, lives: true}
	}
	if beingDeleted(now) {
		return f.reconcileDeletion(ctx, key, now)
	}
	if !f.hasFinalizer(now) {
		return result{outcome: Ignored, reason: reasonUnselected, lives: true}
	}
	if err := f.removeFinalizer(ctx, now); err != nil {
		return result{outcome: Failed, err: fmt.Errorf("remove finalizer of unselected %s: %w", describe(now, key), err)}
	}
	return result{outcome: Succeeded, reason: reasonUnselected, lives: true}
}
