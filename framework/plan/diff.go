package plan

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Diff lists the fields in which two JSON objects differ, sorted by path. Numbers are int64 or
// float64. Elements of lists are identified by the keys that Kubernetes defines for them, such as
// name, type, mountPath, or containerPort with protocol. A nil object has no fields. The values in
// the result are those of the objects, not copies.
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

// listKey lists the fields that identify an element of a list.
type listKey []string

// listKeys are the keys of the lists of Kubernetes (x-kubernetes-list-map-keys). Keys that only one
// kind of list has come first. If elements of a list lack such a field, or share the same values,
// the next key is tried.
var listKeys = []listKey{
	{"mountPath"}, {"devicePath"}, {"containerPort", "protocol"}, {"topologyKey", "whenUnsatisfiable"},
	{"name"}, {"type"}, {"port", "protocol"}, {"ip"}, {"uid"},
}

// keyDefaults are the values that the API server sets in unset fields of a key.
var keyDefaults = map[string]string{"protocol": "TCP"}

// identify returns the path segment of an element, such as [name=web] or
// [containerPort=80,protocol=TCP], and the values alone.
func (k listKey) identify(element any) (segment, value string, ok bool) {
	m, _ := element.(map[string]any)
	var pairs, values []string
	for _, field := range k {
		v, isSet := m[field]
		if standard, ok := keyDefaults[field]; ok && !isSet {
			v = standard
		}
		switch v.(type) {
		case string, int64, float64:
			pairs, values = append(pairs, fmt.Sprint(field, "=", v)), append(values, fmt.Sprint(v))
		default:
			return "", "", false
		}
	}
	return "[" + strings.Join(pairs, ",") + "]", strings.Join(values, ","), true
}

// diffLists compares lists of objects element by element if a key identifies the elements. It
// compares other lists as a whole.
func diffLists(changes *[]FieldChange, path string, before, after []any) {
	for _, key := range listKeys {
		b, okBefore := key.index(before)
		a, okAfter := key.index(after)
		if !okBefore || !okAfter {
			continue
		}
		diffMaps(changes, path, b, a)
		if !slices.Equal(key.values(before, a), key.values(after, b)) {
			*changes = append(*changes, FieldChange{Path: path, Old: key.values(before, b), New: key.values(after, a)})
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

// index returns the elements of a list by their segments. It returns false unless all segments
// exist and are different.
func (k listKey) index(elements []any) (map[string]any, bool) {
	bySegment := make(map[string]any, len(elements))
	for _, e := range elements {
		segment, _, ok := k.identify(e)
		if _, twice := bySegment[segment]; !ok || twice {
			return nil, false
		}
		bySegment[segment] = e
	}
	return bySegment, true
}

// values returns the values of the key in their order, for the elements that another list has too.
func (k listKey) values(elements []any, other map[string]any) []any {
	values := make([]any, 0, len(elements))
	for _, e := range elements {
		segment, value, _ := k.identify(e)
		if _, ok := other[segment]; ok {
			values = append(values, value)
		}
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

// list is nil for a missing list.
func list(elements []any) any {
	if elements == nil {
		return nil
	}
	return elements
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// Segment returns the path segment of a field in an object: ".name", or in brackets.
func Segment(name string) string {
	if slices.ContainsFunc(listKeys, func(key listKey) bool { return strings.HasPrefix(name, "["+key[0]+"=") }) {
		return name
	}
	if plain.MatchString(name) {
		return "." + name
	}
	return fmt.Sprintf("[%q]", name)
}
