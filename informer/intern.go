package informer

import (
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The limits of an interner: longer strings are rarely repeated (a UID has 36 characters), and a table that is full of
// names that occur once is thrown away and begun anew.
const (
	maxInternedLength  = 128
	maxInternedValue   = 32
	maxInternedStrings = 8192
)

// interner lets equal strings of different objects share their bytes. A decoder allocates each string anew, so that ten
// thousand objects hold ten thousand copies of their namespace, label keys and owner.
type interner struct {
	mu    sync.Mutex
	table map[string]string
	yes   *bool
	no    *bool
}

func newInterner() *interner {
	return &interner{table: map[string]string{}, yes: new(true), no: new(false)}
}

// compact shares the strings of an object that are likely to be repeated. Empty maps become nil.
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
	return m
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

// shareAny does not box a string anew that stays as it is.
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
	if shared, ok := in.table[s]; ok {
		return shared
	}
	if len(in.table) >= maxInternedStrings {
		in.table = map[string]string{}
	}
	s = strings.Clone(s)
	in.table[s] = s
	return s
}
