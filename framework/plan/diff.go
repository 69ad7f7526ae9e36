package plan

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Diff lists the fields in which two JSON objects differ, sorted by path. Numbers are int64 or float64. The elements of
// lists are told apart by their names, if they have any, or else by their types, as conditions are. A nil object has no fields. The
// values in the result are those of the objects, not copies.
func Diff(before, after map[string]any) []FieldChange {
	var changes []FieldChange
	diffMaps(&changes, "", before, after)
	return changes
}

func diffValues(changes *[]FieldChange, path string, before, after any) {
	switch a := after.(type) {
	case map[string]any:
		if b, ok := before.(map[string]any); ok || before == nil && len(a) > 0 {
			diffMaps(changes, path, b, a)
			return
		}
	case []any:
		if b, ok := before.([]any); ok || before == nil && len(a) > 0 {
			diffLists(changes, path, b, a)
			return
		}
	case nil:
		if b, ok := before.(map[string]any); ok && len(b) > 0 {
			diffMaps(changes, path, b, nil)
			return
		}
	}
	if !SameValue(before, after) {
		*changes = append(*changes, FieldChange{Path: path, Old: before, New: after})
	}
}

func diffMaps(changes *[]FieldChange, path string, before, after map[string]any) {
	names := slices.Collect(maps.Keys(before))
	for name := range after {
		if _, ok := before[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		diffValues(changes, strings.TrimPrefix(path+Segment(name), "."), before[name], after[name])
	}
}

// keys are the fields that may tell the elements of a list apart: those of lists that have names, and those of conditions and the like.
var keys = [...]string{"name", "type"}

// diffLists compares lists of objects element by element, those that a field tells apart by its value, and other lists as a whole.
func diffLists(changes *[]FieldChange, path string, before, after []any) {
	for _, key := range keys {
		b, okBefore := byKey(key, before)
		a, okAfter := byKey(key, after)
		if !okBefore || !okAfter {
			continue
		}
		diffMaps(changes, path, b, a)
		if was, is := order(key, before), order(key, after); !slices.Equal(common(key, was, a), common(key, is, b)) {
			*changes = append(*changes, FieldChange{Path: path, Old: was, New: is})
		}
		return
	}
	switch {
	case objects(before) && objects(after):
		for i := range max(len(before), len(after)) {
			diffValues(changes, path+"["+strconv.Itoa(i)+"]", at(before, i), at(after, i))
		}
	case !SameValue(before, after):
		*changes = append(*changes, FieldChange{Path: path, Old: list(before), New: list(after)})
	}
}

// keySegment is how an element of a list stands in a path.
func keySegment(key, value string) string { return "[" + key + "=" + value + "]" }

// byKey files the elements of a list under "[name=…]", if key is name, and if all are objects with names of their own.
func byKey(key string, elements []any) (map[string]any, bool) {
	filed := make(map[string]any, len(elements))
	for _, e := range elements {
		m, _ := e.(map[string]any)
		value, ok := m[key].(string)
		if !ok {
			return nil, false
		}
		segment := keySegment(key, value)
		if _, twice := filed[segment]; twice {
			return nil, false
		}
		filed[segment] = e
	}
	return filed, true
}

// common returns, in their order, the values that elements of the other list have too.
func common(key string, values []any, other map[string]any) []any {
	return slices.DeleteFunc(slices.Clone(values), func(value any) bool {
		_, ok := other[keySegment(key, value.(string))]
		return !ok
	})
}

// order is which values of the key the elements have, one after the other.
func order(key string, elements []any) []any {
	values := make([]any, 0, len(elements))
	for _, e := range elements {
		values = append(values, e.(map[string]any)[key])
	}
	return values
}

func objects(elements []any) bool {
	return !slices.ContainsFunc(elements, func(e any) bool { _, ok := e.(map[string]any); return !ok })
}

func at(elements []any, i int) any {
	if i < len(elements) {
		return elements[i]
	}
	return nil
}

// list is nil for no list at all.
func list(elements []any) any {
	if elements == nil {
		return nil
	}
	return elements
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// Segment is how the name of a field is appended to the path of the object that it is in: ".name", or in brackets.
func Segment(name string) string {
	if slices.ContainsFunc(keys[:], func(key string) bool { return strings.HasPrefix(name, "["+key+"=") }) {
		return name
	}
	if plain.MatchString(name) {
		return "." + name
	}
	return fmt.Sprintf("[%q]", name)
}
