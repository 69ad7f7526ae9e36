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
	ctx = res.inSpan(ctx)
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
		!deletionallowedcontext.IsDeletionAllowed(ctx)
	if res.err == nil && unfinished {
		res.outcome = Waiting
	}
	return r.concluded(res)
}
