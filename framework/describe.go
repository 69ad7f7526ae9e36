package framework

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operatorkit/operatorkit/informer"
)

// describe names an object for people: kind, namespace and name, as far as they are known.
func describe(obj any, key informer.Key) string {
	kind := ""
	if o, ok := obj.(runtime.Object); ok && !isNil(obj) {
		kind = o.GetObjectKind().GroupVersionKind().Kind
	}
	if kind == "" && obj != nil {
		t := reflect.TypeOf(obj)
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		kind = t.Name()
	}
	if m, ok := metaOf(obj); ok && key.Name == "" {
		key = informer.Key{Namespace: m.GetNamespace(), Name: m.GetName()}
	}
	name := keyString(key)
	switch {
	case kind == "":
		return name
	case name == "":
		return kind
	}
	return kind + " " + name
}

func keyString(key informer.Key) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.Namespace + "/" + key.Name
}

// metaOf returns the metadata of an object that has some.
func metaOf(obj any) (informer.Meta, bool) {
	m, ok := obj.(informer.Meta)
	return m, ok && !isNil(obj)
}

func isNil(obj any) bool {
	v := reflect.ValueOf(obj)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
