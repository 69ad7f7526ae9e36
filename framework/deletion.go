package framework

import (
	"context"
	"fmt"
	"slices"

	"github.com/operatorkit/operatorkit/context/deletionallowedcontext"
	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/informer"
)

// holds tells whether the framework puts finalizers on its objects.
func (f *Framework) holds() bool { return f.finalizers != nil && !f.config.DisableFinalizer }

func (f *Framework) hasFinalizer(obj any) bool {
	m, ok := metaOf(obj)
	return ok && f.finalizers != nil && slices.Contains(m.GetFinalizers(), f.config.Finalizer)
}

// hold puts the finalizer on an object that lacks it, and returns the object as it is then.
func (f *Framework) hold(ctx context.Context, obj any) (any, error) {
	if !f.holds() || f.hasFinalizer(obj) {
		return obj, nil
	}
	return f.finalizers.AddFinalizer(ctx, obj, f.config.Finalizer)
}

// reconcileDeletion processes the deletion of an object that is marked for it and still there, once, and lets go of it.
func (f *Framework) reconcileDeletion(ctx context.Context, key informer.Key, obj any) result {
	ours := f.hasFinalizer(obj)
	if !ours && f.holds() || f.tombstones.isProcessed(key, obj) {
		return result{outcome: ignored}
	}
	held := informer.Copy(obj)
	res := f.delete(ctx, key, obj)
	if res.outcome != succeeded {
		return res
	}
	f.tombstones.markProcessed(key, held)
	if ours {
		res.err = f.release(ctx, held)
	}
	if res.err != nil {
		res.outcome = failed
		res.err = res.reconciliation.errorf("remove finalizer: %w", res.err)
	}
	return res
}

func (f *Framework) release(ctx context.Context, obj any) error {
	return f.finalizers.RemoveFinalizer(ctx, obj, f.config.Finalizer)
}

// reconcileGone processes the deletions of objects that are not in the source any more, and returns the result of the
// last one.
func (f *Framework) reconcileGone(ctx context.Context, key informer.Key) (res result) {
	for {
		last, ok := f.tombstones.first(key)
		if !ok {
			return res
		}
		res = f.processGone(ctx, key, last)
		if res.err != nil || res.outcome == waiting {
			return res
		}
		f.tombstones.drop(key)
	}
}

// processGone processes one object that is not in the source any more: it was deleted, or left what the source selects.
func (f *Framework) processGone(ctx context.Context, key informer.Key, last any) result {
	if f.live != nil {
		now, exists, err := f.live.GetLive(ctx, key)
		if err != nil {
			return result{outcome: failed, err: fmt.Errorf("look for deleted %s: %w", describe(last, key), err)}
		}
		if exists && uidOf(now) == uidOf(last) {
			return f.letGo(ctx, key, now)
		}
	}
	if f.holds() && !f.hasFinalizer(last) {
		// It was never ours, or its deletion was processed and the finalizer taken off.
		return result{outcome: ignored}
	}
	return f.delete(ctx, key, last)
}

// letGo gives up an object that exists but is no longer selected: it belongs to somebody else now. A deletion that
// waits for us is processed first.
func (f *Framework) letGo(ctx context.Context, key informer.Key, now any) result {
	if m, ok := metaOf(now); ok && m.GetDeletionTimestamp() != nil {
		return f.reconcileDeletion(ctx, key, now)
	}
	if !f.hasFinalizer(now) {
		return result{outcome: ignored}
	}
	if err := f.release(ctx, now); err != nil {
		return result{outcome: failed, err: fmt.Errorf("remove finalizer of unselected %s: %w", describe(now, key), err)}
	}
	return result{outcome: succeeded}
}

// delete runs the resources for an object that is being deleted or gone. A deletion that a resource cancelled or held
// back is waiting: it is tried again. The object is given away.
func (f *Framework) delete(ctx context.Context, key informer.Key, obj any) result {
	r := f.newReconciliation(ctx, deleteEvent, key, obj)
	set, err := f.resourceSet(r, obj)
	switch {
	case IsNoResourceSet(err) && !f.hasFinalizer(obj):
		return result{reconciliation: r, outcome: ignored}
	case err != nil:
		return result{reconciliation: r, outcome: failed, err: err}
	}
	ctx, res := f.execute(r, set, obj)
	unfinished := reconciliationcanceledcontext.IsCanceled(r) || finalizerskeptcontext.IsKept(r) ||
		r.held.Load() || !deletionallowedcontext.IsDeletionAllowed(ctx)
	if res.err == nil && unfinished {
		res.outcome = waiting
	}
	return res
}
