package informer

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Feed is the writing side of a [Hub]. Each method changes the store first and then calls the subscribers, and returns
// when they have been called. Objects that are handed over belong to the Hub from then on and must not be changed.
// Namespaces that are named must be among those of [HubConfig]. All methods are safe for concurrent use, but not from
// within a handler.
type Feed struct{ hub *Hub }

// Item is an object as a source knows it.
type Item struct {
	// Key names the object.
	Key Key
	// Object is its state.
	Object any
	// Version changes with every change of the object, such as a resource version, a revision or a hash of the
	// content. An empty one is never equal to another.
	Version string
}

// Set stores an object and announces it as Added or Updated. It does nothing and returns false when the stored object
// has the same version. An object with another UID than the stored one is a new object: the old one is announced as
// Deleted first.
func (f *Feed) Set(item Item) (changed bool) {
	f.hub.delivery.Lock()
	defer f.hub.delivery.Unlock()
	return f.show(item, false, false)
}

// Delete removes an object and announces it as Deleted with the given last state, or with the stored one if last is
// nil. It does nothing and returns false when the object is not stored.
func (f *Feed) Delete(key Key, last any) (changed bool) {
	f.hub.delivery.Lock()
	defer f.hub.delivery.Unlock()
	return f.showGone(Item{Key: key, Object: last})
}

// Remove is Delete for an object of which it is known in which version it left the source.
func (f *Feed) Remove(last Item) (changed bool) {
	f.hub.delivery.Lock()
	defer f.hub.delivery.Unlock()
	return f.showGone(last)
}

// End is Remove for a source that is compacted: the object of the key, whichever it is, is gone since that version. With keep the deletion is
// repeated as by KeepDeleted.
func (f *Feed) End(key Key, version string, keep bool) (changed bool) {
	h := f.hub
	h.delivery.Lock()
	defer h.delivery.Unlock()
	h.reach(key.Namespace, version)
	old, exists := h.store.entries[key]
	e := Event{sight: sight{version: version, gap: true}}
	if a := h.ledger[key]; a != nil {
		for _, w := range a.open {
			w.shownEnd = version
		}
		e.sight.before = a.before("", old.version)
		verdict := a.shows(h, "", version, true)
		h.ledger.settle(key, a)
		switch {
		case verdict == foreign && exists:
			f.announceForeign(Item{Key: key, Object: old.object}, old.object, true, e.sight)
			return true
		case verdict != news:
			return false
		}
	}
	if !exists || !h.newer(version, old.version) {
		return false
	}
	f.end(key, version, keep, e)
	return true
}

// Newest returns the newest version that is known of a name from being shown or written, and whether there is an object since. It is empty if
// there is none, but for one that was deleted in this process and of which the source has not shown that.
func (f *Feed) Newest(key Key) (version string, exists bool) {
	h := f.hub
	h.delivery.Lock()
	defer h.delivery.Unlock()
	old, exists := h.store.entries[key]
	version = old.version
	if a := h.ledger[key]; a != nil {
		for _, l := range a.lives {
			if last := l.last(); last != "" && (version == "" || h.newer(last, version)) {
				version, exists = last, false
			}
		}
	}
	return version, exists
}

// AnnounceDeleted announces an object as Deleted that is not stored, and was perhaps never seen.
func (f *Feed) AnnounceDeleted(key Key, last any) {
	f.hub.delivery.Lock()
	defer f.hub.delivery.Unlock()
	f.hub.deliver(Event{Type: Deleted, Key: key, Object: last})
}

// KeepDeleted announces an object as Deleted with the given last state, removes it if it is stored, and repeats the
// deletion to everybody who subscribes later, as a Deleted event of the backlog. It is for sources that know of deletions
// which nobody may have processed yet, such as those that happened while the operator was down. The deletion is kept until
// Forget is called, or an object is Set under the key; another one of the same key takes its place.
func (f *Feed) KeepDeleted(key Key, last any) {
	h := f.hub
	h.delivery.Lock()
	defer h.delivery.Unlock()
	h.kept[key] = last
	if !f.showGone(Item{Key: key, Object: last}) {
		h.deliver(Event{Type: Deleted, Key: key, Object: last})
	}
}

// Forget ends the repetition of a deletion, and returns false if none is kept under the key.
func (f *Feed) Forget(key Key) bool {
	h := f.hub
	h.delivery.Lock()
	defer h.delivery.Unlock()
	_, kept := h.kept[key]
	delete(h.kept, key)
	return kept
}

// Replace makes the items all there is in a namespace ("" for all namespaces): what the store holds beyond them is
// Deleted, what it lacks is Added, what has another version is Updated, and the rest is left alone. The first Replace of
// a namespace is its first listing: its events are backlog. Once each namespace of the Hub had one, the Hub is synced.
func (f *Feed) Replace(namespace string, items []Item) { f.ReplaceAsOf(namespace, items, "") }

// ReplaceAsOf is Replace for items of which it is known when they were all there is: at that version, in the order of the versions of
// objects. What is known to be newer stays, and of items that were all there is before something that was shown nothing is news.
func (f *Feed) ReplaceAsOf(namespace string, items []Item, version string) {
	f.hub.delivery.Lock()
	defer f.hub.delivery.Unlock()
	f.replace(namespace, items, version)
}

// replace is ReplaceAsOf for who holds delivery, and returns what is to be called when that is held no more.
func (f *Feed) replace(namespace string, items []Item, version string) (done func()) {
	h := f.hub
	backlog := !h.freshness.listed(namespace)
	if h.reach(namespace, version) && !backlog && !h.listings.unlisted[namespace] && version != h.newest[h.part(namespace)] {
		return h.replaced(namespace) // All of it was shown before.
	}
	items = slices.DeleteFunc(items, func(item Item) bool { return !h.holds(item.Key) })
	listed := make(map[Key]struct{}, len(items))
	for _, item := range items {
		listed[item.Key] = struct{}{}
		if a := h.ledger[item.Key]; a != nil {
			a.listed(h, version, func(l *life) bool { return l.uid == h.life(item.Object) })
		}
	}
	for _, known := range h.items() {
		if namespace != "" && known.Key.Namespace != namespace {
			continue
		}
		if _, ok := listed[known.Key]; !ok && !h.outlives(known, version) {
			f.delete(known.Key, nil, Event{sight: sight{gone: string(uid(known.Object))}})
		}
	}
	for key, a := range h.ledger {
		if _, ok := listed[key]; !ok && (namespace == "" || key.Namespace == namespace) {
			a.listed(h, version, func(*life) bool { return false })
			h.ledger.settle(key, a)
		}
	}
	for _, item := range items {
		f.show(item, backlog, true)
	}
	return h.replaced(namespace)
}

// outlives tells whether an object is missing from a listing because it is newer.
func (h *Hub) outlives(known Item, version string) bool {
	return h.compare != nil && version != "" && h.newer(known.Version, version)
}

// Announce repeats an object to the subscribers as Updated, of the backlog, and returns false if it is not stored.
func (f *Feed) Announce(key Key) bool {
	f.hub.delivery.Lock()
	defer f.hub.delivery.Unlock()
	return f.hub.announce(key)
}

// announce is Feed.Announce for who holds delivery.
func (h *Hub) announce(key Key) bool {
	e, ok := h.store.entries[key]
	if ok {
		obj := whole(e.object)
		h.deliver(Event{Type: Updated, Key: key, Object: obj, Old: obj, Backlog: true})
	}
	return ok
}

// AnnounceAll repeats every object to the subscribers: a resync.
func (f *Feed) AnnounceAll() {
	h := f.hub
	h.delivery.Lock()
	defer h.delivery.Unlock()
	for _, item := range h.items() {
		obj := whole(item.Object)
		h.deliver(Event{Type: Updated, Key: item.Key, Object: obj, Old: obj, Backlog: true})
	}
}

// Contact notes that the other side was heard of just now, and ends an outage of that namespace.
func (f *Feed) Contact(namespace string) { f.hub.freshness.contact(namespace) }

// Fail notes that the other side can't be reached, or refuses. The store stays as it is.
func (f *Feed) Fail(namespace string, err error) { f.hub.freshness.fail(namespace, err) }

// Unusable notes something that arrived and that the source can make no use of: it is in the Status, and the first one of each sort
// goes to the error channels of [Interface] and is to be logged. sort is one of a few texts.
func (f *Feed) Unusable(sort string, err error) (first bool) {
	return f.hub.freshness.cantUse(sort, err)
}

// Run runs work for as long as one of the calls of Run lasts, as Run of [Source] must: the first call starts it, later
// ones join. The last one to end cancels work's context and waits until work has returned. Work does not see the end of
// a single caller's context, but has the values of the first one's.
func (f *Feed) Run(ctx context.Context, work func(ctx context.Context)) {
	f.hub.sharedRun.run(ctx, work)
}

// show stores what the source shows, be it in a listing or not. The caller holds delivery, so that nobody else writes to the store.
func (f *Feed) show(item Item, backlog, listed bool) (changed bool) {
	h := f.hub
	old, exists := h.store.entries[item.Key]
	repeated := !listed && h.reach(item.Key.Namespace, item.Version) && h.hasEnded(item.Object)
	if repeated || !h.holds(item.Key) {
		return false
	}
	backlog = backlog || h.listings.isBacklog(h.part(item.Key.Namespace), item.Key)
	e := Event{Backlog: backlog, sight: sight{version: item.Version, gap: listed || h.compacted}}
	if a := h.ledger[item.Key]; a != nil {
		e.sight.before = a.before(h.life(item.Object), old.version)
		verdict := a.shows(h, h.life(item.Object), item.Version, e.sight.gap)
		h.ledger.settle(item.Key, a)
		if verdict != news && exists && !sameObject(old.object, item.Object) && h.newer(item.Version, old.version) {
			exists = !f.delete(item.Key, nil, Event{sight: sight{gone: string(uid(old.object)), before: old.version}})
		}
		switch verdict {
		case known:
			return false
		case foreign:
			f.announceForeign(item, old.object, exists, e.sight)
			return true
		}
	}
	if exists && !sameObject(old.object, item.Object) {
		if h.compare != nil && !h.newer(item.Version, old.version) {
			return false // An earlier life.
		}
		exists = !f.delete(item.Key, nil, Event{sight: sight{gone: string(uid(old.object)), before: old.version}})
	}
	if exists && item.Version != "" && !h.newer(item.Version, old.version) {
		return false
	}
	f.put(item, e)
	return true
}

// announceForeign announces a change of somebody else that was overtaken by a write of our own.
func (f *Feed) announceForeign(item Item, stored any, exists bool, s sight) {
	e := Event{Type: Deleted, Key: item.Key, Object: whole(item.Object), sight: s}
	if exists {
		e.Type, e.Object, e.Old = Updated, whole(stored), e.Object
	}
	f.hub.deliver(e)
}

// showGone removes an object of which the source shows that it is gone, if it is stored.
func (f *Feed) showGone(last Item) (changed bool) {
	h := f.hub
	old, exists := h.store.entries[last.Key]
	if last.Object == nil {
		last.Object = old.object
	}
	repeated := h.reach(last.Key.Namespace, last.Version) && h.hasEnded(last.Object)
	if repeated || !h.holds(last.Key) {
		return false
	}
	e := Event{sight: sight{version: last.Version, gone: string(uid(last.Object))}}
	h.end(last.Object)
	if a := h.ledger[last.Key]; a != nil {
		verdict := a.showsGone(h, h.life(last.Object), last.Version)
		h.ledger.settle(last.Key, a)
		switch verdict {
		case known:
			return false
		case foreign:
			// It had left the selection, and a write of ours, which is stored, has found it there again.
			if !exists || !sameObject(old.object, last.Object) || !h.newer(last.Version, old.version) {
				f.announceForeign(last, old.object, exists, e.sight)
				return true
			}
		}
	}
	if exists && h.compare != nil && !sameObject(old.object, last.Object) {
		return false // An earlier life.
	}
	changed = f.delete(last.Key, last.Object, e)
	if a := h.ledger[last.Key]; a != nil && changed {
		for _, w := range a.open {
			w.told = append(w.told, uid(last.Object))
		}
	}
	return changed
}

// put stores an item and completes and delivers its event. The caller holds delivery.
func (f *Feed) put(item Item, e Event) {
	h := f.hub
	old, exists := h.store.entries[item.Key]
	delete(h.kept, item.Key)
	held := h.pack(item.Object)
	h.mu.Lock()
	h.store.put(item.Key, entry{object: held, version: item.Version}, item.Object)
	h.mu.Unlock()

	e.Type, e.Key, e.Object = Added, item.Key, item.Object
	if exists {
		e.Type, e.Old = Updated, whole(old.object)
	}
	h.deliver(e)
}

// delete removes an object, if it is stored, and completes and delivers its event. The caller holds delivery.
func (f *Feed) delete(key Key, last any, e Event) (changed bool) {
	h := f.hub
	old, exists := h.store.entries[key]
	if !exists {
		return false
	}
	if last == nil {
		last = h.last(old.object, "")
	}
	h.end(old.object)

	h.mu.Lock()
	h.store.remove(key)
	h.mu.Unlock()

	e.Type, e.Key, e.Object = Deleted, key, whole(last)
	h.deliver(e)
	return true
}

// end removes an object that is stored, in a source that is compacted, and completes and delivers its event. The caller holds delivery.
func (f *Feed) end(key Key, version string, keep bool, e Event) {
	h := f.hub
	stored := h.store.entries[key].object
	last := h.last(stored, "")
	if keep {
		last = h.last(stored, version)
		h.kept[key] = last
	}
	f.delete(key, last, e)
	if a := h.ledger[key]; a != nil {
		for _, w := range a.open {
			w.told = append(w.told, h.life(stored))
		}
	}
}

// end remembers that an object is gone.
func (h *Hub) end(obj any) { h.endIn(obj, "") }

// endIn remembers that an object is gone, and in which version it went, if that is known.
func (h *Hub) endIn(obj any, version string) {
	if id := uid(obj); id != "" {
		h.ended.Add(id, version)
	}
}

// hasEnded tells whether an object is known to be gone, as far as that is remembered.
func (h *Hub) hasEnded(obj any) bool {
	_, ended := h.ended.Get(uid(obj))
	return ended
}

// sameObject is false if both objects have a UID and these differ: one object was deleted and another one of its name
// made.
func sameObject(old, now any) bool {
	a, b := uid(old), uid(now)
	return a == b || a == "" || b == ""
}

// life returns what tells an object from others that had its name: nothing where all of them count as one.
func (h *Hub) life(obj any) types.UID {
	if h.compacted {
		return ""
	}
	return uid(obj)
}

func uid(obj any) types.UID {
	if o, ok := obj.(interface{ GetUID() types.UID }); ok {
		return o.GetUID()
	}
	return ""
}
