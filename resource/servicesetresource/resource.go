package servicesetresource

import (
	"context"
	"slices"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/updateallowedcontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/internal/patch"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// resource is the logic of the CRUD resource. Each operation says what there was, so that no current state is read.
type resource[O any] struct{ config Config[O] }

// Name implements worklist.Ops.
func (r *resource[O]) Name() string { return r.config.Name }

// Rights implements framework.RightsLister.
func (r *resource[O]) Rights() []framework.Right {
	return []framework.Right{{Kind: v1alpha1.GroupVersion.WithKind(v1alpha1.ServiceSetKind), Verbs: []string{"create", "update", "delete"}}}
}

// GetDesiredState implements worklist.Ops.
func (r *resource[O]) GetDesiredState(ctx context.Context, obj O) (State, error) {
	operations, err := r.config.Compute(ctx, obj)
	return State{operations}, err
}

// NewUpdatePatch implements worklist.Ops. All writes are in one part, so that one that is refused does not
// keep the others from theirs. Where updates are not allowed, creations and deletions still are.
func (r *resource[O]) NewUpdatePatch(ctx context.Context, _ O, _, desired State) (*framework.TypedPatch[State], error) {
	create, update, remove := desired.parts()
	if updateallowedcontext.IsUpdateAllowed(ctx) {
		update.operations = append(append(create.operations, update.operations...), remove.operations...)
		create, remove = State{}, State{}
	}
	return patch.Of(State.busy, create, update, remove), nil
}

// NewDeletePatch implements worklist.Ops. Nothing is created, and the deletion of the primary waits until
// all sets are gone.
func (r *resource[O]) NewDeletePatch(ctx context.Context, obj O, _, desired State) (*framework.TypedPatch[State], error) {
	left := slices.ContainsFunc(desired.operations, func(o serviceset.OwnerOperation) bool {
		return o.Err != nil || o.Operation != nil && o.Operation.Before != nil
	})
	if !left && r.config.Left != nil {
		var err error
		if left, err = r.config.Left(ctx, obj); err != nil {
			return nil, err
		}
	}
	if left {
		finalizerskeptcontext.SetKept(ctx)
	}
	_, update, remove := desired.parts()
	return patch.Of(State.busy, State{}, update, remove), nil
}

// parts returns the operations that write, by what they do.
func (s State) parts() (create, update, remove State) {
	for _, o := range s.operations {
		var part *State
		switch operationOf(&o) {
		case v1alpha1.ServiceSetOperationCreate:
			part = &create
		case v1alpha1.ServiceSetOperationUpdate:
			part = &update
		case v1alpha1.ServiceSetOperationDelete:
			part = &remove
		default:
			continue
		}
		part.operations = append(part.operations, o)
	}
	return create, update, remove
}

// operationOf returns what is done with a set; nothing, if its owner has something to mend.
func operationOf(o *serviceset.OwnerOperation) v1alpha1.ServiceSetOperation {
	if o.Err != nil || o.Operation == nil {
		return v1alpha1.ServiceSetOperationNone
	}
	return o.Operation.Operation
}

// busy tells whether there is an operation.
func (s State) busy() bool { return len(s.operations) > 0 }
