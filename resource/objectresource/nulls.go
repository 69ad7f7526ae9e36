package objectresource

import (
	"encoding/json"
	"reflect"
	"strings"
)

// dropNulls removes what a Go value writes for a nil without omitempty: applied as null it would take fields away. What writes its JSON itself,
// such as values of a chart, and what has no type, such as the values of a map[string]any, may say null and mean it.
func dropNulls(of reflect.Value, value any) {
	for of.Kind() == reflect.Pointer && !of.IsNil() {
		of = of.Elem()
	}
	switch value := value.(type) {
	case map[string]any:
		switch {
		case of.Kind() == reflect.Struct && !writesItself(of.Type()):
			dropNullFields(of, value)
		case of.Kind() == reflect.Map && !writesItself(of.Type()) && of.Type().Key().Kind() == reflect.String:
			for name, field := range value {
				dropNull(of.MapIndex(reflect.ValueOf(name).Convert(of.Type().Key())), value, name, field)
			}
		}
	case []any:
		if of.Kind() == reflect.Slice && of.Len() == len(value) {
			for i, element := range value {
				dropNulls(of.Index(i), element)
			}
		}
	}
}

// dropNullFields drops the nulls in the fields of a struct.
func dropNullFields(of reflect.Value, fields map[string]any) {
	for i := range of.NumField() {
		field := of.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && field.Anonymous {
			dropNulls(of.Field(i), fields)
			continue
		}
		if name == "" {
			name = field.Name
		}
		if value, ok := fields[name]; ok {
			dropNull(of.Field(i), fields, name, value)
		}
	}
}

// dropNull drops a field if it is the null of a Go value that is nothing, and otherwise the nulls in it.
func dropNull(of reflect.Value, fields map[string]any, name string, value any) {
	switch {
	case !of.IsValid() || of.Kind() == reflect.Interface:
	case value == nil && (of.IsZero() || !writesItself(of.Type())):
		delete(fields, name)
	default:
		dropNulls(of, value)
	}
}

var marshaler = reflect.TypeFor[json.Marshaler]()

// writesItself tells whether a type writes its JSON itself.
func writesItself(t reflect.Type) bool {
	return t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler)
}
