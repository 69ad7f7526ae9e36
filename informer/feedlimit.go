package informer

// listings is what a Hub knows of listings of the part to which it is limited. The lock of deliveries guards it.
type listings struct {
	// generation is that of the part: a listing of an earlier one does not have all of it.
	generation int
	// unlisted are the namespaces of the Hub that have not been listed in this generation, and shown tells what was before.
	unlisted map[string]bool
	shown    func(Key) bool
	// listed is to be called when there are none any more.
	listed func()
}

// limit has the Hub hold nothing but what has tells, or everything if that is nil. In another generation than before, everything has to be
// listed anew. It is true if nothing has, and otherwise has listed called when that was done; nil stands for what was to be called before.
func (f *Feed) limit(has func(Key) bool, generation int, listed func()) (done bool) {
	h := f.hub
	h.delivery.Lock()
	defer h.delivery.Unlock()
	l := &h.listings
	if generation != l.generation {
		l.generation, l.unlisted = generation, map[string]bool{}
		for _, namespace := range h.freshness.order {
			l.unlisted[namespace] = true
		}
	}
	before := l.shown
	if l.shown = has; before != nil && has != nil && len(l.unlisted) > 0 {
		l.shown = func(key Key) bool { return before(key) && has(key) }
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

// unlimit has the Hub hold everything. It is called before anything was listed.
func (f *Feed) unlimit() {
	h := f.hub
	h.delivery.Lock()
	defer h.delivery.Unlock()
	h.keep(nil)
	h.listings.shown = nil
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

// holds tells whether a key belongs to the part that the Hub is limited to. The caller holds delivery.
func (h *Hub) holds(key Key) bool { return h.has == nil || h.has(key) }

// isBacklog tells whether a key has joined the part and was not listed since: it is shown by its listing, or by a watch of before. The caller
// holds delivery.
func (l *listings) isBacklog(namespace string, key Key) bool {
	return l.unlisted[namespace] && l.shown != nil && !l.shown(key)
}

// replaced notes that a namespace was listed, and returns what is to be called then. The caller holds delivery.
func (h *Hub) replaced(namespace string) (listed func()) {
	h.freshness.markListed(namespace)
	l := &h.listings
	delete(l.unlisted, namespace)
	if len(l.unlisted) > 0 || !h.freshness.isSynced() {
		return nil
	}
	listed, l.listed, l.shown = l.listed, nil, h.has
	return listed
}

// replacePart is ReplaceAsOf for all there is of the part of a generation. One of an earlier generation is passed over: there will be another.
func (f *Feed) replacePart(namespace string, items []Item, version string, generation int) {
	h := f.hub
	h.delivery.Lock()
	var listed func()
	if generation == h.listings.generation {
		listed = f.replace(namespace, items, version)
	}
	h.delivery.Unlock()
	if listed != nil {
		listed()
	}
}
