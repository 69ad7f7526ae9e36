package deploymentresource

import (
	"context"
	"errors"
	"reflect"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// resource is the logic of the CRUD resource. The operations of a plan say what there was, so that no current state is read.
type resource[O any] struct{ config Config[O] }

// errNoRemoval is an author's mistake that would keep a primary for ever, or take away what is to stay.
var errNoRemoval = errors.New("Compute has to return a Removal for a primary that is being deleted, and only then")

// errForeignWork is an author's mistake that would leave containers which nobody finds again.
var errForeignWork = errors.New("Compute has to give Plan and Removal the context that it is given")

// Name implements worklist.Ops.
func (r *resource[O]) Name() string { return r.config.Name }

// FormerNames implements framework.FormerNamer.
func (r *resource[O]) FormerNames() []string { return r.config.FormerNames }

// GetDesiredState implements worklist.Ops.
func (r *resource[O]) GetDesiredState(ctx context.Context, obj O) (State, error) {
	ctx = api.WithResource(ctx, r.config.Name, r.config.FormerNames)
	work, err := r.config.Compute(ctx, obj)
	if err == nil && work != nil && !reflect.DeepEqual(work.State.Owner, api.OwnershipOf(ctx)) {
		return State{}, framework.Permanent(errForeignWork)
	}
	return State{work: work}, err
}

// NewUpdatePatch implements worklist.Ops.
func (r *resource[O]) NewUpdatePatch(_ context.Context, _ O, _, desired State) (*framework.TypedPatch[State], error) {
	if desired.work != nil && desired.work.removal {
		return nil, framework.Permanent(errNoRemoval)
	}
	if !desired.pending() {
		return nil, nil
	}
	patch := framework.NewTypedPatch[State]()
	switch actionOf(desired.Changes()) {
	case plan.Create:
		patch.SetCreateChange(desired)
	case plan.Delete:
		patch.SetDeleteChange(desired)
	default:
		patch.SetUpdateChange(desired)
	}
	return patch, nil
}

// actionOf returns the action that all changes have, and Update when there are several.
func actionOf(changes []plan.Change) plan.Action {
	action := changes[0].Action
	for i := range changes {
		if changes[i].Action != action {
			return plan.Update
		}
	}
	return action
}

// NewDeletePatch implements worklist.Ops. The deletion of the primary waits until nothing is left.
func (r *resource[O]) NewDeletePatch(ctx context.Context, _ O, _, desired State) (*framework.TypedPatch[State], error) {
	if desired.work == nil || len(desired.work.Left) > 0 {
		finalizerskeptcontext.SetKept(ctx)
	}
	if desired.work != nil && !desired.work.removal {
		return nil, framework.Permanent(errNoRemoval)
	}
	if !desired.pending() {
		return nil, nil
	}
	patch := framework.NewTypedPatch[State]()
	patch.SetDeleteChange(desired)
	return patch, nil
}
