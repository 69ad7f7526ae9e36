package informer

// KeyLister is implemented by sources that can tell which objects they hold without copying these. A [Hub] is one.
type KeyLister interface {
	// Keys returns the keys of all objects, in no particular order. The slice is the caller's.
	Keys() []Key
}

// Keys implements [KeyLister].
func (h *Hub) Keys() []Key {
	h.mu.RLock()
	defer h.mu.RUnlock()
	keys := make([]Key, 0, len(h.store.entries))
	for key := range h.store.entries {
		keys = append(keys, key)
	}
	return keys
}
