package keyed

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/framework/identity"
)

// Holder is the one to whom a thing belongs.
type Holder uint8

const (
	// Ours was made by this resource for this primary, under its present name or a former one.
	Ours Holder = iota
	// Free has no mark of anybody. It can be adopted.
	Free
	// Inherited belonged to an earlier primary of the same name. It is adopted when it is desired.
	Inherited
	// Foreign belongs to somebody else. It is never touched.
	Foreign
)

// Claim says to whom an existing thing belongs.
type Claim struct {
	Holder Holder
	// Former is the mark of the former name under which a thing of ours stands. It is zero for the
	// present name.
	Former identity.Mark
	// Reason says why the thing is not ours.
	Reason string
}

// FreeClaim returns the claim on a thing of nobody's.
func FreeClaim(reason string) Claim { return Claim{Holder: Free, Reason: reason} }

// ForeignClaim returns the claim on a thing of somebody else's.
func ForeignClaim(reason string) Claim { return Claim{Holder: Foreign, Reason: reason} }

// ClaimOf returns the claim on a thing of ours that carries marks[i]. The first of the marks is the
// present one.
func ClaimOf(marks []identity.Mark, i int) Claim {
	if i == 0 {
		return Claim{}
	}
	return Claim{Former: marks[i]}
}

// Writable reports whether the resource may write the thing.
func (c Claim) Writable(adopt bool) bool {
	return c.Holder == Ours || c.Holder == Inherited || c.Holder == Free && adopt
}

// IsFormer reports whether the thing is ours under a former name.
func (c Claim) IsFormer() bool { return c.Former != identity.Mark{} }

// Takeover names the former name from which the thing is taken over. It is empty for other things.
func (c Claim) Takeover() string {
	if !c.IsFormer() {
		return ""
	}
	return "taken over from " + c.Former.String()
}

// leftToOthers reports whether a thing that is not desired here is left to another resource of the
// set: an earlier one has adopted it, which a store may not show yet, or a later one has had the
// same name.
func leftToOthers[K Key, C any](ctx context.Context, it Item[K, C]) bool {
	object := it.Change.Object
	kind := schema.FromAPIVersionAndKind(object.APIVersion, object.Kind).GroupKind().String()
	return identity.Taken(ctx, it.Key.String()) || identity.From(ctx).LeavesKind(it.Claim.Former, kind)
}
