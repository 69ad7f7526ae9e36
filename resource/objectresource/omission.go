package objectresource

import (
	"encoding/json"
	"reflect"
	"strings"
)

// omission leaves fields out of the JSON of a Go value. Null says that nulls go which the value
// writes for a nil without omitempty: applied, they would take fields away. Empty says that structs
// go which are empty there although their type says omitempty, such as the strategy of a
// Deployment: they say nothing. A pointer to such a struct does say something, as the emptyDir of a
// volume, and stays.
//
// What writes its JSON itself, such as values of a chart, and what has no type, such as the values
// of a map[string]any, may say null and mean it.
type omission struct{ null, empty bool }

// from leaves fields out of value, which is the JSON of a Go value, in place.
func (o omission) from(of reflect.Value, value any) {
	for of.Kind() == reflect.Pointer && !of.IsNil() {
		of = of.Elem()
	}
	switch value := value.(type) {
	case map[string]any:
		switch {
		case of.Kind() == reflect.Struct && !writesItself(of.Type()):
			o.fromFields(of, value)
		case of.Kind() == reflect.Map && !writesItself(of.Type()) && of.Type().Key().Kind() == reflect.String:
			for name, field := range value {
				o.fromField(of.MapIndex(reflect.ValueOf(name).Convert(of.Type().Key())), value, name, field)
			}
		}
	case []any:
		if of.Kind() == reflect.Slice && of.Len() == len(value) {
			for i, element := range value {
				o.from(of.Index(i), element)
			}
		}
	}
}

func (o omission) fromFields(of reflect.Value, fields map[string]any) {
	for i := range of.NumField() {
		field := of.Type().Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && field.Anonymous {
			o.from(of.Field(i), fields)
			continue
		}
		if name == "" {
			name = field.Name
		}
		value, ok := fields[name]
		if !ok {
			continue
		}
		o.fromField(of.Field(i), fields, name, value)
		omits := o.empty && of.Field(i).Kind() == reflect.Struct && strings.Contains(options, "omitempty")
		if inner, isMap := value.(map[string]any); omits && isMap && len(inner) == 0 {
			delete(fields, name)
		}
	}
}

func (o omission) fromField(of reflect.Value, fields map[string]any, name string, value any) {
	switch {
	case !of.IsValid() || of.Kind() == reflect.Interface:
	case o.null && value == nil && (of.IsZero() || !writesItself(of.Type())):
		delete(fields, name)
	default:
		o.from(of, value)
	}
}

var marshaler = reflect.TypeFor[json.Marshaler]()

// writesItself tells whether a type writes its JSON itself.
func writesItself(t reflect.Type) bool {
	return t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler)
}
