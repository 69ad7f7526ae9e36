package informer

import (
	"context"

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
	return f.set(item, false)
}

// Delete removes an object and announces it as Deleted with the given last state, or with the stored one if last is
// nil. It does nothing and returns false when the object is not stored.
func (f *Feed) Delete(key Key, last any) (changed bool) {
	f.hub.delivery.Lock()
	defer f.hub.delivery.Unlock()
	return f.delete(key, last)
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
	if !f.delete(key, last) {
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
func (f *Feed) Replace(namespace string, items []Item) {
	h := f.hub
	h.delivery.Lock()
	defer h.delivery.Unlock()

	listed := make(map[Key]struct{}, len(items))
	for _, item := range items {
		listed[item.Key] = struct{}{}
	}
	for _, known := range h.items() {
		if namespace != "" && known.Key.Namespace != namespace {
			continue
		}
		if _, ok := listed[known.Key]; !ok {
			f.delete(known.Key, nil)
		}
	}
	backlog := !h.freshness.listed(namespace)
	for _, item := range items {
		f.set(item, backlog)
	}
	h.freshness.markListed(namespace)
}

// Announce repeats an object to the subscribers as Updated, of the backlog, and returns false if it is not stored.
func (f *Feed) Announce(key Key) bool {
	h := f.hub
	h.delivery.Lock()
	defer h.delivery.Unlock()
	e, ok := h.store.entries[key]
	if ok {
		h.deliver(Event{Type: Updated, Key: key, Object: e.object, Old: e.object, Backlog: true})
	}
	return ok
}

// AnnounceAll repeats every object to the subscribers: a resync.
func (f *Feed) AnnounceAll() {
	h := f.hub
	h.delivery.Lock()
	defer h.delivery.Unlock()
	for _, item := range h.items() {
		h.deliver(Event{Type: Updated, Key: item.Key, Object: item.Object, Old: item.Object, Backlog: true})
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

// set does the work of Set; the caller holds delivery, so that nobody else writes to the store.
func (f *Feed) set(item Item, backlog bool) (changed bool) {
	h := f.hub
	old, exists := h.store.entries[item.Key]
	if exists && !sameObject(old.object, item.Object) {
		f.delete(item.Key, nil)
		exists = false
	}
	if exists && item.Version != "" && old.version == item.Version {
		return false
	}

	delete(h.kept, item.Key)
	h.mu.Lock()
	h.store.put(item.Key, entry{object: item.Object, version: item.Version})
	h.mu.Unlock()

	e := Event{Type: Added, Key: item.Key, Object: item.Object, Backlog: backlog}
	if exists {
		e.Type, e.Old = Updated, old.object
	}
	h.deliver(e)
	return true
}

func (f *Feed) delete(key Key, last any) (changed bool) {
	h := f.hub
	old, exists := h.store.entries[key]
	if !exists {
		return false
	}
	if last == nil {
		last = old.object
	}

	h.mu.Lock()
	h.store.remove(key)
	h.mu.Unlock()

	h.deliver(Event{Type: Deleted, Key: key, Object: last})
	return true
}

// sameObject is false if both objects have a UID and these differ: one object was deleted and another one of its name
// made.
func sameObject(old, now any) bool {
	a, b := uid(old), uid(now)
	return a == b || a == "" || b == ""
}

func uid(obj any) types.UID {
	if o, ok := obj.(interface{ GetUID() types.UID }); ok {
		return o.GetUID()
	}
	return ""
}
