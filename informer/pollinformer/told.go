package pollinformer

import (
	"maps"
	"slices"
	"sync"

	"github.com/operatorkit/operatorkit/informer"
)

// Wrote tells the source of a thing that the caller has just created or changed. Without that, what somebody else does to
// it before the next List would leave no trace: the source would see no difference. It is announced as any change is. The
// value belongs to the source afterwards.
func (s *Source[T]) Wrote(key informer.Key, value T) error {
	item, err := s.item(key, value)
	if err != nil {
		return err
	}
	s.told.tell(key, &item, func() { s.feed.Set(item) })
	return nil
}

// Deleted tells the source of a thing that the caller has just deleted.
func (s *Source[T]) Deleted(key informer.Key) {
	s.told.tell(key, nil, func() { s.feed.Delete(key, nil) })
}

// told is what the source was told while a List was under way, which may or may not have seen it.
type told struct {
	mu    sync.Mutex
	items map[informer.Key]*informer.Item
}

// begin forgets what a List that begins now is going to see.
func (t *told) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.items = map[informer.Key]*informer.Item{}
}

// tell remembers an item, or without one that there is none, and does what announces it.
func (t *told) tell(key informer.Key, item *informer.Item, announce func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.items != nil {
		t.items[key] = item
	}
	announce()
}

// end hands over what was listed, corrected by what was told since the List began.
func (t *told) end(items map[informer.Key]informer.Item, replace func([]informer.Item)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, item := range t.items {
		if item == nil {
			delete(items, key)
			continue
		}
		items[key] = *item
	}
	t.items = nil
	replace(slices.Collect(maps.Values(items)))
}
