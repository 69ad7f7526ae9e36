package objectresource

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
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
	action plan.Action
	// content is the object: as it is, or as it is to be applied.
	content *unstructured.Unstructured
	// live is set when content is exactly what the API server answered.
	live      bool
	sensitive bool
	fields    []plan.FieldChange
	// version is the resource version of the object that an update or delete change was computed for.
	version string
	// from is the mark of a former name under which an object stands that is taken over, and move the first write of that, a JSON
	// patch; nil if it takes none.
	from identity.Mark
	move []byte
}

// terminating tells whether the object is being deleted.
func (it item) terminating() bool { return it.content.GetDeletionTimestamp() != nil }

// takenOver says from whom the object is taken over, and nothing if it is not.
func (it item) takenOver() string {
	if it.from == (identity.Mark{}) {
		return ""
	}
	return "taken over from " + it.from.String()
}

// Changes implements plan.Changer. It is empty for the current and the desired state.
func (s State) Changes() []plan.Change {
	var changes []plan.Change
	for _, it := range s.items {
		if it.action != "" {
			changes = append(changes, plan.Change{
				Action: it.action, Object: it.object(), Fields: slices.Clone(it.fields), Description: it.takenOver(),
			})
		}
	}
	return changes
}

// object names the object, and which one of this name it is if it is there already.
func (it item) object() plan.Object {
	o := it.key.object()
	if it.action != plan.Create {
		o.UID, o.Version = it.content.GetUID(), it.version
	}
	return o
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
		if from := it.takenOver(); from != "" {
			b.WriteString(": " + from)
		}
		for _, f := range it.fields {
			fmt.Fprintf(&b, "\n  %s", f)
		}
	}
	return b.String()
}

// GoString implements fmt.GoStringer, so that no way of printing a state shows what is in the objects.
func (s State) GoString() string { return fmt.Sprintf("objectresource.State(%q)", s.String()) }

// MarshalJSON returns a list with an entry for each object.
func (s State) MarshalJSON() ([]byte, error) {
	type entry struct {
		Action plan.Action `json:"action,omitempty"`
		plan.Object
		Fields      []plan.FieldChange `json:"fields,omitempty"`
		Description string             `json:"description,omitempty"`
	}
	entries := make([]entry, 0, len(s.items))
	for _, it := range s.items {
		entries = append(entries, entry{Action: it.action, Object: it.key.object(), Fields: it.fields, Description: it.takenOver()})
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
