package logging

import (
	"fmt"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
)

// harmless returns what may be written of a value that a library gives: plain values as they are, objects as their kind
// and name, and of everything else, which could hold a Secret, the type.
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
	case klog.ObjectRef:
		return v.String()
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
	switch value := reflect.ValueOf(v); value.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return v
	}
	return fmt.Sprintf("%T", v)
}

func nameOf(obj runtime.Object) string {
	if value := reflect.ValueOf(obj); value.Kind() == reflect.Pointer && value.IsNil() {
		return "nil"
	}
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = fmt.Sprintf("%T", obj)
	}
	m, ok := obj.(metav1.Object)
	switch {
	case !ok:
		return kind
	case m.GetNamespace() == "":
		return kind + " " + m.GetName()
	}
	return kind + " " + m.GetNamespace() + "/" + m.GetName()
}
