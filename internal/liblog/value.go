package liblog

import (
	"fmt"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
)

// harmless returns what may be written of a value that a library gives: plain values as they are,
// objects as their kind and name, and of everything else, which could hold a Secret, the type.
func harmless(v any) any {
	switch v := v.(type) {
	case nil:
		return nil
	case runtime.Object:
		return nameOf(v)
	case error:
		return fmt.Sprint(v)
	case time.Time, time.Duration:
		return v
	case logr.Marshaler:
		return fmt.Sprintf("%+v", v.MarshalLog())
	case []byte:
		return fmt.Sprintf("%d bytes", len(v))
	case []string:
		return v
	case interface{ Unmarshal([]byte) error }:
		// A part of an object: its String method would show all of it.
		return fmt.Sprintf("%T", v)
	case fmt.Stringer:
		return fmt.Sprint(v)
	}
	if kind := reflect.TypeOf(v).Kind(); kind <= reflect.Complex128 || kind == reflect.String {
		return v // A number, a bool or a text.
	}
	return fmt.Sprintf("%T", v)
}

// nameOf returns the kind and the name of an object, and its type if it has none.
func nameOf(obj runtime.Object) string {
	name, of := "", fmt.Sprintf("%T", obj)
	if m, ok := obj.(klog.KMetadata); ok {
		name = klog.KObj(m).String() // Empty for a nil pointer.
	}
	if name == "" {
		return of
	}
	if kind := obj.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		of = kind
	}
	return of + " " + name
}
