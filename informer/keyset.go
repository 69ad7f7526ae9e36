package informer

import (
	"maps"
	"slices"
)

// fewKeys is how many keys a keySet searches one by one. Most owners own less, and a map costs three times the memory.
const fewKeys = 16

// keySet is a set of keys that is small in memory when it has few members. The zero value is empty.
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
