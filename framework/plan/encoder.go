package plan

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// encoder converts Go values to JSON values: nil, a bool, string, int64, float64, []any or
// map[string]any. In contrast to encoding/json it supports every value (values that JSON does not
// support become text), includes unexported fields, and hides what must not be shown.
type encoder struct {
	// onlySet leaves out the fields of structs that are zero.
	onlySet bool
	// plain hides nothing.
	plain bool
	// apart also encodes the structure of values that marshal themselves.
	apart bool
	// path leads to the value that is being encoded.
	path path
}

// encode returns a value for Diff. The result must pass through redact before it is shown.
func (e encoder) encode(value any) any { return e.finish(e.value(reflect.ValueOf(value))) }

// finish hides the Secrets that are recognized only by their content.
func (e encoder) finish(made any) any {
	if e.plain {
		return made
	}
	return hideSecrets(made, hasSecretKind)
}

func (e encoder) value(v reflect.Value) any {
	for v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() || nillable(v) && v.IsNil() {
		return nil
	}
	if e.path.contains(v) {
		return "(itself)"
	}
	if !e.plain && confidential(v) {
		e.plain = true
		return digestOf(e.value(v))
	}
	e.path = e.path.with(v)
	v = recognized(v)
	if o, ok := kubernetesObject(v); ok {
		return e.content(o)
	}
	return e.structure(v)
}

// structure encodes a value by its structure, even if it is an object.
func (e encoder) structure(v reflect.Value) any {
	if made, ok := marshaled(v); ok && !e.apart {
		return e.guess(made)
	}
	switch v.Kind() {
	case reflect.Pointer:
		return e.value(v.Elem())
	case reflect.Struct:
		return e.fields(v)
	case reflect.Map:
		made := make(map[string]any, v.Len())
		for _, entry := range entriesOf(v) {
			made[entry.key] = e.value(entry.value)
		}
		if !e.plain && looksLikeSecret(made) {
			return hideSecret(made)
		}
		return made
	case reflect.Slice, reflect.Array:
		return e.elements(v)
	}
	return e.guess(scalar(v))
}

// guess hides everything that looks like a Secret in a value of unknown Go types.
func (e encoder) guess(made any) any {
	if e.plain {
		return made
	}
	return hideSecrets(made, looksLikeSecret)
}

// fields returns the fields of a struct under their names in JSON.
func (e encoder) fields(v reflect.Value) map[string]any {
	v = addressable(v)
	made := make(map[string]any, v.NumField())
	for i := range v.NumField() {
		f, field := v.Type().Field(i), v.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Name == "_" || e.onlySet && field.IsZero() || omitted(field, strings.Split(options, ",")) {
			continue
		}
		if !f.IsExported() {
			// Otherwise no method of the value can be called. The methods define how to show it,
			// and whether it may be shown.
			field = reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
		}
		encoded := e.value(field)
		if inner, ok := encoded.(map[string]any); ok && f.Anonymous && name == "" {
			for name, value := range inner {
				if _, hidden := made[name]; !hidden {
					made[name] = value
				}
			}
			continue
		}
		if name == "" || name == "-" || !f.IsExported() {
			name = f.Name
		}
		made[name] = encoded
	}
	return made
}

// omitted reports whether encoding/json would leave out a field with these options.
func omitted(field reflect.Value, options []string) bool {
	if slices.Contains(options, "omitzero") && field.IsZero() {
		return true
	}
	if !slices.Contains(options, "omitempty") {
		return false
	}
	switch field.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return field.Len() == 0
	case reflect.Struct:
		return false
	}
	return field.IsZero()
}

func (e encoder) elements(v reflect.Value) any {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		b := make([]byte, v.Len())
		for i := range b {
			b[i] = byte(v.Index(i).Uint())
		}
		if !e.plain && quotesSecret(string(b)) {
			return digestOf(b)
		}
		return base64.StdEncoding.EncodeToString(b)
	}
	made := make([]any, 0, v.Len())
	for i := range v.Len() {
		made = append(made, e.value(v.Index(i)))
	}
	return made
}

// marshaled returns the value's own JSON, text or error message, if it has a method for one that
// succeeds.
func marshaled(v reflect.Value) (any, bool) {
	var made any
	if m, ok := as[json.Marshaler](v); ok {
		if b, err := m.MarshalJSON(); err == nil && utiljson.Unmarshal(b, &made) == nil {
			return made, true
		}
	}
	if m, ok := as[encoding.TextMarshaler](v); ok {
		if b, err := m.MarshalText(); err == nil {
			return string(b), true
		}
	}
	if err, ok := as[error](v); ok {
		return err.Error(), true
	}
	return nil, false
}

func scalar(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Bool:
		return v.Bool()
	case reflect.String:
		return v.String()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		if n := v.Uint(); n <= math.MaxInt64 {
			return int64(n)
		}
	case reflect.Float32, reflect.Float64:
		if f := v.Float(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		// An address would differ each time.
		return v.Type().String()
	}
	return fmt.Sprint(v.Interface())
}
