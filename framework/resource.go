package framework

import "context"

// Resource is one step of the reconciliation of an object. Most resources are CRUD resources; a
// plain one implements this interface itself.
//
// A resource that also implements Planner can be planned; CRUD resources always can.
//
// The resources of a set run one after the other, in the given order. An error ends the
// reconciliation, except for a Concluder, and the reconciliation is retried with backoff. Every
// resource gets its own copy of the object, which it may change. The same resource is called for
// different objects at the same time, never twice at once for one object.
type Resource interface {
	// Name identifies the resource in logs, metrics and errors. It is constant and unique within
	// its set.
	Name() string
	// EnsureCreated is called when an object was created or changed, and again after errors,
	// restarts and resyncs: it must be idempotent.
	EnsureCreated(ctx context.Context, obj any) error
	// EnsureDeleted is called when an object is being deleted, with its last known state. It must
	// be idempotent: it is called at least once with success for every deletion, and may be called
	// again after that.
	EnsureDeleted(ctx context.Context, obj any) error
}

// FormerNamer is implemented by resources with former names, because they were renamed or split.
// They adopt things that carry the mark of a former name. A resource that adopts from another one
// of its set must precede it. A CRUD resource implements FormerNamer by its Ops, and a resource
// that wraps steps by the wrapped resource.
type FormerNamer interface {
	// FormerNames returns the names. It is constant.
	FormerNames() []string
}

func formerNamesOf(r any) []string {
	if n, ok := r.(FormerNamer); ok {
		return n.FormerNames()
	}
	return nil
}

// KindLister is implemented by resources that handle only things of some kinds: a thing of another
// kind that carries a former name is not left to them. A CRUD resource implements it by its Ops,
// and a resource that wraps steps by the wrapped resource. Without it, or if Kinds returns nil, a
// resource handles all kinds.
type KindLister interface {
	// Kinds returns the kinds, such as "Deployment.apps". It is constant.
	Kinds() []string
}

func kindsOf(r any) []string {
	if k, ok := r.(KindLister); ok {
		return k.Kinds()
	}
	return nil
}

// Step names the step of a resource in errors, logs and metrics.
type Step string

// The steps of plain and of CRUD resources.
const (
	StepEnsureCreated     Step = "ensure_created"
	StepEnsureDeleted     Step = "ensure_deleted"
	StepGetCurrentState   Step = "get_current_state"
	StepGetDesiredState   Step = "get_desired_state"
	StepNewUpdatePatch    Step = "new_update_patch"
	StepNewDeletePatch    Step = "new_delete_patch"
	StepApplyCreateChange Step = "apply_create_change"
	StepApplyUpdateChange Step = "apply_update_change"
	StepApplyDeleteChange Step = "apply_delete_change"
	StepPlan              Step = "plan"
)

// TypedPatch holds the changes of a CRUD resource. Its three parts are applied in the order create,
// update, delete, so that nothing is deleted before its replacement exists. A part that was not set
// is not applied; a nil patch applies nothing. A part that was set is applied whatever its value,
// even if it is empty.
//
// A patch is made by one goroutine and then only read.
type TypedPatch[S any] struct {
	create, update, delete part[S]
}

// Patch is the untyped TypedPatch.
type Patch = TypedPatch[any]

type part[S any] struct {
	value S
	set   bool
}

// NewTypedPatch returns a patch without any part.
func NewTypedPatch[S any]() *TypedPatch[S] { return &TypedPatch[S]{} }

// NewPatch returns an untyped patch without any part.
func NewPatch() *Patch { return NewTypedPatch[any]() }

// SetCreateChange sets the argument of ApplyCreateChange.
func (p *TypedPatch[S]) SetCreateChange(create S) { p.create = part[S]{value: create, set: true} }

// SetUpdateChange sets the argument of ApplyUpdateChange.
func (p *TypedPatch[S]) SetUpdateChange(update S) { p.update = part[S]{value: update, set: true} }

// SetDeleteChange sets the argument of ApplyDeleteChange.
func (p *TypedPatch[S]) SetDeleteChange(delete S) { p.delete = part[S]{value: delete, set: true} }

// CreateChange returns the create part, and false when it was not set. A nil patch has no parts.
func (p *TypedPatch[S]) CreateChange() (S, bool) { return p.parts().create.get() }

// UpdateChange returns the update part, and false when it was not set.
func (p *TypedPatch[S]) UpdateChange() (S, bool) { return p.parts().update.get() }

// DeleteChange returns the delete part, and false when it was not set.
func (p *TypedPatch[S]) DeleteChange() (S, bool) { return p.parts().delete.get() }

// set returns which parts were set.
func (p *TypedPatch[S]) set() (set parts) {
	all := p.parts()
	if all.create.set {
		set |= createPart
	}
	if all.update.set {
		set |= updatePart
	}
	if all.delete.set {
		set |= deletePart
	}
	return set
}

// without returns the patch without some of its parts.
func (p *TypedPatch[S]) without(held parts) *TypedPatch[S] {
	kept := p.parts()
	if held&createPart != 0 {
		kept.create = part[S]{}
	}
	if held&updatePart != 0 {
		kept.update = part[S]{}
	}
	if held&deletePart != 0 {
		kept.delete = part[S]{}
	}
	return &kept
}

func (p *TypedPatch[S]) parts() TypedPatch[S] {
	if p == nil {
		return TypedPatch[S]{}
	}
	return *p
}

func (p part[S]) get() (S, bool) { return p.value, p.set }
