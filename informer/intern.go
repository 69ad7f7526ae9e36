package informer

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The limits of an interner. Longer strings are rarely repeated (a namespace has up to 63
// characters). A table that is full of strings that occur once is dropped and started again.
const (
	maxInternedLength  = 128
	maxInternedValue   = 63
	maxInternedStrings = 8192
	maxInternedContent = 1024
	maxInternedMaps    = 1024
)

// interner lets objects share equal strings and maps. A decoder allocates each of them separately,
// so ten thousand objects hold ten thousand copies of their namespace, labels and owner.
type interner struct {
	mu      sync.Mutex
	strings map[string]string
	maps    map[string]map[string]string
	layouts map[string]*layout
	yes     *bool
	no      *bool
}

func newInterner() *interner {
	return &interner{
		strings: map[string]string{},
		maps:    map[string]map[string]string{},
		layouts: map[string]*layout{},
		yes:     new(true),
		no:      new(false),
	}
}

// compact shares the parts of an object's metadata that are likely to be repeated, and the strings
// of an unstructured object. Empty maps become nil.
func (in *interner) compact(obj any) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if u, ok := obj.(*unstructured.Unstructured); ok {
		in.content(u.Object)
		return
	}
	accessor, ok := obj.(metav1.ObjectMetaAccessor)
	if !ok {
		return
	}
	if m, ok := accessor.GetObjectMeta().(*metav1.ObjectMeta); ok {
		in.objectMeta(m)
	}
}

func (in *interner) objectMeta(m *metav1.ObjectMeta) {
	m.Namespace = in.share(m.Namespace)
	m.GenerateName = in.share(m.GenerateName)
	m.Labels = in.shareMap(m.Labels)
	m.Annotations = in.shareMap(m.Annotations)
	for i := range m.Finalizers {
		m.Finalizers[i] = in.share(m.Finalizers[i])
	}
	for i := range m.OwnerReferences {
		ref := &m.OwnerReferences[i]
		ref.APIVersion = in.share(ref.APIVersion)
		ref.Kind = in.share(ref.Kind)
		ref.Name = in.share(ref.Name)
		ref.UID = sharedUID(in, ref.UID)
		ref.Controller = in.shareBool(ref.Controller)
		ref.BlockOwnerDeletion = in.shareBool(ref.BlockOwnerDeletion)
	}
}

// sharedUID is share for a string type, without a second conversion at each use.
func sharedUID[S ~string](in *interner, s S) S { return S(in.share(string(s))) }

func (in *interner) shareMap(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	for key, value := range m {
		m[in.share(key)] = in.share(value)
	}
	content, ok := contentOf(m)
	if !ok {
		return m
	}
	if shared, ok := in.maps[content]; ok {
		return shared
	}
	if len(in.maps) >= maxInternedMaps {
		in.maps = map[string]map[string]string{}
	}
	in.maps[content] = m
	return m
}

// contentOf encodes a small map as one string, which is equal only for equal maps.
func contentOf(m map[string]string) (string, bool) {
	size := 0
	for key, value := range m {
		size += len(key) + len(value) + 2
	}
	if size > maxInternedContent {
		return "", false
	}
	content := make([]byte, 0, size)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		content = appendText(appendText(content, key), m[key])
	}
	return string(content), true
}

// appendText appends a text after its length as a uvarint. A separator would not do: texts from
// users may contain any character, even NUL.
func appendText[T string | []byte](to []byte, text T) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

func (in *interner) shareBool(b *bool) *bool {
	switch {
	case b == nil:
		return nil
	case *b:
		return in.yes
	}
	return in.no
}

// content shares the keys and short values of decoded JSON at any depth.
func (in *interner) content(value any) any {
	switch v := value.(type) {
	case string:
		return in.shareAny(v, value)
	case map[string]any:
		for key, element := range v {
			v[in.share(key)] = in.content(element)
		}
	case []any:
		for i, element := range v {
			v[i] = in.content(element)
		}
	}
	return value
}

// shareAny shares a string. It returns boxed, without boxing it again, if s is too long to share.
func (in *interner) shareAny(s string, boxed any) any {
	if len(s) > maxInternedValue {
		return boxed
	}
	return in.share(s)
}

func (in *interner) share(s string) string {
	if s == "" || len(s) > maxInternedLength {
		return s
	}
	if shared, ok := in.strings[s]; ok {
		return shared
	}
	if len(in.strings) >= maxInternedStrings {
		in.strings = map[string]string{}
	}
	s = strings.Clone(s)
	in.strings[s] = s
	return s
}
