package informer

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/internal/jitter"
)

// Feed is the writing side of a [Hub]. Each method changes the store first, then calls the
// subscribers, and then returns. Objects passed to a method belong to the Hub from then on and must
// not be changed. Namespaces must be among those of [HubConfig]. All methods are safe for
// concurrent use, but must not be called from a handler.
type Feed struct{ hub *Hub }

// Item is an object as a source knows it.
type Item struct {
	// Key names the object.
	Key Key
	// Object is its state.
	Object any
	// Version changes with every change of the object, such as a resource version, a revision or a
	// hash of the content. An empty version is never equal to another.
	Version string
}

// Set stores an object and announces it as Added or Updated. It does nothing and returns false if
// the stored object has the same version. An object with another UID than the stored one is a new
// object: the old one is announced as Deleted first.
func (f *Feed) Set(item Item) (changed bool) {
	f.hub.delivery.Lock()
	defer f.hub.delivery.Unlock()
	f.hub.reach(item.Key.Namespace, item.Version)
	return f.show(item, false)
}

// Delete removes an object and announces it as Deleted with the given last state, or with the
// stored one if last is nil. It does nothing and returns false if the object is not stored.
func (f *Feed) Delete(key Key, last any) (changed bool) {
	return f.Remove(Item{Key: key, Object: last})
}

// Remove is Delete for an object that left the source in a known version.
func (f *Feed) Remove(last Item) (changed bool) {
	f.hub.delivery.Lock()
	defer f.hub.delivery.Unlock()
	return f.showGone(last)
}

// End is Remove for a compacted source: since that version no object has the key. With keep the
// deletion is repeated as by KeepDeleted.
func (f *Feed) End(key Key, version string, keep bool) (changed bool) {
	f.hub.delivery.Lock()
	defer f.hub.delivery.Unlock()
	f.hub.reach(key.Namespace, version)
	return f.end(key, version, keep)
}

// Newest returns the state of a key that was shown or written last, in a compacted source, and
// whether there is an object. The version is empty if none is known: the ends of objects are
// forgotten at some point. The object must not be changed.
func (f *Feed) Newest(key Key) (item Item, exists bool) {
	h := f.hub
	h.mu.RLock()
	stored, exists := h.store.entries[key]
	h.mu.RUnlock()
	if exists {
		return Item{Key: key, Object: whole(stored.object), Version: stored.version}, true
	}
	end, _ := h.ended.Get(key)
	version, _ := end.(string)
	return Item{Key: key, Version: version}, false
}

// AnnounceDeleted announces as Deleted an object that is not stored, and was perhaps never seen.
func (f *Feed) AnnounceDeleted(key Key, last any) {
	f.hub.delivery.Lock()
	defer f.hub.delivery.Unlock()
	f.hub.deliver(Event{Type: Deleted, Key: key, Object: last})
}

// KeepDeleted announces an object as Deleted with the given last state, removes it if it is stored,
// and repeats the deletion to every later subscriber, as a Deleted event of the backlog. It is for
// deletions that may not have been processed yet, for example because the operator was down. The
// deletion is kept until Forget is called or an object is Set under the key. Another deletion of
// the key replaces it.
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

// Replace makes the items the complete content of a namespace ("" for all namespaces): other stored
// objects are Deleted, missing ones are Added, those with another version are Updated, and the rest
// is left alone. The first Replace of a namespace is its first listing: its events are backlog. The
// Hub is synced once each of its namespaces had one.
func (f *Feed) Replace(namespace string, items []Item) { f.ReplaceAsOf(namespace, items, "") }

// ReplaceAsOf is Replace for items that were the complete content at a known version, in the order
// of the versions of objects. Objects known to be newer stay. Items that are older than the state
// already shown change nothing.
func (f *Feed) ReplaceAsOf(namespace string, items []Item, version string) {
	f.hub.delivery.Lock()
	listed := f.replace(namespace, items, version)
	f.hub.delivery.Unlock()
	if listed != nil {
		listed()
	}
}

// replace is ReplaceAsOf for a caller that holds delivery. The caller must call done after it has
// released delivery.
func (f *Feed) replace(namespace string, items []Item, version string) (done func()) {
	h := f.hub
	backlog := !h.freshness.listed(namespace)
	if h.reach(namespace, version) && !backlog && !h.listings.unlisted[namespace] && version != h.newest[h.part(namespace)] {
		return h.replaced(namespace) // All of it was shown before.
	}
	items = slices.DeleteFunc(items, func(item Item) bool { return !h.holds(item.Key) || h.isGone(item) })
	listed := make(map[Key]struct{}, len(items))
	for _, item := range items {
		listed[item.Key] = struct{}{}
	}
	for _, known := range h.items() {
		if namespace != "" && known.Key.Namespace != namespace {
			continue
		}
		if _, ok := listed[known.Key]; !ok && !h.outlives(known, version) {
			h.end(h.life(known), version)
			f.delete(known.Key, nil, Event{gone: uid(known.Object)})
		}
	}
	for _, item := range items {
		f.show(item, backlog)
	}
	return h.replaced(namespace)
}

// outlives reports whether an object is missing from a listing because it is newer.
func (h *Hub) outlives(known Item, version string) bool {
	return h.compare != nil && version != "" && h.newer(known.Version, version)
}

// Announce repeats an object to the subscribers as Updated, of the backlog. It returns false if the
// object is not stored.
func (f *Feed) Announce(key Key) bool {
	f.hub.delivery.Lock()
	defer f.hub.delivery.Unlock()
	return f.hub.announce(key)
}

// announce is Feed.Announce for a caller that holds delivery.
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

// Resync calls AnnounceAll at an interval, ±10 %, until ctx ends. It returns at once without an
// interval.
func (f *Feed) Resync(ctx context.Context, every time.Duration) {
	for every > 0 {
		timer := time.NewTimer(jitter.Of(every))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			f.AnnounceAll()
		}
	}
}

// Contact notes that the other side has just responded, and ends an outage of that namespace.
func (f *Feed) Contact(namespace string) { f.hub.freshness.contact(namespace) }

// Fail notes that the other side can't be reached, or refuses. The store is unchanged.
func (f *Feed) Fail(namespace string, err error) { f.hub.freshness.fail(namespace, err) }

// Unusable notes unusable input. It appears in the Status. The first of each sort is also sent to
// the error channels of [Interface] and is to be logged. sort must be one of a few texts.
func (f *Feed) Unusable(sort string, err error) (first bool) {
	return f.hub.freshness.cantUse(sort, err)
}

// Run runs work until all concurrent calls of Run have ended, as [Source] requires: the first call
// starts it, later ones join. The last one to end cancels work's context and waits until work has
// returned. Work does not see the end of a single caller's context, but has the values of the first
// caller's.
func (f *Feed) Run(ctx context.Context, work func(ctx context.Context)) {
	f.hub.sharedRun.run(ctx, work)
}

// show stores an object that the source shows, unless the store has it or something newer. The
// caller holds delivery.
func (f *Feed) show(item Item, backlog bool) (changed bool) {
	h := f.hub
	old, exists := h.store.entries[item.Key]
	same := exists && sameObject(old.object, item.Object)
	switch {
	case !h.holds(item.Key), h.isGone(item):
		return false
	case exists && !same && h.compare != nil && !h.newer(item.Version, old.version):
		// Another client's object, which the stored own write was too early to find.
		h.end(h.life(item), item.Version)
		h.deliver(Event{Type: Updated, Key: item.Key, Object: whole(old.object), Old: item.Object})
		return true
	case exists && same && item.Version != "" && !h.newer(item.Version, old.version):
		return false
	case exists && !same:
		f.replaceLife(item.Key, old)
		old = entry{}
	}
	backlog = backlog || !exists && h.listings.unlisted[h.part(item.Key.Namespace)]
	f.put(item, Event{Backlog: backlog, version: item.Version, before: old.version})
	return true
}

// showGone removes an object that has left the source, if it is stored. The caller holds delivery.
func (f *Feed) showGone(last Item) (changed bool) {
	h := f.hub
	h.reach(last.Key.Namespace, last.Version)
	old, exists := h.store.entries[last.Key]
	if last.Object == nil {
		last.Object = old.object
	}
	if !h.holds(last.Key) {
		return false
	}
	h.end(h.life(last), last.Version)
	if !exists || h.compare != nil && (!sameObject(old.object, last.Object) || h.older(last.Version, old.version)) {
		// It was removed before, was another object of the name, or an own write has brought it
		// back.
		return false
	}
	return f.delete(last.Key, last.Object, Event{version: last.Version, gone: uid(last.Object)})
}

// replaceLife removes an object after another one has got its name.
func (f *Feed) replaceLife(key Key, old entry) {
	if f.hub.compacted {
		f.hub.end(key, old.version)
	} else {
		f.hub.end(uid(old.object), forGood)
	}
	f.delete(key, nil, Event{gone: uid(old.object)})
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

// delete removes an object, if it is stored, and completes and delivers its event. The caller holds
// delivery.
func (f *Feed) delete(key Key, last any, e Event) (changed bool) {
	h := f.hub
	old, exists := h.store.entries[key]
	if !exists {
		return false
	}
	if last == nil {
		last = h.last(old.object, "")
	}

	h.mu.Lock()
	h.store.remove(key)
	h.mu.Unlock()

	e.Type, e.Key, e.Object = Deleted, key, whole(last)
	h.deliver(e)
	return true
}

// end removes the object of a key in a compacted source, unless it is newer. The caller holds
// delivery.
func (f *Feed) end(key Key, version string, keep bool) (changed bool) {
	h := f.hub
	h.end(key, version)
	old, exists := h.store.entries[key]
	if !exists || !h.newer(version, old.version) {
		return false
	}
	last := h.last(old.object, "")
	if keep {
		last = h.last(old.object, version)
		h.kept[key] = last
	}
	return f.delete(key, last, Event{version: version, before: old.version})
}

// forGood is the end version of an object that no later event can bring back.
const forGood = "for good"

// end records the version in which an object left the source, which may be empty. life is from
// Hub.life.
func (h *Hub) end(life any, version string) {
	if life == types.UID("") {
		return
	}
	if known, ok := h.ended.Get(life); ok && (known == forGood || version == "" || !h.newer(version, known.(string))) {
		return
	}
	h.ended.Add(life, version)
}

// isGone reports whether an item is older than the end of its object.
func (h *Hub) isGone(item Item) bool {
	end, ended := h.ended.Get(h.life(item))
	if !ended || h.compare == nil {
		return false
	}
	return end == forGood || end != "" && !h.newer(item.Version, end.(string))
}

// sameObject is false if both objects have a UID and these differ: one object was deleted, and
// another one of its name was created.
func sameObject(old, now any) bool {
	a, b := uid(old), uid(now)
	return a == b || a == "" || b == ""
}

// life identifies an object among all that have or had its key. In a compacted source they count as
// one.
func (h *Hub) life(item Item) any {
	if h.compacted {
		return item.Key
	}
	return uid(item.Object)
}

func uid(obj any) types.UID {
	if o, ok := obj.(interface{ GetUID() types.UID }); ok {
		return o.GetUID()
	}
	return ""
}
