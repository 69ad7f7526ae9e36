package plan

import (
	"reflect"
	"slices"
	"unsafe"
)

// path is the pointers, maps and slices through which a value was reached.
type path []step

type step struct {
	to  unsafe.Pointer
	typ reflect.Type
	len int
}

// with returns the path extended by v, if v is a reference.
func (p path) with(v reflect.Value) path {
	s, ok := stepTo(v)
	if !ok {
		return p
	}
	return append(slices.Clip(p), s)
}

// contains reports whether v refers to something on the path: then it contains itself.
func (p path) contains(v reflect.Value) bool {
	s, ok := stepTo(v)
	return ok && slices.Contains(p, s)
}

func stepTo(v reflect.Value) (step, bool) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Map:
		return step{v.UnsafePointer(), v.Type(), 0}, true
	case reflect.Slice:
		return step{v.UnsafePointer(), v.Type(), v.Len()}, v.Len() > 0
	}
	return step{}, false
}
