// Package bytelru is a cache that is bounded in bytes: what was not used for the longest time goes first.
//
//	parsed := bytelru.New[string, *Chart](64 << 20)
//	parsed.Add(digest, chart, len(content))
//	if chart, ok := parsed.Get(digest); ok { … }
//
// The sizes are what the callers say, so that they may be estimates.
package bytelru

import (
	"container/list"
	"sync"
)

// Cache keeps values by key. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	limit int

	mu      sync.Mutex
	used    int
	entries map[K]*list.Element
	// order has the entries, the one used last in front.
	order *list.List
}

type entry[K comparable, V any] struct {
	key   K
	value V
	size  int
}

// New returns a cache for values of so many bytes together.
func New[K comparable, V any](limit int) *Cache[K, V] {
	return &Cache[K, V]{limit: limit, entries: map[K]*list.Element{}, order: list.New()}
}

// Get returns the value of a key, and whether there is one.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.entries[key]
	if !ok {
		return value, false
	}
	c.order.MoveToFront(found)
	return found.Value.(*entry[K, V]).value, true
}

// Add keeps a value, in place of the one that the key has. One that is larger than the whole cache is not kept.
func (c *Cache[K, V]) Add(key K, value V, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, ok := c.entries[key]; ok {
		c.remove(found)
	}
	if size > c.limit {
		return
	}
	c.entries[key] = c.order.PushFront(&entry[K, V]{key, value, size})
	for c.used += size; c.used > c.limit; {
		c.remove(c.order.Back())
	}
}

// Bytes returns how much is kept.
func (c *Cache[K, V]) Bytes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used
}

func (c *Cache[K, V]) remove(element *list.Element) {
	e := c.order.Remove(element).(*entry[K, V])
	delete(c.entries, e.key)
	c.used -= e.size
}
