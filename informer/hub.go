package informer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/giantswarm/micrologger"
	"k8s.io/utils/lru"

	"github.com/operatorkit/operatorkit/internal/panics"
)

// HubConfig describes a [Hub].
type HubConfig struct {
	// Name is what the source's Name returns. It must be set.
	Name string
	// Namespaces are the parts that are listed, watched and lost separately. Default: one part, "",
	// with the objects of all namespaces.
	Namespaces []string
	// Indexers are the indexes of the store by name. Default: none.
	Indexers map[string]IndexFunc
	// Logger logs that an index panicked; the object is not indexed then. Default: none. Without it
	// Indexers must not panic.
	Logger micrologger.Logger
	// Copy makes the private copy that Get and List return. An error means that the object can't be
	// read. A source that stores encoded objects decodes them here. Default: the function [Copy].
	Copy func(obj any) (any, error)
	// Compare orders two versions of an object: the result is negative if b is newer. With it the
	// store never goes back: a version older than the one shown is ignored. An error means that the
	// two can't be compared, as if there was no Compare. Default: versions can only be equal or
	// not.
	Compare func(a, b string) (int, error)
	// Compacted is true for a source that shows the newest version of a name and perhaps none of
	// the earlier ones, and in which the end of an object has a version too, such as a compacted
	// log or a NATS bucket. It needs Compare. The source then reports an object that is gone by
	// [Feed.End], and its own deletions by [Write.Ended]. Default: false: every change is shown,
	// and an object recreated under a name has another UID.
	Compacted bool
	// Last makes the last state that is announced for a stored object that is gone. end is the
	// version of its end if the deletion is kept, and empty otherwise. Default: the stored object.
	Last func(stored any, end string) any

	// pack converts an object to its stored form, which whole reverses. Default: the object itself.
	pack func(obj any) any
}

// Hub is the part that all sources share: a store with indexes, subscribers with replay, a Run that
// can be joined, and the record of how fresh they are. A source embeds it and has all methods of
// [Source] but Run. The Hub is changed through its [Feed], which the source keeps to itself.
//
//	hub, feed := informer.NewHub(informer.HubConfig{Name: "machines"})
//	source := &Source{Hub: hub, feed: feed}
//
// All methods are safe for concurrent use. A handler may call any of them except Subscribe, and the
// function that ends a subscription.
type Hub struct {
	name string
	copy func(obj any) (any, error)
	pack func(obj any) any
	// compare is nil for versions without an order.
	compare   func(a, b string) (int, error)
	compacted bool
	last      func(stored any, end string) any

	// delivery is held while an object changes and its event is delivered. So events come one at a
	// time, in the order of the changes, and never before the replay of a new subscription.
	delivery    sync.Mutex
	subscribers []*subscriber
	// kept holds the last states of objects that are gone, for the deletions that are replayed to
	// new subscribers. With keepUnheard it also holds deletions that occurred while there was no
	// subscriber, until one subscribes.
	kept        map[Key]any
	keepUnheard bool
	// open are the writes that are under way.
	open map[Key][]*Write
	// newest is the newest version that was shown of each part, with compare.
	newest map[string]string
	// listings are those of the part that the Hub is limited to.
	listings listings
	// ended has the last version of objects that have left the source, by their life. Earlier
	// events may still come, because an own write is known before the watch shows it.
	ended *lru.Cache

	// mu guards only the following fields, and is not held while handlers run, so that they can
	// call Get. The fields change only while delivery is held too.
	mu    sync.RWMutex
	store store
	// has reports whether a key belongs to the part that the Hub is limited to. It is nil without a
	// limit.
	has func(Key) bool

	freshness *freshness
	sharedRun sharedRun
	// users are the names that are claimed.
	users sync.Map
}

// maxEnded is how many ended objects a Hub remembers.
const maxEnded = 4096

type subscriber struct{ handle Handler }

// NewHub returns a Hub and the Feed that writes to it.
func NewHub(config HubConfig) (*Hub, *Feed) {
	if config.Copy == nil {
		config.Copy = func(obj any) (any, error) { return Copy(obj), nil }
	}
	if config.Last == nil {
		config.Last = func(stored any, _ string) any { return stored }
	}
	if config.pack == nil {
		config.pack = func(obj any) any { return obj }
	}
	if config.Logger != nil {
		config.Indexers = guard(config.Indexers, config.Logger)
	}
	if len(config.Namespaces) == 0 {
		config.Namespaces = []string{""}
	}
	h := &Hub{
		name: config.Name,
		copy: func(held any) (any, error) {
			if p, ok := held.(*packed); ok {
				return p.object(), nil
			}
			return config.Copy(held)
		},
		pack:      config.pack,
		compare:   config.Compare,
		compacted: config.Compacted,
		last:      func(held any, end string) any { return config.Last(whole(held), end) },
		open:      map[Key][]*Write{},
		newest:    map[string]string{},
		ended:     lru.New(maxEnded),
		kept:      map[Key]any{},
		store:     newStore(config.Indexers),
		freshness: newFreshness(config.Namespaces),
	}
	return h, &Feed{hub: h}
}

// Name returns the name from the configuration.
func (h *Hub) Name() string { return h.name }

// Deletions returns the last states of objects that are gone and whose deletion is repeated to new
// subscribers, by their keys. The objects must not be changed.
func (h *Hub) Deletions() map[Key]any {
	h.delivery.Lock()
	defer h.delivery.Unlock()
	return maps.Clone(h.kept)
}

// Subscribe implements [Source].
func (h *Hub) Subscribe(handler Handler) (unsubscribe func()) {
	s := &subscriber{handle: handler}

	h.delivery.Lock()
	defer h.delivery.Unlock()
	for key, last := range h.kept {
		handler(Event{Type: Deleted, Key: key, Object: last, Backlog: true})
	}
	if h.keepUnheard {
		clear(h.kept)
	}
	for _, item := range h.items() {
		handler(Event{Type: Added, Key: item.Key, Object: whole(item.Object), Backlog: true})
	}
	h.subscribers = append(h.subscribers, s)

	return func() {
		h.delivery.Lock()
		defer h.delivery.Unlock()
		h.subscribers = slices.DeleteFunc(h.subscribers, func(known *subscriber) bool { return known == s })
	}
}

// WaitForSync implements [Source].
func (h *Hub) WaitForSync(ctx context.Context) error {
	select {
	case <-h.freshness.synced:
		return nil
	default:
	}
	select {
	case <-h.freshness.synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Get implements [Source].
func (h *Hub) Get(key Key) (obj any, exists bool, err error) {
	h.mu.RLock()
	entry, exists := h.store.entries[key]
	has := h.has
	h.mu.RUnlock()
	switch {
	case exists:
	case has == nil || has(key):
		return nil, false, nil
	default:
		return nil, false, fmt.Errorf("get %s from source %q: %w", key, h.name, ErrElsewhere)
	}
	obj, err = h.copy(entry.object)
	if err != nil {
		return nil, true, err
	}
	return obj, true, nil
}

// List implements [Source].
func (h *Hub) List() []any {
	return h.copies(h.items())
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

// Claim implements [Claimer].
func (h *Hub) Claim(name string) (release func(), ok bool) {
	_, taken := h.users.LoadOrStore(name, true)
	if taken {
		return nil, false
	}
	return func() { h.users.Delete(name) }, true
}

// ByIndex returns private copies of the objects that the index of that name files under value, in
// no particular order. It returns an error if the source has no such index.
func (h *Hub) ByIndex(index, value string) ([]any, error) {
	h.mu.RLock()
	items, err := h.store.byIndex(index, value)
	h.mu.RUnlock()
	if err != nil {
		return nil, err
	}
	return h.copies(items), nil
}

// Status implements [Source].
func (h *Hub) Status() Status {
	status := h.freshness.status()
	h.mu.RLock()
	status.Objects = len(h.store.entries)
	h.mu.RUnlock()
	return status
}

// items returns the objects in stored form.
func (h *Hub) items() []Item {
	h.mu.RLock()
	defer h.mu.RUnlock()
	items := make([]Item, 0, len(h.store.entries))
	for key, e := range h.store.entries {
		items = append(items, Item{Key: key, Object: e.object, Version: e.version})
	}
	return items
}

func (h *Hub) copies(items []Item) []any {
	objs := make([]any, 0, len(items))
	for _, item := range items {
		if obj, err := h.copy(item.Object); err == nil {
			objs = append(objs, obj)
		}
	}
	return objs
}

// newer reports whether a version is newer than a known one. Without an order, any other version
// is.
func (h *Hub) newer(version, known string) bool {
	if h.compare != nil {
		if c, err := h.compare(version, known); err == nil {
			return c > 0
		}
	}
	return version == "" || version != known
}

// older reports whether a version is known to be older than another one.
func (h *Hub) older(version, than string) bool {
	if h.compare == nil {
		return false
	}
	c, err := h.compare(version, than)
	return err == nil && c < 0
}

// reach notes that a part was shown at a version. It reports whether it was shown at this version,
// or a newer one, before.
func (h *Hub) reach(namespace, version string) (before bool) {
	if h.reached(namespace, version) {
		return true
	}
	if h.compare != nil && version != "" {
		h.newest[h.part(namespace)] = version
	}
	return false
}

// reached reports whether a part was shown at a version, or a newer one.
func (h *Hub) reached(namespace, version string) bool {
	newest := h.newest[h.part(namespace)]
	if h.compare == nil || version == "" || newest == "" {
		return false
	}
	c, err := h.compare(version, newest)
	return err == nil && c <= 0
}

// shownUpTo returns the newest version that was shown of a part, or "".
func (h *Hub) shownUpTo(namespace string) string {
	h.delivery.Lock()
	defer h.delivery.Unlock()
	return h.newest[h.part(namespace)]
}

// part returns the part of the store that contains a namespace.
func (h *Hub) part(namespace string) string {
	if h.freshness.has(namespace) {
		return namespace
	}
	return ""
}

// deliver calls all handlers. The caller holds h.delivery, and not h.mu.
func (h *Hub) deliver(e Event) {
	if !e.Backlog {
		e.open = slices.Clone(h.open[e.Key])
	}
	for _, w := range h.open[e.Key] {
		w.told = true
	}
	if e.Type == Deleted && h.keepUnheard && len(h.subscribers) == 0 {
		h.kept[e.Key] = e.Object
	}
	for _, s := range h.subscribers {
		h.call(s, e)
	}
}

// call calls a handler. A panic is reported as unusable input, and ends neither the source nor the
// process.
func (h *Hub) call(s *subscriber, e Event) {
	defer func() {
		if r := recover(); r != nil {
			h.freshness.cantUse("panic of a handler", fmt.Errorf("a handler of source %s: %s\n%s", h.name, panics.Describe(r), debug.Stack()))
		}
	}()
	s.handle(e)
}

// guard returns index functions that do not panic.
func guard(indexers map[string]IndexFunc, logger micrologger.Logger) map[string]IndexFunc {
	guarded := make(map[string]IndexFunc, len(indexers))
	for name, values := range indexers {
		guarded[name] = func(obj any) (result []string) {
			defer func() {
				if r := recover(); r != nil {
					logger.Errorf(context.Background(), errors.New(panics.Describe(r)), "index %s panicked", name)
					result = nil
				}
			}()
			return values(obj)
		}
	}
	return guarded
}
