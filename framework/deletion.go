package framework

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/context/deletionallowedcontext"
	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/informer"
)

// reconcileDeletion processes the deletion of an object that is marked for it and still there,
// once.
func (f *Framework) reconcileDeletion(ctx context.Context, s subject) result {
	if f.usesFinalizer() && !f.hasFinalizer(s.obj) {
		return result{outcome: Ignored, reason: reasonNotOurs}
	}
	if f.tombstones.isProcessed(s.key, s.obj) {
		return f.finishDeletion(ctx, s, result{outcome: Ignored, reason: reasonProcessed})
	}
	last := s
	last.obj = informer.Copy(s.obj)
	res := f.delete(ctx, s)
	if res.outcome != Succeeded {
		return res
	}
	f.tombstones.markProcessed(s.key, last.obj)
	return f.finishDeletion(ctx, last, res)
}

// delete runs the resources for an object that is being deleted or gone. A deletion that a resource
// cancelled, or that was refused, is waiting and is retried. delete takes ownership of the object.
func (f *Framework) delete(ctx context.Context, s subject) result {
	s.event = deleteEvent
	r := f.newReconciliation(ctx, s)
	set, err := f.resourceSet(r, s.obj)
	switch {
	case IsNoResourceSet(err) && !f.hasFinalizer(s.obj):
		return result{reconciliation: r, outcome: Ignored, reason: reasonNoResourceSet}
	case err != nil:
		return result{reconciliation: r, outcome: Failed, err: err}
	}
	ctx, res := f.runResourceSet(r, set, s.obj)
	unfinished := reconciliationcanceledcontext.IsCanceled(r) || finalizerskeptcontext.IsKept(r) ||
		!deletionallowedcontext.IsDeletionAllowed(ctx)
	if res.err == nil && unfinished {
		res.outcome = Waiting
	}
	return r.unlessOutdated(res)
}

// finishDeletion removes the finalizer of an object whose deletion has been processed with the
// given result, or removes the object from a source without finalizers.
func (f *Framework) finishDeletion(ctx context.Context, s subject, res result) result {
	ctx = res.inSpan(ctx)
	var err error
	what := "remove finalizer"
	switch {
	case f.hasFinalizer(s.obj):
		err = f.removeOwnFinalizers(ctx, s.obj)
	case f.remover != nil:
		what, err = "remove", f.remover.Remove(ctx, s.obj)
	}
	if err != nil {
		res.outcome = Failed
		res.err = fmt.Errorf("%s of %s: %s: %w", deleteEvent, describe(s.obj, s.key), what, err)
	}
	return res
}

// reconcileTombstones processes the deletions of objects that are no longer in the source, and
// returns the result of the last one.
func (f *Framework) reconcileTombstones(ctx context.Context, e *waiting) (res result) {
	key := e.Key
	for {
		last, ok := f.tombstones.first(key)
		if !ok {
			return res
		}
		f.followed(e, res)
		res = f.reconcileGone(ctx, key, last)
		switch {
		case IsPermanent(res.err) && f.hasSuccessor(key):
			res.err = fmt.Errorf("%w (given up, since another object has its name)", res.err)
			f.conclude(ctx, key, res, e)
			res = result{}
		case res.err != nil || res.outcome == Waiting:
			return res
		}
		f.tombstones.drop(key, last)
	}
}

// hasSuccessor reports whether another object has, or had, the name of an object that is gone. The
// successor is not reconciled before the deletion of the first is processed or given up.
func (f *Framework) hasSuccessor(key informer.Key) bool {
	gone, _ := f.tombstones.gone.Get(key)
	_, exists, _ := f.source.Get(key)
	return exists || len(gone) > 1
}

// reconcileGone processes one object that is no longer in the source: it was deleted, or is no
// longer selected.
func (f *Framework) reconcileGone(ctx context.Context, key informer.Key, last tombstone) result {
	s := subject{event: deleteEvent, key: key, obj: last.obj}
	succeeded := false
	if f.live != nil {
		now, exists, err := f.live.GetLive(ctx, key)
		if err != nil {
			return result{outcome: Failed, err: fmt.Errorf("look for deleted %s: %w", describe(last.obj, key), err)}
		}
		if exists && seenOf(last.obj).sameLife(seenOf(now)) {
			return f.reconcileMissing(ctx, key, now)
		}
		// Another process may have reconciled the next object of that name.
		succeeded = exists && last.before && (!f.usesFinalizer() || f.hasFinalizer(now))
		s.confirmed = true
	}
	if f.usesFinalizer() && !f.hasFinalizer(last.obj) {
		// It was never ours, or its deletion was processed and the finalizer taken off.
		return result{outcome: Ignored, reason: reasonGone}
	}
	if succeeded {
		f.log("info", "deletion is left alone", "object", describe(last.obj, key), "reason", reasonSucceeded)
		return result{outcome: Ignored, reason: reasonSucceeded}
	}
	if f.onlyPlanned(last.obj) {
		return f.planInstead(ctx, s, true)
	}
	given := s
	given.obj = informer.Copy(last.obj)
	res := f.delete(ctx, given)
	if res.outcome == Succeeded && f.remover != nil {
		return f.finishDeletion(ctx, s, res)
	}
	return res
}

// reconcileMissing removes the finalizer of an object that exists but is no longer selected. If the
// object is being deleted, its deletion is processed first. An object that the API server selects,
// although the source lacks it, is waited for.
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
		return f.reconcileDeletion(ctx, subject{event: deleteEvent, key: key, obj: now, confirmed: true})
	}
	if !f.hasFinalizer(now) {
		return result{outcome: Ignored, reason: reasonUnselected}
	}
	if err := f.removeOwnFinalizers(ctx, now); err != nil {
		err = fmt.Errorf("remove finalizer of unselected %s: %w", describe(now, key), err)
		return result{outcome: Failed, err: err}
	}
	return result{outcome: Succeeded, reason: reasonUnselected}
}

// reconcileRevived reconciles an object whose deletion has been processed, and that the source
// shows without a deletion. Mostly the source is late, and there is nothing to do. But the deletion
// may have been revoked, or a new object may have the name in a source whose objects have no UID.
func (f *Framework) reconcileRevived(ctx context.Context, s subject) result {
	ended := result{outcome: Ignored, reason: reasonProcessed}
	if f.live == nil {
		return ended
	}
	now, exists, err := f.live.GetLive(ctx, s.key)
	switch {
	case err != nil:
		err = fmt.Errorf("look whether the deletion of %s was taken back: %w", describe(s.obj, s.key), err)
		return result{outcome: Failed, err: err}
	case !exists, !seenOf(s.obj).sameLife(seenOf(now)), beingDeleted(now), seenOf(now).isOlder(seenOf(s.obj)):
		return ended
	}
	f.tombstones.processed.Delete(s.key)
	return f.reconcileSubject(ctx, s)
}

// usesFinalizer reports whether the framework puts finalizers on its objects.
func (f *Framework) usesFinalizer() bool { return f.finalizers != nil && !f.config.DisableFinalizer }

// needsFinalizer reports whether an object lacks the finalizer, or has former ones.
func (f *Framework) needsFinalizer(obj any) bool {
	return f.usesFinalizer() && (!f.has(obj, f.finalizer) || len(f.formerFinalizersOn(obj)) > 0)
}

// ensureFinalizer adds the finalizer to an object, removes former ones, and returns the new state
// of the object.
func (f *Framework) ensureFinalizer(ctx context.Context, key informer.Key, obj any) (any, error) {
	if !f.has(obj, f.finalizer) {
		var err error
		if obj, err = f.finalizers.AddFinalizer(ctx, obj, f.finalizer); err != nil {
			return nil, err
		}
	}
	former := f.formerFinalizersOn(obj)
	if len(former) == 0 {
		return obj, nil
	}
	if err := f.removeFinalizers(ctx, obj, former); err != nil {
		return nil, err
	}
	f.log("info", "took over", "object", describe(obj, key),
		"finalizers", strings.Join(former, ", "), "finalizer", f.finalizer)
	if f.live == nil {
		return obj, nil
	}
	now, exists, err := f.live.GetLive(ctx, key)
	if err == nil && (!exists || uidOf(now) != uidOf(obj)) {
		err = apierrors.NewNotFound(schema.GroupResource{Resource: f.source.Name()}, keyString(key))
	}
	return now, err
}

// hasFinalizer reports whether an object has the finalizer of the framework, or a former one.
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

// removeOwnFinalizers removes the finalizer of the framework, and former ones.
func (f *Framework) removeOwnFinalizers(ctx context.Context, obj any) error {
	return f.removeFinalizers(ctx, obj, append(f.formerFinalizersOn(obj), f.finalizer))
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
