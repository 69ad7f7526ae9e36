package worklist

import (
	"context"

	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/framework"
)

// Ops is what the author of such a resource writes: framework.TypedCRUDResourceOps without a current state, which is empty, so that
// what is and what is to be are read at the same time, and with one function for all parts of a patch. It may implement
// framework.FormerNamer and framework.RightsLister.
type Ops[O, S any] interface {
	// Name is that of framework.TypedCRUDResourceOps, as the following ones are.
	Name() string
	// GetDesiredState returns what there is to do.
	GetDesiredState(ctx context.Context, obj O) (S, error)
	// NewUpdatePatch sorts that into parts. The current state is empty.
	NewUpdatePatch(ctx context.Context, obj O, currentState, desiredState S) (*framework.TypedPatch[S], error)
	// NewDeletePatch sorts that into parts while the primary is being deleted. The current state is empty.
	NewDeletePatch(ctx context.Context, obj O, currentState, desiredState S) (*framework.TypedPatch[S], error)
	// Apply carries out a part of a patch, whichever it is.
	Apply(ctx context.Context, obj O, change S) error
}

// New returns the resource, or an error for which framework.IsInvalidConfig holds.
func New[O, S any](logger micrologger.Logger, author Ops[O, S]) (*framework.TypedCRUDResource[O, S], error) {
	return framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[O, S]{Logger: logger, Ops: ops[O, S]{author}})
}

// ops makes framework.TypedCRUDResourceOps of Ops.
type ops[O, S any] struct{ Ops[O, S] }

// FormerNames implements framework.FormerNamer, for those whose author does.
func (o ops[O, S]) FormerNames() []string {
	if n, ok := o.Ops.(framework.FormerNamer); ok {
		return n.FormerNames()
	}
	return nil
}

// Rights implements framework.RightsLister, for those whose author does.
func (o ops[O, S]) Rights() []framework.Right { return framework.RightsOf(o.Ops) }

// GetCurrentState implements framework.TypedCRUDResourceOps.
func (ops[O, S]) GetCurrentState(context.Context, O) (S, error) {
	var empty S
	return empty, nil
}

// ApplyCreateChange implements framework.TypedCRUDResourceOps.
func (o ops[O, S]) ApplyCreateChange(ctx context.Context, obj O, change S) error {
	return o.Apply(ctx, obj, change)
}

// ApplyUpdateChange implements framework.TypedCRUDResourceOps.
func (o ops[O, S]) ApplyUpdateChange(ctx context.Context, obj O, change S) error {
	return o.Apply(ctx, obj, change)
}

// ApplyDeleteChange implements framework.TypedCRUDResourceOps.
func (o ops[O, S]) ApplyDeleteChange(ctx context.Context, obj O, change S) error {
	return o.Apply(ctx, obj, change)
}
