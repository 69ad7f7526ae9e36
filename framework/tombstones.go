package framework

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/framework/internal/keyed"
	"github.com/operatorkit/operatorkit/informer"
)

// tombstones remembers objects that are gone until their deletion has been processed, and deletions
// that have been processed. It is lost at a restart: only a finalizer survives that.
type tombstones struct {
	// gone are the objects that are gone, by key, in the order of their ends.
	gone keyed.Map[[]tombstone]
	// processed are the objects whose deletion has been processed while they still exist: they have
	// another finalizer, or the event of their end has not arrived yet.
	processed keyed.Map[types.UID]
}

// tombstone is an object that is gone.
type tombstone struct {
	// obj is its last known state.
	obj any
	// before is true if it may have ended before this process adopted it from another one.
	before bool
}

// equals reports whether t and other are the same end of the same object.
func (t tombstone) equals(other tombstone) bool {
	end, otherEnd := seenOf(t.obj), seenOf(other.obj)
	return end.version != "" && end == otherEnd
}

// add remembers an object that is gone, and reports whether there is anything left to do.
func (t *tombstones) add(key informer.Key, last tombstone) bool {
	if processed, ok := t.processed.Delete(key); ok && processed == uidOf(last.obj) {
		_, left := t.gone.Get(key)
		return left
	}
	t.gone.Update(key, func(gone []tombstone, _ bool) ([]tombstone, bool) {
		if slices.ContainsFunc(gone, last.equals) {
			return gone, true
		}
		return append(gone, last), true
	})
	return true
}

// first returns the object of this key that has been gone longest.
func (t *tombstones) first(key informer.Key) (tombstone, bool) {
	gone, ok := t.gone.Get(key)
	if !ok {
		return tombstone{}, false
	}
	return gone[0], true
}

// drop forgets the object that has been gone longest, which is last.
func (t *tombstones) drop(key informer.Key, last tombstone) {
	t.gone.Update(key, func(gone []tombstone, _ bool) ([]tombstone, bool) {
		return gone[min(1, len(gone)):], len(gone) > 1
	})
	if t.isProcessed(key, last.obj) {
		t.processed.Delete(key)
	}
}

// markProcessed remembers that the deletion of an object has been processed, until the object is
// gone, or the deletion is taken back.
func (t *tombstones) markProcessed(key informer.Key, obj any) { t.processed.Set(key, uidOf(obj)) }

// isProcessed reports whether the deletion of exactly this object has been processed.
func (t *tombstones) isProcessed(key informer.Key, obj any) bool {
	uid, ok := t.processed.Get(key)
	return ok && uid == uidOf(obj)
}
