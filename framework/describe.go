package framework

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/faults"
)

// describe names an object for people by kind, namespace and name, as far as they are known.
func describe(obj any, key informer.Key) string {
	kind := kindOf(obj)
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

// kindOf returns the kind of a Kubernetes object that has it set, and otherwise the name of the
// type.
func kindOf(obj any) string {
	if gvk, ok := gvkOf(obj); ok {
		return gvk.Kind
	}
	return typeNameOf(obj)
}

// typeNameOf returns the name of an object's type. For a pointer it is the name of the type it
// points to.
func typeNameOf(obj any) string {
	if obj == nil {
		return ""
	}
	t := reflect.TypeOf(obj)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

// gvkOf returns the kind that a Kubernetes object carries, if it is set: in typed ones it mostly
// isn't.
func gvkOf(obj any) (schema.GroupVersionKind, bool) {
	o, ok := obj.(runtime.Object)
	if !ok || isNil(obj) {
		return schema.GroupVersionKind{}, false
	}
	gvk := o.GetObjectKind().GroupVersionKind()
	return gvk, gvk.Kind != ""
}

// objectOf names an object in a plan.
func objectOf(obj any, key informer.Key) plan.Object {
	o := plan.Object{Namespace: key.Namespace, Name: key.Name}
	if gvk, ok := gvkOf(obj); ok {
		o.APIVersion, o.Kind = gvk.GroupVersion().String(), gvk.Kind
	} else {
		o.Kind = typeNameOf(obj)
	}
	if m, ok := metaOf(obj); ok {
		o.Namespace, o.Name, o.UID = m.GetNamespace(), m.GetName(), m.GetUID()
	}
	if v, ok := obj.(interface{ GetResourceVersion() string }); ok && !isNil(obj) {
		o.Version = v.GetResourceVersion()
	}
	return o
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

func isNil(obj any) bool { return faults.IsNil(obj) }

func uidOf(obj any) types.UID {
	if m, ok := metaOf(obj); ok {
		return m.GetUID()
	}
	return ""
}

// beingDeleted reports whether the deletion of an object has been requested.
func beingDeleted(obj any) bool {
	m, ok := metaOf(obj)
	return ok && m.GetDeletionTimestamp() != nil
}
