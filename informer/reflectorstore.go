package informer

import (
	"k8s.io/client-go/tools/cache"
)

var (
	_ cache.TransformingStore      = (*reflectorStore)(nil)
	_ cache.ReflectorBookmarkStore = (*reflectorStore)(nil)
)

// reflectorStore passes what the reflector receives for one namespace on to the feed. None of its methods returns an
// error, because the reflector would log it together with the object.
type reflectorStore struct {
	k         *Kubernetes
	namespace string
	contact   func()
}

func (s *reflectorStore) Add(obj any) error {
	s.contact()
	if item, ok := s.k.prepare.item(obj); ok {
		s.k.feed.Set(item)
	}
	return nil
}

func (s *reflectorStore) Update(obj any) error { return s.Add(obj) }

func (s *reflectorStore) Delete(obj any) error {
	s.contact()
	if item, ok := s.k.prepare.item(obj); ok {
		s.k.feed.Delete(item.Key, item.Object)
	}
	return nil
}

func (s *reflectorStore) Replace(objs []any, _ string) error {
	s.contact()
	items := make([]Item, 0, len(objs))
	for _, obj := range objs {
		if item, ok := s.k.prepare.item(obj); ok {
			items = append(items, item)
		}
	}
	s.k.feed.Replace(s.namespace, items)
	return nil
}

// Bookmark is a sign of life from the server.
func (s *reflectorStore) Bookmark(string) error {
	s.contact()
	return nil
}

// Resync does nothing: the source resyncs on its own, for all namespaces at once and across reconnects.
func (s *reflectorStore) Resync() error { return nil }

// Transformer keeps what a streamed list collects as small as what is stored.
func (s *reflectorStore) Transformer() cache.TransformFunc { return s.k.prepare.transform }
