// Package statusmap reads the status of an object as JSON has it, and says how it changes. Its conditions are those of Kubernetes: a list
// whose elements are told apart by their type.
package statusmap

import (
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// conditions is the field of a status with its conditions.
const conditions = "conditions"

// Of returns the status of an object, empty if it has none. The map is the caller's, but not what it holds.
func Of(obj any) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("read the status of a %T: %w", obj, err)
	}
	status, _ := fields["status"].(map[string]any)
	if status = maps.Clone(status); status == nil {
		status = map[string]any{}
	}
	return status, nil
}

// Conditions returns the conditions of a status by type, and the types in order.
func Conditions(status map[string]any) (byType map[string]map[string]any, order []string) {
	byType = map[string]map[string]any{}
	list, _ := status[conditions].([]any)
	for _, e := range list {
		condition, _ := e.(map[string]any)
		t, _ := condition["type"].(string)
		if t == "" || byType[t] != nil {
			continue
		}
		byType[t] = condition
		order = append(order, t)
	}
	return byType, order
}

// FieldPatch is the JSON merge patch (RFC 7386) from one status to another, without the conditions.
func FieldPatch(from, to map[string]any) map[string]any {
	return mergePatch(Without(from, conditions), Without(to, conditions))
}

// Without returns a copy of a map that lacks a key.
func Without(m map[string]any, key string) map[string]any {
	m = maps.Clone(m)
	delete(m, key)
	return m
}

func mergePatch(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for k := range from {
		if _, stays := to[k]; !stays {
			patch[k] = nil
		}
	}
	for k, v := range to {
		was, wasMap := from[k].(map[string]any)
		is, isMap := v.(map[string]any)
		switch {
		case wasMap && isMap:
			if inner := mergePatch(was, is); len(inner) > 0 {
				patch[k] = inner
			}
		case !reflect.DeepEqual(from[k], v):
			patch[k] = v
		}
	}
	return patch
}
