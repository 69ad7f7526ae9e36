package compose

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
)

// leftIn calls name with the path of everything that is set in what is left of a part of a project. A
// list, a map or a type of whole from which nothing was taken is named as one; was is the part before.
func leftIn(path string, was, left reflect.Value, name func(path string)) {
	if !isSet(left) {
		return
	}
	switch left.Kind() {
	case reflect.Pointer, reflect.Interface:
		if left.Elem().Kind() == reflect.Struct {
			leftIn(path, element(was), left.Elem(), name)
			return
		}
	case reflect.Struct:
		if slices.Contains(whole, left.Type()) && same(was, left) {
			break
		}
		for _, f := range fieldsOf(was, left) {
			leftIn(join(path, f.name), f.was, f.left, name)
		}
		return
	case reflect.Map:
		// The maps of the project itself have many things of one kind.
		if left.Type() != extensions && strings.Contains(path, ".") && same(was, left) {
			break
		}
		for _, key := range slices.SortedFunc(slices.Values(left.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }) {
			if value := left.MapIndex(key); nested(value) {
				leftIn(join(path, key.String()), index(was, key), value, name)
			} else {
				name(join(path, key.String()))
			}
		}
		return
	case reflect.Slice:
		if same(was, left) {
			break
		}
		for i := range left.Len() {
			var before reflect.Value
			if was.IsValid() && i < was.Len() {
				before = was.Index(i)
			}
			leftIn(fmt.Sprintf("%s[%d]", path, i), before, left.Index(i), name)
		}
		return
	}
	name(path)
}

// whole are types that are named as one: their parts mean nothing alone, or have defaults that are not
// in the files.
var whole = []reflect.Type{
	reflect.TypeFor[types.BuildConfig](), reflect.TypeFor[types.DevelopConfig](), reflect.TypeFor[types.DeviceMapping](), reflect.TypeFor[types.DeviceRequest](),
	reflect.TypeFor[types.JobConfig](), reflect.TypeFor[types.ModelConfig](), reflect.TypeFor[types.NetworkConfig](),
}

var extensions = reflect.TypeFor[types.Extensions]()

// isSet reports whether a value is in the files. An empty list or map says nothing, unless its type knows
// better; a pointer to a number or a truth value is set even to zero.
func isSet(v reflect.Value) bool {
	if !v.IsValid() {
		return false
	}
	if z, ok := v.Interface().(interface{ IsZero() bool }); ok {
		return !z.IsZero()
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return !v.IsNil() && (v.Elem().Kind() != reflect.Struct || isSet(v.Elem()))
	case reflect.Map, reflect.Slice:
		return v.Len() > 0
	case reflect.Struct:
		return slices.ContainsFunc(fieldsOf(reflect.Value{}, v), func(f field) bool { return isSet(f.left) })
	default:
		return !v.IsZero()
	}
}

// field is a field of a struct by its name in the files.
type field struct {
	name      string
	was, left reflect.Value
}

// fieldsOf returns the fields by name, with those of embedded structs, and the extensions under the name "".
func fieldsOf(was, left reflect.Value) []field {
	var fields []field
	for i := range left.NumField() {
		f := left.Type().Field(i)
		var before reflect.Value
		if was.IsValid() {
			before = was.Field(i)
		}
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case !f.IsExported():
		case f.Anonymous:
			fields = append(fields, fieldsOf(before, left.Field(i))...)
		case f.Type == extensions:
			fields = append(fields, field{"", before, left.Field(i)})
		case name == "" || name == "-":
			fields = append(fields, field{strings.ToLower(f.Name), before, left.Field(i)})
		default:
			fields = append(fields, field{name, before, left.Field(i)})
		}
	}
	slices.SortStableFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return fields
}

// nested reports whether a value of a map has parts of its own.
func nested(v reflect.Value) bool {
	return v.Kind() == reflect.Struct || v.Kind() == reflect.Pointer && !v.IsNil() && v.Elem().Kind() == reflect.Struct
}

func same(was, left reflect.Value) bool {
	return was.IsValid() && reflect.DeepEqual(was.Interface(), left.Interface())
}

func element(v reflect.Value) reflect.Value {
	if !v.IsValid() {
		return v
	}
	return v.Elem()
}

func index(m, key reflect.Value) reflect.Value {
	if !m.IsValid() {
		return m
	}
	return m.MapIndex(key)
}

func join(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}
