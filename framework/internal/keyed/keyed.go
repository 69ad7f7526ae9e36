// Package keyed holds values for a few of many objects.
package keyed

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/operatorkit/operatorkit/informer"
)

// Map holds a value for some keys. Reading it is very cheap while it is empty, which it is most of
// the time. The zero value is empty. It is safe for concurrent use.
type Map[V any] struct {
	mu     sync.Mutex
	values map[informer.Key]V
	// count is len(values).
	count atomic.Int64
}

// Get returns the value of a key, and whether there is one.
func (m *Map[V]) Get(key informer.Key) (value V, known bool) {
	if m.count.Load() == 0 {
		return value, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	value, known = m.values[key]
	return value, known
}

// Set replaces the value of a key. It returns the previous value and whether there was one.
func (m *Map[V]) Set(key informer.Key, value V) (before V, known bool) {
	m.Update(key, func(v V, ok bool) (V, bool) {
		before, known = v, ok
		return value, true
	})
	return before, known
}

// Delete removes a key. It returns its value and whether there was one.
func (m *Map[V]) Delete(key informer.Key) (before V, known bool) {
	if m.count.Load() == 0 {
		return before, false
	}
	m.Update(key, func(v V, ok bool) (V, bool) {
		before, known = v, ok
		return v, false
	})
	return before, known
}

// Update replaces the value of a key by the result of update, or removes the key if keep is false.
func (m *Map[V]) Update(key informer.Key, update func(before V, known bool) (after V, keep bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known := m.values[key]
	after, keep := update(before, known)
	if !keep {
		delete(m.values, key)
	} else {
		if m.values == nil {
			m.values = map[informer.Key]V{}
		}
		m.values[key] = after
	}
	m.count.Store(int64(len(m.values)))
}

// Values calls yield with each value, in no particular order.
func (m *Map[V]) Values(yield func(V) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, value := range m.values {
		if !yield(value) {
			return
		}
	}
}

// Keys returns the keys that have a value, in no particular order.
func (m *Map[V]) Keys() []informer.Key {
	if m.count.Load() == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.values))
}
