package plan

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	kruntime "k8s.io/apimachinery/pkg/runtime"
)

// item is an item in a part of a patch, or in a state.
type item struct {
	value reflect.Value
	// place is its position, such as a key of a map or "[2]". It is empty for a part that is one
	// item.
	place string
	// listed is set for the elements of slices and arrays.
	listed bool
}

// itemsIn returns the items of a value, in its order.
func itemsIn(value any) []item {
	var all []item
	collect(item{value: reflect.ValueOf(value)}, nil, func(t item) { all = append(all, t) })
	return all
}

func collect(t item, p path, found func(item)) {
	v := t.value
	for v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() || nillable(v) && v.IsNil() {
		return
	}
	t.value = v
	if p.contains(v) || describesItself(v) {
		found(t)
		return
	}
	v = objectIn(recognized(v), t.place)
	t.value = v
	if _, ok := kubernetesObject(v); ok {
		found(t)
		return
	}
	if l, ok := as[kruntime.Object](v); ok && meta.IsListType(l) {
		if items, err := meta.ExtractList(l); err == nil {
			collect(item{value: reflect.ValueOf(named(items, l)), place: t.place}, p, found)
			return
		}
	}
	p = p.with(v)
	switch {
	case !container(v):
		found(t)
	case v.Kind() == reflect.Pointer:
		collect(item{value: v.Elem(), place: t.place}, p, found)
	case v.Kind() == reflect.Map:
		for _, e := range entriesOf(v) {
			collect(item{value: e.value, place: join(t.place, e.key)}, p, found)
		}
	default:
		for i := range v.Len() {
			place := fmt.Sprintf("%s[%d]", t.place, i)
			collect(item{value: v.Index(i), place: place, listed: true}, p, found)
		}
	}
}

// describesItself reports whether a value has methods that describe it.
func describesItself(v reflect.Value) bool {
	return implements[Changer](v) || implements[Describer](v) || implements[Confidential](v)
}

// container reports whether the elements of a value are items. Bytes are not items, such as the
// bytes of an address.
func container(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map:
		return true
	case reflect.Slice, reflect.Array:
		return v.Type().Elem().Kind() != reflect.Uint8
	case reflect.Pointer:
		return container(v.Elem())
	}
	return false
}

func nillable(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface, reflect.Func, reflect.Chan,
		reflect.UnsafePointer:
		return true
	}
	return false
}

// as returns the value as a T, if it or a pointer to it is one.
func as[T any](v reflect.Value) (T, bool) {
	if t, ok := v.Interface().(T); ok {
		return t, true
	}
	var none T
	if v.Kind() == reflect.Pointer || !reflect.PointerTo(v.Type()).Implements(reflect.TypeFor[T]()) {
		return none, false
	}
	return addressable(v).Addr().Interface().(T), true
}

func implements[T any](v reflect.Value) bool {
	t := v.Type()
	wanted := reflect.TypeFor[T]()
	return t.Implements(wanted) || t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(wanted)
}

// addressable returns the value itself if its address can be taken, and otherwise a copy with an
// address.
func addressable(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return v
	}
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	return c
}

// entry is an entry of a map.
type entry struct {
	key   string
	value reflect.Value
}

// entriesOf returns the entries of a map, sorted by key.
func entriesOf(m reflect.Value) []entry {
	entries := make([]entry, 0, m.Len())
	for _, key := range m.MapKeys() {
		entries = append(entries, entry{keyText(key), m.MapIndex(key)})
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	return entries
}

// keyText returns a key as encoding/json writes it, and for other types as fmt does.
func keyText(key reflect.Value) string {
	for key.Kind() == reflect.Interface {
		key = key.Elem()
	}
	if key.Kind() == reflect.String {
		return key.String()
	}
	if m, ok := key.Interface().(encoding.TextMarshaler); ok {
		if text, err := m.MarshalText(); err == nil {
			return string(text)
		}
	}
	return fmt.Sprint(key.Interface())
}

func join(place, key string) string {
	if place == "" {
		return key
	}
	return place + "/" + key
}
