package statusmap

import (
	"maps"
	"reflect"
	"slices"
)

// Onto returns a status with what has changed between two others, and all else as it is. None of them is changed.
func Onto(status, before, after map[string]any) map[string]any {
	changed := apply(status, FieldPatch(before, after))
	was, _ := Conditions(before)
	is, order := Conditions(after)
	theirs, all := Conditions(status)
	list := []any{}
	for _, t := range slices.Concat(all, slices.DeleteFunc(order, func(t string) bool { return theirs[t] != nil })) {
		switch {
		case reflect.DeepEqual(was[t], is[t]):
			if theirs[t] != nil {
				list = append(list, theirs[t])
			}
		case is[t] != nil:
			list = append(list, is[t])
		}
	}
	if len(list)+len(all) > 0 {
		changed[conditions] = list
	}
	return changed
}

// apply returns a JSON object with a merge patch (RFC 7386).
func apply(object, patch map[string]any) map[string]any {
	object = maps.Clone(object)
	for k, v := range patch {
		inner, isMap := v.(map[string]any)
		was, _ := object[k].(map[string]any)
		switch {
		case v == nil:
			delete(object, k)
		case isMap && was == nil:
			object[k] = apply(map[string]any{}, inner)
		case isMap:
			object[k] = apply(was, inner)
		default:
			object[k] = v
		}
	}
	return object
}
