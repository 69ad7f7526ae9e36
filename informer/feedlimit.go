package informer

// listings is what a Hub has to list after the part has grown to which it is limited. The lock of deliveries guards it.
type listings struct {
	// unlisted are the namespaces of the Hub that have not been listed since.
	unlisted map[string]bool
	// listed is to be called when there are none any more.
	listed func()
}

// limit has the Hub hold nothing but what has accepts, or everything if that is nil. If that grows, everything has to be
// listed again. It is true if nothing has, and otherwise has listed called when that was done; nil stands for what was
// to be called before.
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

// keep forgets what does not belong to a part. The caller holds delivery.
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

// holds reports whether a key belongs to the part that the Hub is limited to. The caller holds delivery.
func (h *Hub) holds(key Key) bool { return h.has == nil || h.has(key) }

// replaced notes that a namespace was listed, and returns what is to be called then. The caller holds delivery.
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
