package framework

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/context/deletionallowedcontext"
	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/framework/internal/queue"
	"github.com/operatorkit/operatorkit/informer"
)

// usesFinalizer tells whether the framework puts finalizers on its objects.
func (f *Framework) usesFinalizer() bool { return f.finalizers != nil && !f.config.DisableFinalizer }

// ensureFinalizer puts the finalizer on an object that lacks it, in place of former ones, and returns the object as it is then.
func (f *Framework) ensureFinalizer(ctx context.Context, key informer.Key, obj any) (any, error) {
	if !f.usesFinalizer() {
		return obj, nil
	}
	if !f.has(obj, f.finalizer) {
		var err error
		if obj, err = f.finalizers.AddFinalizer(ctx, obj, f.finalizer); err != nil {
			return nil, err
		}
	}
	return f.takeOver(ctx, key, obj)
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
func (f *Framework) reconcileTombstones(ctx context.Context, key informer.Key, why *queue.Waiting, start time.Duration) (res result, end time.Duration) {
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
		if res.err != nil || res.outcome == Waiting {
			return res, start
		}
		f.tombstones.drop(key)
	}
}

// reconcileGone processes one object that is not in the source any more: it was deleted, or left what the source selects.
func (f *Framework) reconcileGone(ctx context.Context, key informer.Key, last any) result {
	if f.live != nil {
		now, exists, err := f.live.GetLive(ctx, key)
		if err != nil {
			return result{outcome: Failed, err: fmt.Errorf("look for deleted %s: %w", describe(last, key), err)}
		}
		if uid := uidOf(last); exists && uid != "" && uid == uidOf(now) {
			return f.reconcileUnselected(ctx, key, now)
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

// reconcileUnselected takes the finalizer off an object that exists but is no longer selected: it belongs to somebody else
// now. A deletion that waits for us is processed first.
func (f *Framework) reconcileUnselected(ctx context.Context, key informer.Key, now any) result {
	if f.onlyPlanned(now) {
		f.reportedPlans.forget(key)
		return result{outcome: Ignored, reason: reasonUnselected}
	}
	if m, ok := metaOf(now); ok && m.GetDeletionTimestamp() != nil {
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

// tombstones remembers objects that are gone until their deletion has been processed, and which deletions have been.
// It lives in memory: what has to hold across restarts needs a finalizer.
type tombstones struct {
	mu   sync.Mutex
	gone map[informer.Key][]any
	// processed holds the objects whose deletion has been processed while they still exist, because somebody else's
	// finalizer holds them or because the event of their end has not arrived yet.
	processed map[informer.Key]types.UID
	// count is len(gone), for those who only ask whether there is anything.
	count atomic.Int64
}

func newTombstones() *tombstones {
	return &tombstones{gone: map[informer.Key][]any{}, processed: map[informer.Key]types.UID{}}
}

// add remembers the last known state of an object that is gone, and reports whether there is anything left to do.
func (t *tombstones) add(key informer.Key, obj any) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	processed, ok := t.processed[key]
	delete(t.processed, key)
	if ok && processed == uidOf(obj) {
		return len(t.gone[key]) > 0
	}
	t.gone[key] = append(t.gone[key], obj)
	t.count.Store(int64(len(t.gone)))
	return true
}

// first returns the object of this key that has been gone longest.
func (t *tombstones) first(key informer.Key) (any, bool) {
	if t.count.Load() == 0 {
		return nil, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.gone[key]) == 0 {
		return nil, false
	}
	return t.gone[key][0], true
}

// drop forgets the object that has been gone longest.
func (t *tombstones) drop(key informer.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.gone[key]) > 1 {
		t.gone[key] = t.gone[key][1:]
		return
	}
	delete(t.gone, key)
	t.count.Store(int64(len(t.gone)))
}

// markProcessed remembers that the deletion of an object has been processed, until the object is gone.
func (t *tombstones) markProcessed(key informer.Key, obj any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.processed[key] = uidOf(obj)
}

// isProcessed tells whether the deletion of exactly this object has been processed.
func (t *tombstones) isProcessed(key informer.Key, obj any) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	uid, ok := t.processed[key]
	return ok && uid == uidOf(obj)
}
