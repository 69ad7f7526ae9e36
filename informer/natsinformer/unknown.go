package natsinformer

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// keepUnknown returns data, the JSON of an entity, with the fields of the original value that the
// type lacks. known is the original as the type encodes it: fields that it lacks are unknown, or
// empty.
func keepUnknown(original, known, data []byte) ([]byte, error) {
	var values [3]any
	for i, text := range [][]byte{original, known, data} {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber() // Numbers stay as they were written.
		if err := decoder.Decode(&values[i]); err != nil {
			return nil, err
		}
	}
	return json.Marshal(merged(values[0], values[1], values[2]))
}

// merged returns now with the fields that original has and before lacks. before is the original as
// the type encodes it.
func merged(original, before, now any) any {
	if reflect.DeepEqual(before, now) {
		return original
	}
	switch now := now.(type) {
	case map[string]any:
		mergeObject(original, before, now)
	case []any:
		mergeList(original, before, now)
	}
	return now
}

func mergeObject(original, before any, now map[string]any) {
	had, _ := original.(map[string]any)
	was, isObject := before.(map[string]any)
	if !isObject {
		return
	}
	for name, value := range had {
		if known, isKnown := fieldOf(was, name); isKnown {
			if current, exists := now[known]; exists {
				now[known] = merged(value, was[known], current)
			}
		} else if _, exists := fieldOf(now, name); !exists {
			now[name] = value
		}
	}
}

// fieldOf returns the name of a field in an object: encoding/json ignores case when it decodes.
func fieldOf(object map[string]any, name string) (is string, exists bool) {
	if _, exists = object[name]; exists {
		return name, true
	}
	for is := range object {
		if strings.EqualFold(is, name) {
			return is, true
		}
	}
	return "", false
}

func mergeList(original, before any, now []any) {
	had, _ := original.([]any)
	was, _ := before.([]any)
	if len(had) != len(was) {
		return
	}
	for i, origin := range matches(was, now) {
		if origin >= 0 {
			now[i] = merged(had[origin], was[origin], now[i])
		}
	}
}

// identifying are the fields that distinguish elements of a list, if they have one of them.
var identifying = []string{"name", "type", "key", "id"}

// matches returns, for each element of a list, the index of the same element in the list before, or
// -1. The same element is the one that is equal or has the same name. Elements without names are
// also matched by position if both lists have the same length.
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
