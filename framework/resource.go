package framework

import "context"

// Resource is one step of the reconciliation of an object. Most resources are CRUD resources; a plain one implements
// this interface itself.
//
// A resource that implements Planner too can be planned; CRUD resources can in any case.
//
// The resources of a set run one after the other, in the order given. An error ends the reconciliation, but for a Concluder, and it is
// tried again with backoff. Every resource gets an object of its own, which it may change. The same resource is called for
// different objects at the same time, never twice at once for one object.
type Resource interface {
	// Name identifies the resource in logs, metrics and errors. It is constant and unique within its set.
	Name() string
	// EnsureCreated is called when an object was created or changed, and again after errors, restarts and resyncs: it
	// must be idempotent.
	EnsureCreated(ctx context.Context, obj any) error
	// EnsureDeleted is called when an object is being deleted, with its last known state. It must be idempotent: it is
	// called at least once with success for every deletion, and may be called again after that.
	EnsureDeleted(ctx context.Context, obj any) error
}

// FormerNamer is implemented by resources that had other names before, because they were renamed or split: what carries the mark
// of one of these is theirs to take over. A resource that took over from another one of its set stands before that. Resources that
// wrap steps, and CRUD resources whose Ops implement it, do.
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

// KindLister is implemented by resources that look after things of some kinds only: a thing of another kind that carries a former
// name is not left to them. CRUD resources whose Ops implement it, and resources that wrap steps, do. Without it, and by nil, a
// resource looks after all kinds.
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

// Step names what a resource was doing, in errors, logs and metrics.
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

// TypedPatch is what a CRUD resource would change. It has three parts, which are applied in the order create, update,
// delete, so that nothing is taken away before its replacement stands. A part that was not set is not applied; a nil
// patch applies nothing. A part that was set is applied whatever its value, also when it is empty.
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

// SetCreateChange sets what ApplyCreateChange receives.
func (p *TypedPatch[S]) SetCreateChange(create S) { p.create = part[S]{value: create, set: true} }

// SetUpdateChange sets what ApplyUpdateChange receives.
func (p *TypedPatch[S]) SetUpdateChange(update S) { p.update = part[S]{value: update, set: true} }

// SetDeleteChange sets what ApplyDeleteChange receives.
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
