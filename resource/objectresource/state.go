package objectresource

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// State is a set of objects: those that are there, those that should be, or those that a part of a patch changes. It shows
// keys and changes only, never the content of an object, and no values of Secrets.
type State struct {
	items []item
	// terminating is set on the desired state of a primary that is being deleted, for which Desired was not called.
	terminating bool
}

// item is one object of a state.
type item struct {
	key    Key
	action Action
	// content is the object: as it is, or as it is to be applied.
	content *unstructured.Unstructured
	// live is set when content is exactly what the API server answered.
	live      bool
	sensitive bool
	fields    []FieldChange
}

// Action is what a change does with an object.
type Action string

// The actions.
const (
	Create Action = "create"
	Update Action = "update"
	Delete Action = "delete"
)

// Change is what happens to one object.
type Change struct {
	Action Action
	Object Key
	// Fields are the fields that change, sorted by path. For Create they are all that is applied, for Delete there are
	// none.
	Fields []FieldChange
}

// FieldChange is what happens to one field.
type FieldChange struct {
	// Path is the place of the field, such as spec.template.spec.containers[name=web].image.
	Path string `json:"path"`
	// Old is the value before, and nil for a field that was not there. It is a JSON value.
	Old any `json:"old,omitempty"`
	// New is the value afterwards, and nil for a field that goes away. It is a JSON value.
	New any `json:"new,omitempty"`
}

// Redacted stands in place of values that must not be shown.
const Redacted = "(sensitive)"

// Changes returns the changes, in the order in which they are applied. It is empty for the current and the desired state.
func (s State) Changes() []Change {
	var changes []Change
	for _, it := range s.items {
		if it.action != "" {
			changes = append(changes, Change{Action: it.action, Object: it.key, Fields: it.fields})
		}
	}
	return changes
}

// Keys returns the names of the objects.
func (s State) Keys() []Key {
	keys := make([]Key, 0, len(s.items))
	for _, it := range s.items {
		keys = append(keys, it.key)
	}
	return keys
}

// String returns a line for each object, and below it one for each field that changes.
func (s State) String() string {
	var b strings.Builder
	for _, it := range s.items {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		if it.action != "" {
			fmt.Fprintf(&b, "%s ", it.action)
		}
		b.WriteString(it.key.String())
		for _, f := range it.fields {
			fmt.Fprintf(&b, "\n  %s", f)
		}
	}
	return b.String()
}

// GoString implements fmt.GoStringer, so that no way of printing a state shows what is in the objects.
func (s State) GoString() string { return fmt.Sprintf("objectresource.State(%q)", s.String()) }

// String returns the change on one line.
func (f FieldChange) String() string {
	switch {
	case f.Old == nil:
		return fmt.Sprintf("%s: %s", f.Path, text(f.New))
	case f.New == nil:
		return fmt.Sprintf("%s: %s removed", f.Path, text(f.Old))
	}
	return fmt.Sprintf("%s: %s -> %s", f.Path, text(f.Old), text(f.New))
}

// text returns a value as JSON, with < and > as they are.
func text(value any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprint(value)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// MarshalJSON returns a list with an entry for each object.
func (s State) MarshalJSON() ([]byte, error) {
	type entry struct {
		Action     Action        `json:"action,omitempty"`
		APIVersion string        `json:"apiVersion"`
		Kind       string        `json:"kind"`
		Namespace  string        `json:"namespace,omitempty"`
		Name       string        `json:"name"`
		Fields     []FieldChange `json:"fields,omitempty"`
	}
	entries := make([]entry, 0, len(s.items))
	for _, it := range s.items {
		entries = append(entries, entry{
			Action:     it.action,
			APIVersion: it.key.GVK.GroupVersion().String(),
			Kind:       it.key.GVK.Kind,
			Namespace:  it.key.Namespace,
			Name:       it.key.Name,
			Fields:     it.fields,
		})
	}
	return json.Marshal(entries)
}

// find returns the object of that key.
func (s State) find(key Key) (item, bool) {
	for _, it := range s.items {
		if it.key == key {
			return it, true
		}
	}
	return item{}, false
}
