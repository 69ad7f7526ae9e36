package natsresource

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
)

// State is a set of entries: those that are there, those that should be, or those that a part of a patch changes. It shows
// keys and changes only, never the content of an entry, and no values of sensitive ones.
type State[T natsinformer.Entity] struct {
	items []item[T]
	// terminating is set on the desired state of a primary that is being deleted, for which Desired was not called.
	terminating bool
}

// item is one entry of a state.
type item[T natsinformer.Entity] struct {
	key    Key
	action plan.Action
	// content is the entry: as it is, or as it is to be written.
	content   T
	sensitive bool
	// former is the mark of a former name that the entry carries, or has carried until it is updated.
	former identity.Mark
	// fields are the changes of an update.
	fields []plan.FieldChange
}

// takenOver tells whether the entry is, or was, one of a former name.
func (it item[T]) takenOver() bool { return it.former != identity.Mark{} }

// description says of an update whether it takes the entry over.
func (it item[T]) description() string {
	if it.action != plan.Update || !it.takenOver() {
		return ""
	}
	return "taken over from " + it.former.String()
}

// changes are the fields that change, as they may be shown.
func (it item[T]) changes() []plan.FieldChange {
	if it.action != plan.Create {
		return slices.Clone(it.fields)
	}
	fields, err := shownFields(it.content)
	if err != nil {
		return nil // It can't be written either, which is the error that counts.
	}
	return it.show(plan.Diff(nil, fields))
}

// Changes implements plan.Changer. The namespace of an entry is its bucket.
func (s State[T]) Changes() []plan.Change {
	var changes []plan.Change
	for _, it := range s.items {
		if it.action != "" {
			changes = append(changes, plan.Change{
				Action: it.action, Object: it.object(), Fields: it.changes(), Description: it.description(),
			})
		}
	}
	return changes
}

// object names the entry in plans.
func (it item[T]) object() plan.Object {
	o := plan.Object{Kind: "Entry", Namespace: it.key.Bucket, Name: it.key.Name}
	if it.action != plan.Create {
		o.UID, o.Version = it.content.GetUID(), it.content.EntityMeta().GetResourceVersion()
	}
	return o
}

// Keys returns the names of the entries.
func (s State[T]) Keys() []Key {
	keys := make([]Key, 0, len(s.items))
	for _, it := range s.items {
		keys = append(keys, it.key)
	}
	return keys
}

// String returns a line for each entry, and below it one for each field that changes.
func (s State[T]) String() string {
	var b strings.Builder
	for _, it := range s.items {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		if it.action != "" {
			fmt.Fprintf(&b, "%s ", it.action)
		}
		b.WriteString(strings.TrimSuffix(it.key.String()+": "+it.description(), ": "))
		for _, f := range it.changes() {
			fmt.Fprintf(&b, "\n  %s", f)
		}
	}
	return b.String()
}

// GoString implements fmt.GoStringer, so that no way of printing a state shows what is in the entries.
func (s State[T]) GoString() string { return fmt.Sprintf("natsresource.State(%q)", s.String()) }

// MarshalJSON returns a list with an entry for each entry.
func (s State[T]) MarshalJSON() ([]byte, error) {
	type entry struct {
		Action plan.Action `json:"action,omitempty"`
		Bucket string      `json:"bucket"`
		Name   string      `json:"name"`
		// Description says whether the entry is taken over.
		Description string             `json:"description,omitempty"`
		Fields      []plan.FieldChange `json:"fields,omitempty"`
	}
	entries := make([]entry, 0, len(s.items))
	for _, it := range s.items {
		entries = append(entries, entry{Action: it.action, Bucket: it.key.Bucket, Name: it.key.Name, Description: it.description(), Fields: it.changes()})
	}
	return json.Marshal(entries)
}

// find returns the entry of that key.
func (s State[T]) find(key Key) (item[T], bool) {
	for _, it := range s.items {
		if it.key == key {
			return it, true
		}
	}
	return item[T]{}, false
}
