package informer

import (
	"encoding/binary"
	"maps"
	"reflect"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// minPacked is the number of entries from which on an object is packed. It counts the maps of its
// content, such as the data of a ConfigMap.
const minPacked = 4

// packed is a stored object that consists of maps of texts, such as a ConfigMap or a Secret. A map
// takes half again the size of its texts, and each text is rounded up to a size class of the
// allocator. packed joins the texts into one, and shares the keys with other objects.
type packed struct {
	// rest is the object without these maps. It is immutable.
	rest   client.Object
	layout *layout
	// texts are the values in the order of the layout, each after its length as a uvarint.
	texts string
}

// layout describes the maps of an object and their keys.
type layout struct{ maps []mapLayout }

// mapLayout is the place of a map among those of its type, and its keys in order.
type mapLayout struct {
	place int
	keys  []string
}

// mapsOf holds the paths of the fields of a type that are maps of texts. The first metadata of them
// belong to the object's metadata.
type mapsOf struct {
	paths    [][]int
	metadata int
}

// mapsOfTypes caches mapsOf by reflect.Type. It has one entry for each kind.
var mapsOfTypes sync.Map

func mapsOfType(t reflect.Type) *mapsOf {
	if known, ok := mapsOfTypes.Load(t); ok {
		return known.(*mapsOf)
	}
	found := &mapsOf{}
	meta, ok := t.FieldByName("ObjectMeta")
	if ok && meta.Type == reflect.TypeFor[metav1.ObjectMeta]() {
		for _, name := range []string{"Labels", "Annotations"} {
			field, _ := meta.Type.FieldByName(name)
			found.paths = append(found.paths, append(slices.Clone(meta.Index), field.Index...))
		}
		found.metadata = len(found.paths)
		for _, field := range reflect.VisibleFields(t) {
			of := field.Type
			if len(field.Index) == 1 && field.IsExported() && (of == reflect.TypeFor[map[string]string]() || of == reflect.TypeFor[map[string][]byte]()) {
				found.paths = append(found.paths, field.Index)
			}
		}
	}
	known, _ := mapsOfTypes.LoadOrStore(t, found)
	return known.(*mapsOf)
}

// pack returns the stored form of an object: the object itself, unless packing saves memory. The
// result shares data with the object, which must not be changed from then on.
func (in *interner) pack(obj any) any {
	o, ok := obj.(client.Object)
	if value := reflect.ValueOf(obj); !ok || value.Kind() != reflect.Pointer || value.Elem().Kind() != reflect.Struct {
		return obj
	}
	value := reflect.ValueOf(o).Elem()
	of := mapsOfType(value.Type())
	entries := 0
	for _, path := range of.paths[of.metadata:] {
		entries += value.FieldByIndex(path).Len()
	}
	if entries < minPacked {
		return obj
	}
	rest := reflect.New(value.Type())
	rest.Elem().Set(value)
	l := &layout{}
	var texts []byte
	for place, path := range of.paths {
		var keys []string
		switch m := value.FieldByIndex(path).Interface().(type) {
		case map[string]string:
			keys = slices.Sorted(maps.Keys(m))
			for _, key := range keys {
				texts = appendText(texts, m[key])
			}
		case map[string][]byte:
			if hasNil(m) {
				continue // It would not be restored.
			}
			keys = slices.Sorted(maps.Keys(m))
			for _, key := range keys {
				texts = appendText(texts, m[key])
			}
		}
		if len(keys) > 0 {
			l.maps = append(l.maps, mapLayout{place, keys})
			rest.Elem().FieldByIndex(path).SetZero()
		}
	}
	if len(l.maps) == 0 {
		return obj
	}
	return &packed{rest.Interface().(client.Object), in.shareLayout(l), string(texts)}
}

func hasNil(m map[string][]byte) bool {
	for _, value := range m {
		if value == nil {
			return true
		}
	}
	return false
}

// shareLayout returns a layout that is shared by equal ones.
func (in *interner) shareLayout(l *layout) *layout {
	in.mu.Lock()
	defer in.mu.Unlock()
	size := 0
	for _, m := range l.maps {
		for _, key := range m.keys {
			size += len(key) + 1
		}
	}
	var content []byte
	if size <= maxInternedContent {
		for _, m := range l.maps {
			content = binary.AppendUvarint(append(content, byte(m.place)), uint64(len(m.keys)))
			for _, key := range m.keys {
				content = appendText(content, key)
			}
		}
		if shared, ok := in.layouts[string(content)]; ok {
			return shared
		}
	}
	for _, m := range l.maps {
		for i, key := range m.keys {
			m.keys[i] = in.share(key)
		}
	}
	if size <= maxInternedContent {
		if len(in.layouts) >= maxInternedMaps {
			in.layouts = map[string]*layout{}
		}
		in.layouts[string(content)] = l
	}
	return l
}

// GetUID returns the UID of the object.
func (p *packed) GetUID() types.UID { return p.rest.GetUID() }

// object returns a private copy of the object.
func (p *packed) object() runtime.Object {
	obj := p.rest.DeepCopyObject()
	value := reflect.ValueOf(obj).Elem()
	of := mapsOfType(value.Type())
	left := p.texts
	next := func() string {
		size, n := uvarint(left)
		text := left[n : n+size]
		left = left[n+size:]
		return text
	}
	for _, m := range p.layout.maps {
		switch to := value.FieldByIndex(of.paths[m.place]).Addr().Interface().(type) {
		case *map[string]string:
			*to = make(map[string]string, len(m.keys))
			for _, key := range m.keys {
				(*to)[key] = next()
			}
		case *map[string][]byte:
			*to = make(map[string][]byte, len(m.keys))
			for _, key := range m.keys {
				(*to)[key] = []byte(next())
			}
		}
	}
	return obj
}

// uvarint is binary.Uvarint of a text.
func uvarint(text string) (value, n int) {
	for shift := 0; ; shift += 7 {
		b := text[n]
		n++
		value |= int(b&0x7f) << shift
		if b < 0x80 {
			return value, n
		}
	}
}

// whole returns a stored object in the form that subscribers get. It may share data with the store.
func whole(held any) any {
	if p, ok := held.(*packed); ok {
		return p.object()
	}
	return held
}
