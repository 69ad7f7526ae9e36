package natsresource

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// claimOn tells whose the entry is.
func (r *entries[O, T]) claimOn(m *natsinformer.Meta) keyed.Claim {
	by := m.Annotations[MadeByAnnotation]
	made, known := strings.CutPrefix(by, form)
	ofPrimary := m.OwnerKind == r.owner.kind && m.OwnerKey == r.owner.key
	own := slices.IndexFunc(r.marks, func(mark identity.Mark) bool { return by == madeBy(mark) })
	switch {
	case by == "" && m.OwnerKind == "" && m.OwnerKey == "":
		return keyed.FreeClaim("it exists already and has no owner")
	case by == "" && ofPrimary:
		return keyed.FreeClaim("it was made for the same primary by somebody who left no name")
	case by == "":
		return keyed.ForeignClaim("it " + belongs(m))
	case !known:
		return keyed.ForeignClaim(fmt.Sprintf("it %s, and its %s has a form that is not known here: %q", belongs(m), MadeByAnnotation, by))
	case by == MadeBy(identity.Identity{Operator: r.marks[0].Operator, Framework: r.marks[0].Framework}) && ofPrimary:
		return keyed.FreeClaim(fmt.Sprintf("it was made for the same primary by %s without a resource", made))
	case !ofPrimary, own < 0:
		return keyed.ForeignClaim(fmt.Sprintf("it %s and was made by %s", belongs(m), made))
	}
	if key, _, ok := appliedTo(m); ok && key != m.Name {
		return keyed.FreeClaim(fmt.Sprintf("it is a copy of %s", key))
	}
	return keyed.ClaimOf(r.marks, own)
}

// belongs says which primary an entry belongs to.
func belongs(m *natsinformer.Meta) string {
	if m.OwnerKind == "" && m.OwnerKey == "" {
		return "belongs to no primary"
	}
	return "belongs to " + m.OwnerKind + " " + m.OwnerKey
}

// RefusedError says that an entry is desired that exists and is not the resource's own.
type RefusedError = keyed.RefusedError[Key]
