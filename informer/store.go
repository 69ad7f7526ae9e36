package informer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// IndexFunc returns the values under which an index files an object, such as the names of its
// owners. It must not modify obj, and must always return the same values for the same object.
type IndexFunc func(obj any) []string

// entry is a stored object, perhaps packed. It is immutable.
type entry struct {
	object  any
	version string
}

// store holds the objects of a source and their indexes. Keys share their strings with the objects.
// They exist once for each object and once more for each index value.
type store struct {
	entries map[Key]entry
	indexes map[string]*index
}

type index struct {
	values IndexFunc
	keys   map[string]keySet
}

func newStore(indexers map[string]IndexFunc) store {
	s := store{entries: map[Key]entry{}, indexes: map[string]*index{}}
	for name, values := range indexers {
		s.indexes[name] = &index{values: values, keys: map[string]keySet{}}
	}
	return s
}

// put stores an entry. obj is the whole object of the entry.
func (s *store) put(key Key, e entry, obj any) {
	s.remove(key)
	s.entries[key] = e
	for _, ix := range s.indexes {
		for _, value := range ix.values(obj) {
			ix.keys[value] = ix.keys[value].with(key)
		}
	}
}

func (s *store) remove(key Key) {
	old, ok := s.entries[key]
	if !ok {
		return
	}
	delete(s.entries, key)
	if len(s.indexes) == 0 {
		return
	}
	obj := whole(old.object)
	for _, ix := range s.indexes {
		for _, value := range ix.values(obj) {
			keys := ix.keys[value].without(key)
			if keys.empty() {
				delete(ix.keys, value)
				continue
			}
			ix.keys[value] = keys
		}
	}
}

// byIndex returns the entries under a value of an index, in stored form.
func (s *store) byIndex(name, value string) ([]Item, error) {
	ix, ok := s.indexes[name]
	if !ok {
		names := slices.Sorted(maps.Keys(s.indexes))
		return nil, fmt.Errorf("no index %q: this source has [%s], see Indexers of its configuration", name, strings.Join(names, " "))
	}
	keys := ix.keys[value].list()
	items := make([]Item, 0, len(keys))
	for _, key := range keys {
		e := s.entries[key]
		items = append(items, Item{Key: key, Object: e.object, Version: e.version})
	}
	return items, nil
}

// fewKeys is how many keys a keySet searches one by one. Most owners own fewer objects, and a map
// takes three times the memory.
const fewKeys = 16

// keySet is a set of keys that takes little memory for few members. The zero value is empty.
type keySet struct {
	few  []Key
	many map[Key]struct{}
}

func (s keySet) with(key Key) keySet {
	if s.many != nil {
		s.many[key] = struct{}{}
		return s
	}
	if slices.Contains(s.few, key) {
		return s
	}
	if len(s.few) < fewKeys {
		s.few = append(s.few, key)
		return s
	}
	many := make(map[Key]struct{}, len(s.few)+1)
	for _, k := range s.few {
		many[k] = struct{}{}
	}
	many[key] = struct{}{}
	return keySet{many: many}
}

func (s keySet) without(key Key) keySet {
	if s.many != nil {
		delete(s.many, key)
		return s
	}
	i := slices.Index(s.few, key)
	if i < 0 {
		return s
	}
	last := len(s.few) - 1
	s.few[i] = s.few[last]
	s.few[last] = Key{}
	s.few = s.few[:last]
	return s
}

func (s keySet) empty() bool { return len(s.few) == 0 && len(s.many) == 0 }

func (s keySet) list() []Key {
	if s.many != nil {
		return slices.Collect(maps.Keys(s.many))
	}
	return s.few
}
