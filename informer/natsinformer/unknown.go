package natsinformer

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// keepUnknown returns the JSON of an entity together with the fields of the value it was read from that T does not have. known is what T
// has of that value.
func keepUnknown[T Entity](original, known, data []byte) ([]byte, error) {
	var values [3]any
	for i, text := range [][]byte{original, known, data} {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber() // Numbers stay as they were written.
		if err := decoder.Decode(&values[i]); err != nil {
			return nil, err
		}
	}
	return json.Marshal(merged(reflect.TypeFor[T](), values[0], values[1], values[2]))
}

// merged returns now, the JSON of a t, with what original has and t does not. before is what t has of original.
func merged(t reflect.Type, original, before, now any) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if readsItself(t) || reflect.DeepEqual(original, before) {
		return now
	}
	switch t.Kind() {
	case reflect.Struct:
		return mergedStruct(t, original, before, now)
	case reflect.Map:
		return mergedMap(t.Elem(), original, before, now)
	case reflect.Slice, reflect.Array:
		return mergedList(t.Elem(), original, before, now)
	default:
		return now
	}
}

// readsItself reports whether a type decodes its JSON itself.
func readsItself(t reflect.Type) bool {
	pointer := reflect.PointerTo(t)
	return pointer.Implements(reflect.TypeFor[json.Unmarshaler]()) || pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func mergedStruct(t reflect.Type, original, before, now any) any {
	had, isObject := original.(map[string]any)
	all, ok := now.(map[string]any)
	if !isObject || !ok {
		return now
	}
	was, _ := before.(map[string]any)
	fields := jsonFields(t)
	for name, value := range had {
		field, known := fields[strings.ToLower(name)]
		if !known {
			all[name] = value
			continue
		}
		current, exists := all[field.name]
		previous, existed := was[field.name]
		switch {
		case exists:
			all[field.name] = merged(field.kind, value, previous, current)
		case !existed:
			// The type has left it out as empty, before and now, and it may hold unknown fields.
			if rest, _ := merged(field.kind, value, nil, map[string]any{}).(map[string]any); len(rest) > 0 {
				all[field.name] = rest
			}
		}
	}
	return all
}

func mergedMap(element reflect.Type, original, before, now any) any {
	had, _ := original.(map[string]any)
	was, _ := before.(map[string]any)
	all, _ := now.(map[string]any)
	for key, value := range had {
		if current, exists := all[key]; exists {
			all[key] = merged(element, value, was[key], current)
		}
	}
	return now
}

func mergedList(element reflect.Type, original, before, now any) any {
	had, _ := original.([]any)
	was, _ := before.([]any)
	all, _ := now.([]any)
	if len(had) != len(was) {
		return now
	}
	for i, origin := range matches(was, all) {
		if origin >= 0 {
			all[i] = merged(element, had[origin], was[origin], all[i])
		}
	}
	return now
}

// identifying are the fields by which elements of a list are told apart, if they have one of them.
var identifying = []string{"name", "type", "key", "id"}

// matches returns, for each element of a list, the index of the same one in the list before, or -1: the one that is equal, has the same
// name, or, where there are as many as before and they have no names, stands in the same place.
func matches(before, now []any) []int {
	indexes := make([]int, len(now))
	taken := make([]bool, len(before))
	match := func(same func(i, j int) bool) {
		for i := range now {
			for j := range before {
				if indexes[i] < 0 && !taken[j] && same(i, j) {
					indexes[i], taken[j] = j, true
				}
			}
		}
	}
	for i := range indexes {
		indexes[i] = -1
	}
	match(func(i, j int) bool { return i == j && reflect.DeepEqual(before[j], now[i]) })
	match(func(i, j int) bool { return reflect.DeepEqual(before[j], now[i]) })
	match(func(i, j int) bool {
		is, was := identityOf(now[i]), identityOf(before[j])
		return is != nil && reflect.DeepEqual(is, was) || is == nil && was == nil && i == j && len(before) == len(now)
	})
	return indexes
}

// identityOf returns the name and the value of the field that identifies an element, or nil.
func identityOf(element any) []any {
	object, _ := element.(map[string]any)
	i := slices.IndexFunc(identifying, func(name string) bool { return object[name] != nil })
	if i < 0 {
		return nil
	}
	return []any{identifying[i], object[identifying[i]]}
}

// jsonField is a field of a struct under its name in JSON.
type jsonField struct {
	name string
	kind reflect.Type
}

// jsonFields returns the fields of a struct type that encoding/json reads, by their names in lower case: it ignores case.
func jsonFields(t reflect.Type) map[string]jsonField {
	fields := map[string]jsonField{}
	for field := range t.Fields() {
		tag := field.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		embedded := field.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		switch {
		case tag == "-":
		case field.Anonymous && name == "" && embedded.Kind() == reflect.Struct:
			for key, inner := range jsonFields(embedded) {
				if _, hidden := fields[key]; !hidden {
					fields[key] = inner
				}
			}
		case field.IsExported():
			if name == "" {
				name = field.Name
			}
			fields[strings.ToLower(name)] = jsonField{name, field.Type}
		}
	}
	return fields
}
