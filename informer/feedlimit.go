package informer

// listings is what a Hub has to list after the part that it is limited to has grown. It is guarded
// by the lock of deliveries.
type listings struct {
	// unlisted are the namespaces of the Hub that have not been listed since.
	unlisted map[string]bool
	// listed is called when no namespace is unlisted.
	listed func()
}

// limit makes the Hub hold only the objects that has accepts, or everything if has is nil. If
// grows, all namespaces must be listed again. done is true if no listing is pending. Otherwise
// listed is called when the last one is complete; a nil listed leaves the earlier one in place.
func (f *Feed) limit(has func(Key) bool, grows bool, listed func()) (done bool) {
	h := f.hub
	h.delivery.Lock()
	defer h.delivery.Unlock()
	l := &h.listings
	if grows {
		l.unlisted = map[string]bool{}
		for _, namespace := range h.freshness.order {
			l.unlisted[namespace] = true
		}
	}
	h.keep(has)
	if listed != nil {
		l.listed = listed
	}
	if len(l.unlisted) > 0 || !h.freshness.isSynced() {
		return false
	}
	l.listed = nil
	return true
}

// keep drops everything outside the part. The caller holds delivery.
func (h *Hub) keep(has func(Key) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.has = has
	if has == nil {
		return
	}
	for key := range h.store.entries {
		if !has(key) {
			h.store.remove(key)
		}
	}
	for key := range h.kept {
		if !has(key) {
			delete(h.kept, key)
		}
	}
}

// holds reports whether a key is in the part that the Hub is limited to. The caller holds delivery.
func (h *Hub) holds(key Key) bool { return h.has == nil || h.has(key) }

// replaced records that a namespace was listed. It returns a function for the caller to call, or
// nil. The caller holds delivery.
func (h *Hub) replaced(namespace string) (listed func()) {
	h.freshness.markListed(namespace)
	l := &h.listings
	delete(l.unlisted, namespace)
	if len(l.unlisted) > 0 || !h.freshness.isSynced() {
		return nil
	}
	listed, l.listed = l.listed, nil
	return listed
}
