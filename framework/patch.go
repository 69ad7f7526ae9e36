package framework

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

func (p *TypedPatch[S]) parts() TypedPatch[S] {
	if p == nil {
		return TypedPatch[S]{}
	}
	return *p
}

func (p part[S]) get() (S, bool) { return p.value, p.set }
