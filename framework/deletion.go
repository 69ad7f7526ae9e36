package framework

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/context/deletionallowedcontext"
	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/informer"
)

// usesFinalizer tells whether the framework puts finalizers on its objects.
func (f *Framework) usesFinalizer() bool { return f.finalizers != nil && !f.config.DisableFinalizer }

// needsFinalizer tells whether an object lacks the finalizer, or has former ones.
func (f *Framework) needsFinalizer(obj any) bool {
	return f.usesFinalizer() && (!f.has(obj, f.finalizer) || len(f.formerFinalizersOn(obj)) > 0)
}

// ensureFinalizer puts the finalizer on an object that needs it, in place of former ones, and returns the object as it is then.
func (f *Framework) ensureFinalizer(ctx context.Context, key informer.Key, obj any) (any, error) {
	if !f.has(obj, f.finalizer) {
		var err error
		if obj, err = f.finalizers.AddFinalizer(ctx, obj, f.finalizer); err != nil {
			return nil, err
		}
	}
	return f.takeOver(ctx, key, obj)
}

// hasFinalizer tells whether an object has a finalizer of the framework, be it a former one.
func (f *Framework) hasFinalizer(obj any) bool {
	return f.has(obj, f.finalizer) || len(f.formerFinalizersOn(obj)) > 0
}

func (f *Framework) has(obj any, finalizer string) bool {
	m, ok := metaOf(obj)
	return ok && f.finalizers != nil && slices.Contains(m.GetFinalizers(), finalizer)
}

// formerFinalizersOn returns the finalizers of an object that the framework had under former names.
func (f *Framework) formerFinalizersOn(obj any) (former []string) {
	for _, finalizer := range f.formerFinalizers {
		if f.has(obj, finalizer) {
			former = append(former, finalizer)
		}
	}
	return former
}

// takeOver takes former finalizers off an object that has the present one, and returns the object as it is then.
func (f *Framework) takeOver(ctx context.Context, key informer.Key, obj any) (any, error) {
	former := f.formerFinalizersOn(obj)
	if len(former) == 0 {
		return obj, nil
	}
	if err := f.removeFinalizers(ctx, obj, former); err != nil {
		return nil, err
	}
	f.log("info", "took over", "object", describe(obj, key), "finalizers", strings.Join(former, ", "), "finalizer", f.finalizer)
	return f.readAgain(ctx, key, obj)
}

// readAgain returns an object as it is after a write that did not say how it is then.
func (f *Framework) readAgain(ctx context.Context, key informer.Key, obj any) (any, error) {
	if f.live == nil {
		return obj, nil
	}
	now, exists, err := f.live.GetLive(ctx, key)
	if err == nil && (!exists || uidOf(now) != uidOf(obj)) {
		err = apierrors.NewNotFound(schema.GroupResource{Resource: f.source.Name()}, keyString(key))
	}
	return now, err
}

func (f *Framework) removeFinalizers(ctx context.Context, obj any, finalizers []string) error {
	for _, finalizer := range finalizers {
		if !f.has(obj, finalizer) {
			continue
		}
		if err := f.finalizers.RemoveFinalizer(ctx, obj, finalizer); err != nil {
			return err
		}
	}
	return nil
}

// reconcileDeletion processes the deletion of an object that is marked for it and still there, once.
func (f *Framework) reconcileDeletion(ctx context.Context, key informer.Key, obj any) result {
	if f.usesFinalizer() && !f.hasFinalizer(obj) {
		return result{outcome: Ignored, reason: reasonNotOurs}
	}
	if f.tombstones.isProcessed(key, obj) {
		return f.finishDeletion(ctx, key, obj, result{outcome: Ignored, reason: reasonProcessed})
	}
	last := informer.Copy(obj)
	res := f.delete(ctx, key, obj)
	if res.outcome != Succeeded {
		return res
	}
	f.tombstones.markProcessed(key, last)
	return f.finishDeletion(ctx, key, last, res)
}

// finishDeletion takes the finalizer off an object whose deletion has been processed with the given result, or the object
// out of its source.
func (f *Framework) finishDeletion(ctx context.Context, key informer.Key, obj any, res result) result {
	var err error
	what := "remove finalizer"
	switch {
	case f.hasFinalizer(obj):
		err = f.removeFinalizer(ctx, obj)
	case f.remover != nil:
		what, err = "remove", f.remover.Remove(ctx, obj)
	}
	if err != nil {
		res.outcome = Failed
		res.err = fmt.Errorf("%s of %s: %s: %w", deleteEvent, describe(obj, key), what, err)
	}
	return res
}

// removeFinalizer takes the finalizer off an object, and former ones.
func (f *Framework) removeFinalizer(ctx context.Context, obj any) error {
	return f.removeFinalizers(ctx, obj, append(f.formerFinalizersOn(obj), f.finalizer))
}

// reconcileTombstones processes the deletions of objects that are not in the source any more, beginning at start, and
// returns the result of the last one and when it ended. why is why the key was looked at.
func (f *Framework) reconcileTombstones(ctx context.Context, key informer.Key, why *waiting, start time.Duration) (res result, end time.Duration) {
	for {
		last, ok := f.tombstones.first(key)
		if !ok {
			return res, start
		}
		if res.reconciliation != nil {
			f.observe(key, res, why, 0)
		}
		res = f.reconcileGone(ctx, key, last)
		start = f.metrics.reconciled(res, start)
		switch {
		case IsPermanent(res.err) && f.hasSuccessor(key):
			res.err = fmt.Errorf("%w (given up, since another object has its name)", res.err)
			f.conclude(ctx, key, res, why)
			res = result{}
		case res.err != nil || res.outcome == Waiting:
			return res, start
		}
		f.tombstones.drop(key, last)
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
	if f.live != nil {
		now, exists, err := f.live.GetLive(ctx, key)
		if err != nil {
			return result{outcome: Failed, err: fmt.Errorf("look for deleted %s: %w", describe(last, key), err)}
		}
		if uid := uidOf(last); exists && uid != "" && uid == uidOf(now) {
			return f.reconcileMissing(ctx, key, now)
		}
	}
	if f.usesFinalizer() && !f.hasFinalizer(last) {
		// It was never ours, or its deletion was processed and the finalizer taken off.
		return result{outcome: Ignored, reason: reasonGone}
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
			return result{outcome: Ignored, reason: reasonBack}
		}
		if selected && !beingDeleted(now) {
			return result{outcome: Waiting, reason: reasonMissing}
		}
	}
	if f.onlyPlanned(now) {
		f.reportedPlans.Delete(key)
		return result{outcome: Ignored, reason: reasonUnselected}
	}
	if beingDeleted(now) {
		return f.reconcileDeletion(ctx, key, now)
	}
	if !f.hasFinalizer(now) {
		return result{outcome: Ignored, reason: reasonUnselected}
	}
	if err := f.removeFinalizer(ctx, now); err != nil {
		return result{outcome: Failed, err: fmt.Errorf("remove finalizer of unselected %s: %w", describe(now, key), err)}
	}
	return result{outcome: Succeeded, reason: reasonUnselected}
}

// delete runs the resources for an object that is being deleted or gone. A deletion that a resource cancelled, or that
// was refused, is waiting: it is tried again. The object is given away.
func (f *Framework) delete(ctx context.Context, key informer.Key, obj any) result {
	r := f.newReconciliation(ctx, deleteEvent, key, obj)
	set, err := f.resourceSet(r, obj)
	switch {
	case IsNoResourceSet(err) && !f.hasFinalizer(obj):
		return result{reconciliation: r, outcome: Ignored, reason: reasonNoResourceSet}
	case err != nil:
		return result{reconciliation: r, outcome: Failed, err: err}
	}
	ctx, res := f.runResourceSet(r, set, obj)
	unfinished := reconciliationcanceledcontext.IsCanceled(r) || finalizerskeptcontext.IsKept(r) ||
		r.deletionRefused.Load() || !deletionallowedcontext.IsDeletionAllowed(ctx)
	if res.err == nil && unfinished {
		res.outcome = Waiting
	}
	return res
}
