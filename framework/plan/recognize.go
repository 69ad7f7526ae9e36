package plan

import (
	"encoding/json"
	"maps"
	"net/url"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
)

// recognized returns a value in a form by which its content is recognized: the Secret for a type
// that is derived from it, the object in an envelope, and a URL without its password. Any other
// value is returned unchanged.
func recognized(v reflect.Value) reflect.Value {
	inner := v
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		inner = v.Elem()
	}
	if inner.Kind() != reflect.Struct || !inner.CanInterface() {
		return v
	}
	switch known := inner.Interface().(type) {
	case corev1.Secret:
		return v
	case kruntime.RawExtension:
		if known.Object != nil {
			return reflect.ValueOf(known.Object)
		}
		return v
	case url.URL:
		return reflect.ValueOf(known.Redacted())
	}
	if secret := reflect.TypeFor[corev1.Secret](); inner.Type().ConvertibleTo(secret) {
		made := reflect.New(secret)
		made.Elem().Set(inner.Convert(secret))
		return made
	}
	return v
}

// objectIn returns a map or raw JSON of a Kubernetes object as that object, and any other value
// unchanged. A value without a kind that looks like a Secret counts as a Secret. An object without
// a name gets its place as its name.
func objectIn(v reflect.Value, place string) (object reflect.Value) {
	defer func() {
		if recover() != nil {
			object = v // describing it later will fail
		}
	}()
	if _, ok := kubernetesObject(v); ok {
		return v
	}
	if _, marshals := as[json.Marshaler](v); !marshals && v.Kind() != reflect.Map {
		return v
	}
	fields, ok := encoder{plain: true}.encode(v.Interface()).(map[string]any)
	if !ok {
		return v
	}
	if looksLikeSecret(fields) {
		fields["apiVersion"], fields["kind"] = "v1", "Secret"
	}
	u := &unstructured.Unstructured{Object: fields}
	switch {
	case u.GetAPIVersion() == "" || u.GetKind() == "":
		return v
	case u.IsList():
		if list, err := u.ToList(); err == nil {
			return reflect.ValueOf(list)
		}
	case u.GetName() == "" && place != "":
		u.SetName(place)
	}
	return reflect.ValueOf(u)
}

// named returns the items of a list with the kind from the list.
func named(items []kruntime.Object, list kruntime.Object) []kruntime.Object {
	gvk := list.GetObjectKind().GroupVersionKind()
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	for i, item := range items {
		u, ok := item.(*unstructured.Unstructured)
		if !ok || gvk.Kind == "" || u.GetKind() != "" {
			continue
		}
		u = &unstructured.Unstructured{Object: maps.Clone(u.Object)}
		u.SetGroupVersionKind(gvk)
		items[i] = u
	}
	return items
}
