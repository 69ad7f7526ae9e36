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
// lists are told apart by their names, if they have any. A nil object has no fields. The values in the result are those of
// the objects, not copies.
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

// diffLists compares lists of objects element by element, those with names by their names, and other lists as a whole.
func diffLists(changes *[]FieldChange, path string, before, after []any) {
	b, okBefore := byName(before)
	a, okAfter := byName(after)
	switch {
	case okBefore && okAfter:
		diffMaps(changes, path, b, a)
		if !slices.Equal(common(before, a), common(after, b)) {
			*changes = append(*changes, FieldChange{Path: path, Old: order(before), New: order(after)})
		}
	case objects(before) && objects(after):
		for i := range max(len(before), len(after)) {
			diffValues(changes, path+"["+strconv.Itoa(i)+"]", at(before, i), at(after, i))
		}
	case !SameValue(before, after):
		*changes = append(*changes, FieldChange{Path: path, Old: list(before), New: list(after)})
	}
}

// byName files the elements of a list under "[name=…]", if all are objects with names of their own.
func byName(elements []any) (map[string]any, bool) {
	named := make(map[string]any, len(elements))
	for _, e := range elements {
		m, _ := e.(map[string]any)
		name, ok := m["name"].(string)
		if !ok {
			return nil, false
		}
		segment := "[name=" + name + "]"
		if _, twice := named[segment]; twice {
			return nil, false
		}
		named[segment] = e
	}
	return named, true
}

// common returns, in their order, the names of the elements that are in other too.
func common(elements []any, other map[string]any) []string {
	var names []string
	for _, name := range order(elements) {
		if _, ok := other["[name="+name.(string)+"]"]; ok {
			names = append(names, name.(string))
		}
	}
	return names
}

func order(elements []any) []any {
	names := make([]any, 0, len(elements))
	for _, e := range elements {
		names = append(names, e.(map[string]any)["name"])
	}
	return names
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
	switch {
	case strings.HasPrefix(name, "[name="):
		return name
	case plain.MatchString(name):
		return "." + name
	}
	return fmt.Sprintf("[%q]", name)
}
