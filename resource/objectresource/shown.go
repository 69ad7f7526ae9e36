package objectresource

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// withoutEmptyStructs returns the fields of an object that its author gave as a Go type without the structs that are empty there although their
// type says omitempty, such as the strategy of a Deployment: encoding/json writes them, and they say nothing. Pointers to such structs do say
// something, as the emptyDir of a volume, and stay. The fields are not changed.
func withoutEmptyStructs(given client.Object, fields map[string]any) map[string]any {
	pruned, _ := pruned(reflect.ValueOf(given), fields).(map[string]any)
	return pruned
}

func pruned(v reflect.Value, value any) any {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch value := value.(type) {
	case map[string]any:
		if v.Kind() == reflect.Struct {
			value = maps.Clone(value)
			pruneFields(v, value)
		}
		return value
	case []any:
		if v.Kind() == reflect.Slice && v.Len() == len(value) {
			value = slices.Clone(value)
			for i := range value {
				value[i] = pruned(v.Index(i), value[i])
			}
		}
		return value
	}
	return value
}

// pruneFields prunes the fields of a struct in place.
func pruneFields(v reflect.Value, fields map[string]any) {
	for i := range v.NumField() {
		name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name == "" {
			if v.Type().Field(i).Anonymous && v.Field(i).Kind() == reflect.Struct {
				pruneFields(v.Field(i), fields)
			}
			continue
		}
		field, ok := fields[name]
		if !ok {
			continue
		}
		fields[name] = pruned(v.Field(i), field)
		if object, ok := fields[name].(map[string]any); ok && len(object) == 0 && v.Field(i).Kind() == reflect.Struct && strings.Contains(options, "omitempty") {
			delete(fields, name)
		}
	}
}
