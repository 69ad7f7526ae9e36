// Package keyed is the engine of resources for sets of things, each of which has a key and an
// owner, and fails alone. It lists, claims, decides, adopts and applies. A Backend knows what the
// things are:
//
//	type resource[O any] struct {
//		keyed.Engine[O, Key, object] // implements framework.TypedCRUDResourceOps
//		config Config[O]
//	}
package keyed

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/framework/plan"
)

// Key names a thing, also in errors.
type Key interface {
	comparable
	fmt.Stringer
}

// Item is a thing of a state, and what happens to it.
type Item[K Key, C any] struct {
	Key K
	// Thing is the thing as it is, or as it is to be written.
	Thing C
	// Sensitive is set if values of the thing must not be shown.
	Sensitive bool
	// Claim is the claim on the thing as it is.
	Claim Claim
	// Change is what happens. It names the thing, and has no action if nothing happens. It shows
	// nothing that is secret.
	Change plan.Change
	// Created, if set, computes the fields of Change for a creation. They are needed only where the
	// change is shown. It must return the same each time.
	Created func() []plan.FieldChange
}

// shown returns what happens, with all fields.
func (it Item[K, C]) shown() plan.Change {
	c := it.Change
	if it.Created != nil {
		c.Fields = it.Created()
	}
	return c
}

// State is a set of things: those that are there, those that should be, or those that a part of a
// patch changes. It shows keys and changes only.
type State[K Key, C any] struct {
	Items []Item[K, C]
	// Terminating is set on the desired state of a primary that is being deleted, of which nobody
	// was asked what it desires.
	Terminating bool
	// Faults are what is wrong with desired things that are not among the items.
	Faults []error
	// Note is what the backend has found out with the current state. The parts of a patch have that
	// of the state.
	Note any

	// others are the listed things which are not the resource's own.
	others map[K]Item[K, C]
}

// Changes implements plan.Changer. It is empty for the current and the desired state.
func (s State[K, C]) Changes() []plan.Change {
	var changes []plan.Change
	for _, it := range s.Items {
		if it.Change.Action != "" {
			c := it.shown()
			c.Fields = slices.Clone(c.Fields)
			changes = append(changes, c)
		}
	}
	return changes
}

// Keys returns the keys of the things.
func (s State[K, C]) Keys() []K {
	keys := make([]K, 0, len(s.Items))
	for _, it := range s.Items {
		keys = append(keys, it.Key)
	}
	return keys
}

// ByKey returns the things by their keys.
func (s State[K, C]) ByKey() map[K]Item[K, C] {
	items := make(map[K]Item[K, C], len(s.Items))
	for _, it := range s.Items {
		items[it.Key] = it
	}
	return items
}

// Empty tells whether there is nothing in it.
func (s State[K, C]) Empty() bool { return len(s.Items) == 0 }

// String returns a line for each thing, and below it one for each field that changes.
func (s State[K, C]) String() string {
	var b strings.Builder
	for _, it := range s.Items {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		c := it.shown()
		if c.Action != "" {
			fmt.Fprintf(&b, "%s ", c.Action)
		}
		b.WriteString(strings.TrimSuffix(it.Key.String()+": "+c.Description, ": "))
		for _, f := range c.Fields {
			fmt.Fprintf(&b, "\n  %s", f)
		}
	}
	return b.String()
}

// GoString implements fmt.GoStringer, so that no way of printing a state shows what is in the
// things.
func (s State[K, C]) GoString() string { return fmt.Sprintf("State(%q)", s.String()) }

// MarshalJSON returns a list with an entry for each thing.
func (s State[K, C]) MarshalJSON() ([]byte, error) {
	type entry struct {
		Action plan.Action `json:"action,omitempty"`
		plan.Object
		Fields      []plan.FieldChange `json:"fields,omitempty"`
		Description string             `json:"description,omitempty"`
	}
	entries := make([]entry, 0, len(s.Items))
	for _, it := range s.Items {
		c := it.shown()
		c.Object.UID, c.Object.Version = "", "" // of which life and state it is, is of interest in plans only
		entries = append(entries, entry{c.Action, c.Object, c.Fields, c.Description})
	}
	return json.Marshal(entries)
}
