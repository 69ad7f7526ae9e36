package framework

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/framework/internal/keyed"
	"github.com/operatorkit/operatorkit/informer"
)

// tombstones remembers objects that are gone until their deletion has been processed, and which deletions have been.
// It lives in memory: what has to hold across restarts needs a finalizer.
type tombstones struct {
	// gone are the last known states of objects, for each key the one that has been gone longest first.
	gone keyed.Map[[]any]
	// processed holds the objects whose deletion has been processed while they still exist, because somebody else's
	// finalizer holds them or because the event of their end has not arrived yet.
	processed keyed.Map[types.UID]
	// done are the last deletions that were processed, if another replica may have to know them.
	done *doneDeletions
}

// add remembers the last known state of an object that is gone, and reports whether there is anything left to do.
func (t *tombstones) add(key informer.Key, obj any) bool {
	if processed, ok := t.processed.Delete(key); ok && processed == uidOf(obj) {
		t.done.add(key, processed)
		_, left := t.gone.Get(key)
		return left
	}
	t.gone.Update(key, func(gone []any, _ bool) ([]any, bool) { return append(gone, obj), true })
	return true
}

// first returns the object of this key that has been gone longest.
func (t *tombstones) first(key informer.Key) (any, bool) {
	gone, ok := t.gone.Get(key)
	if !ok {
		return nil, false
	}
	return gone[0], true
}

// drop forgets the object that has been gone longest, which is last.
func (t *tombstones) drop(key informer.Key, last any) {
	t.gone.Update(key, func(gone []any, _ bool) ([]any, bool) { return gone[min(1, len(gone)):], len(gone) > 1 })
	if t.isProcessed(key, last) {
		t.processed.Delete(key)
	}
}

// markProcessed remembers that the deletion of an object has been processed, until the object is gone, or the deletion is taken back.
func (t *tombstones) markProcessed(key informer.Key, obj any) { t.processed.Set(key, uidOf(obj)) }

// isProcessed tells whether the deletion of exactly this object has been processed.
func (t *tombstones) isProcessed(key informer.Key, obj any) bool {
	uid, ok := t.processed.Get(key)
	return ok && uid == uidOf(obj)
}
