package natsresource

import (
	"fmt"

	"github.com/operatorkit/operatorkit/informer/natsinformer"
)

// claim is whose an entry is.
type claim uint8

const (
	// ours was applied by this resource for this primary.
	ours claim = iota
	// free belongs to nobody who left a mark. It can be adopted.
	free
	// foreign belongs to somebody else. It is never touched.
	foreign
)

// claimOn tells whose the entry is, and the reason when it is not ours.
func claimOn(m *natsinformer.Meta, o owner) (claim, string) {
	by := m.Annotations[ResourceAnnotation]
	switch {
	case m.OwnerKind == "" && m.OwnerKey == "":
		return free, "it exists already and has no owner"
	case m.OwnerKind != o.kind || m.OwnerKey != o.key:
		return foreign, fmt.Sprintf("it belongs to %s", owner{m.OwnerKind, m.OwnerKey, by})
	case by == "":
		return free, "it was made for the same primary by somebody who left no name"
	case by != o.resource:
		return foreign, fmt.Sprintf("it belongs to the resource %q of the same primary", by)
	}
	if key, _, ok := appliedTo(m); ok && key != m.Name {
		return free, fmt.Sprintf("it is a copy of %s", key)
	}
	return ours, ""
}

// RefusedError says that an entry is desired that exists and is not the resource's own.
type RefusedError struct {
	// Entry is what should have been created or updated.
	Entry Key
	// Reason says whose it is.
	Reason string
	// Adoptable is true when Config.Adopt would have allowed it.
	Adoptable bool
}

// Error implements error.
func (e *RefusedError) Error() string {
	mend := "delete it or choose another name"
	if e.Adoptable {
		mend += ", or set Adopt to take it over"
	}
	return fmt.Sprintf("refusing to take over %s: %s: %s", e.Entry, e.Reason, mend)
}
