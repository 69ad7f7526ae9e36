package carrier

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// Ignores tells whether the service leaves some difference of an object as it is.
func (s *Service) Ignores(object *unstructured.Unstructured) bool { return len(s.ignored(object)) > 0 }

// ignored returns what the service says of the differences of an object.
func (s *Service) ignored(object *unstructured.Unstructured) (found []v1alpha1.IgnoredDifference) {
	if s.Entry == nil {
		return nil
	}
	kind := object.GroupVersionKind().GroupKind()
	for _, each := range s.Entry.IgnoreDifferences {
		if (each.Kind == kind.Kind || each.Kind == kind.String()) && (each.Name == "" || each.Name == object.GetName()) {
			found = append(found, each)
		}
	}
	return found
}

// Beside returns what is compared with a live object, and applied to it under the name of a field manager: the desired object, but for the
// differences that the service ignores. A field that another manager has is left to that one, any other has the value that it has, so that
// applying takes nothing away. Both objects stay as they are; where nothing is ignored, it is the desired one.
func (s *Service) Beside(desired, live *unstructured.Unstructured, manager string) *unstructured.Unstructured {
	ignored := s.ignored(desired)
	if len(ignored) == 0 {
		return desired
	}
	beside := desired.DeepCopy()
	ours := append(Managers(s.Former), manager)
	var others []any
	for _, entry := range live.GetManagedFields() {
		var fields map[string]any
		if entry.FieldsV1 == nil || slices.Contains(ours, entry.Manager) || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		others = append(others, fields)
		if slices.ContainsFunc(ignored, func(i v1alpha1.IgnoredDifference) bool { return slices.Contains(i.Managers, entry.Manager) }) {
			leave(beside.Object, fields)
		}
	}
	for _, each := range ignored {
		for _, pointer := range each.JSONPointers {
			takeAt(beside.Object, live.Object, segments(pointer), others)
		}
	}
	keepMarks(beside, desired)
	return beside
}

// marks are labels and annotations by which it is told whose an object is: differences of these are never ignored.
var marks = map[string][]string{
	"labels":      {OwnerLabel, ServiceLabel, ServiceNamespaceLabel, "app.kubernetes.io/managed-by"},
	"annotations": {OwnerAnnotation, "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"},
}

// keepMarks gives an object the marks that another one has.
func keepMarks(object, of *unstructured.Unstructured) {
	for field, names := range marks {
		all, _, _ := unstructured.NestedStringMap(object.Object, "metadata", field)
		wanted, _, _ := unstructured.NestedStringMap(of.Object, "metadata", field)
		for _, name := range names {
			if value, ok := wanted[name]; ok {
				if all == nil {
					all = map[string]string{}
				}
				all[name] = value
			}
		}
		if all != nil {
			_ = unstructured.SetNestedStringMap(object.Object, all, "metadata", field) // metadata is a map, or nothing is in all
		}
	}
}

// segments are the parts of a JSON pointer.
func segments(pointer string) []string {
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
	}
	return parts
}

// takeAt makes a field that is desired what it is, and leaves to others what they have of it. Where the object that it is in is not there, it
// stays as it is desired.
func takeAt(desired, live any, path []string, others []any) {
	switch d := desired.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		wanted, has := d[path[0]]
		if !ok || !has {
			return
		}
		now, there := l[path[0]]
		theirs := step(others, "f:"+path[0])
		switch {
		case len(path) > 1:
			takeAt(wanted, now, path[1:], theirs)
		case !there || slices.ContainsFunc(theirs, func(fields any) bool { return len(fields.(map[string]any)) == 0 }):
			delete(d, path[0])
		default:
			d[path[0]] = runtime.DeepCopyJSONValue(now)
			for _, fields := range theirs {
				leave(d[path[0]], fields.(map[string]any))
			}
		}
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(d) {
			return
		}
		now := counterpart(d, i, live)
		switch {
		case now == nil:
		case len(path) > 1:
			takeAt(d[i], now, path[1:], fieldsOfItem(others, d[i]))
		default:
			d[i] = runtime.DeepCopyJSONValue(now)
		}
	}
}

// counterpart returns what a live list has in place of an item: the one with the same name, or else the one at the same place. Nil is none.
func counterpart(desired []any, i int, live any) any {
	l, _ := live.([]any)
	wanted, _ := desired[i].(map[string]any)
	if name, ok := wanted["name"].(string); ok {
		return item(l, map[string]any{"name": name})
	}
	if i < len(l) {
		return l[i]
	}
	return nil
}

// fieldsOfItem goes into an item of a list in what managers have.
func fieldsOfItem(managed []any, of any) []any {
	var below []any
	for key := range itemKeys(managed) {
		if item([]any{of}, nameOfItem(key)) != nil {
			below = append(below, step(managed, key)...)
		}
	}
	return below
}

// nameOfItem returns the fields by which managers name an item of a list; nil is no name.
func nameOfItem(key string) map[string]any {
	var named map[string]any
	text, ok := strings.CutPrefix(key, "k:")
	if !ok || json.Unmarshal([]byte(text), &named) != nil {
		return nil
	}
	return named
}

// leave takes what a manager has out of what is desired.
func leave(desired any, fields map[string]any) {
	for key, value := range fields {
		inner, _ := value.(map[string]any)
		switch d := desired.(type) {
		case map[string]any:
			name, isField := strings.CutPrefix(key, "f:")
			below, has := d[name]
			switch {
			case !isField || !has:
			case len(inner) == 0:
				delete(d, name)
			default:
				leave(below, inner)
			}
		case []any:
			named := nameOfItem(key)
			found, _ := item(d, named).(map[string]any)
			if len(named) == 0 || found == nil {
				continue
			}
			// Without the fields that name it, an item is another one.
			kept := maps.Clone(found)
			leave(found, inner)
			for name := range named {
				found[name] = kept[name]
			}
		}
	}
}
