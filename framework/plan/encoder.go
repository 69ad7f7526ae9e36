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

// encoder makes JSON values of Go values: nil, a bool, string, int64, float64, []any or map[string]any. It differs from
// encoding/json in that it knows every value (what JSON does not know is written as text), has the fields that are not
// exported too, and covers what must not be shown.
type encoder struct {
	// onlySet leaves out the fields of structs that are zero.
	onlySet bool
	// plain covers nothing.
	plain bool
	// apart takes apart also what makes JSON of itself.
	apart bool
	// path leads to the value that is being encoded.
	path path
}

// encode returns a value for Diff. What is in it has to go through redact before anybody sees it.
func (e encoder) encode(value any) any { return e.finish(e.value(reflect.ValueOf(value))) }

// finish covers the Secrets that are known by their content only.
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

// structure encodes a value by its form, also when it is an object.
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

// guess covers in a value whose Go types are not known what looks like a Secret.
func (e encoder) guess(made any) any {
	if e.plain {
		return made
	}
	return hideSecrets(made, looksLikeSecret)
}

// fields returns the fields of a struct under the names that they have in JSON.
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
			// Without this no method of the value can be called: it would not be known how to show it, nor that it
			// must not be shown.
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

// omitted tells whether encoding/json would leave a field with these options out.
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

// marshaled is what the value makes of itself, if it does, and if that is what it should be.
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
		return v.Type().String() // An address would be another one each time.
	}
	return fmt.Sprint(v.Interface())
}
