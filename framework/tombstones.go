package framework

import (
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/informer"
)

// tombstones remembers objects that are gone until their deletion has been processed, and which deletions have been.
// It lives in memory: what has to hold across restarts needs a finalizer.
type tombstones struct {
	mu   sync.Mutex
	gone map[informer.Key][]any
	// processed holds the objects whose deletion has been processed while they still exist, because somebody else's
	// finalizer holds them or because the event of their end has not arrived yet.
	processed map[informer.Key]types.UID
	// buried is len(gone), for those who only ask whether there is anything.
	buried atomic.Int64
}

func newTombstones() *tombstones {
	return &tombstones{gone: map[informer.Key][]any{}, processed: map[informer.Key]types.UID{}}
}

// bury remembers the last known state of an object that is gone, and reports whether there is anything left to do.
func (t *tombstones) bury(key informer.Key, obj any) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	processed, ok := t.processed[key]
	delete(t.processed, key)
	if ok && processed == uidOf(obj) {
		return len(t.gone[key]) > 0
	}
	t.gone[key] = append(t.gone[key], obj)
	t.buried.Store(int64(len(t.gone)))
	return true
}

// first returns the object of this key that has been gone longest.
func (t *tombstones) first(key informer.Key) (any, bool) {
	if t.buried.Load() == 0 {
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
	t.buried.Store(int64(len(t.gone)))
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

func uidOf(obj any) types.UID {
	if m, ok := metaOf(obj); ok {
		return m.GetUID()
	}
	return ""
}
