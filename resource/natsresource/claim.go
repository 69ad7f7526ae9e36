package natsresource

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// whose says who may write an entry.
type whose uint8

const (
	// ours was applied by this resource for this primary, under its name or a former one.
	ours whose = iota
	// free belongs to nobody who left a mark. It can be adopted.
	free
	// foreign belongs to somebody else. It is never touched.
	foreign
)

// claim is whose an entry is.
type claim struct {
	whose
	// former is the mark of a former name that an entry of ours carries.
	former identity.Mark
	// reason says why it is not ours.
	reason string
}

// claimOn tells whose the entry is.
func claimOn(m *natsinformer.Meta, p ownership) claim {
	by := m.Annotations[MadeByAnnotation]
	made, known := strings.CutPrefix(by, form)
	ofPrimary := m.OwnerKind == p.kind && m.OwnerKey == p.key
	former := slices.IndexFunc(p.former, func(mark identity.Mark) bool { return by == madeBy(mark) })
	switch {
	case by == "" && m.OwnerKind == "" && m.OwnerKey == "":
		return claim{whose: free, reason: "it exists already and has no owner"}
	case by == "" && ofPrimary:
		return claim{whose: free, reason: "it was made for the same primary by somebody who left no name"}
	case by == "":
		return claim{whose: foreign, reason: "it " + belongs(m)}
	case !known:
		return claim{whose: foreign, reason: fmt.Sprintf("it %s, and its %s has a form that is not known here: %q", belongs(m), MadeByAnnotation, by)}
	case by == MadeBy(p.scope.Identity) && ofPrimary:
		return claim{whose: free, reason: fmt.Sprintf("it was made for the same primary by %s without a resource", made)}
	case !ofPrimary, by != p.by && former < 0:
		return claim{whose: foreign, reason: fmt.Sprintf("it %s and was made by %s", belongs(m), made)}
	}
	if key, _, ok := appliedTo(m); ok && key != m.Name {
		return claim{whose: free, reason: fmt.Sprintf("it is a copy of %s", key)}
	}
	if former >= 0 {
		return claim{former: p.former[former]}
	}
	return claim{}
}

// belongs says which primary an entry belongs to.
func belongs(m *natsinformer.Meta) string {
	if m.OwnerKind == "" && m.OwnerKey == "" {
		return "belongs to no primary"
	}
	return "belongs to " + m.OwnerKind + " " + m.OwnerKey
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
func (e *RefusedError) Error() string { return keyed.Refusal(e.Entry, e.Reason, e.Adoptable) }
