package statemanagerresource

import (
	"context"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/context/updateallowedcontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/patch"
	"github.com/operatorkit/operatorkit/resource/statemanager"
)

// resource is the logic of the CRUD resource. Each operation says what there was, so that no current state is read.
type resource[O any] struct{ config Config[O] }

// Name implements worklist.Ops.
func (r *resource[O]) Name() string { return r.config.Name }

// Rights implements framework.RightsLister: those that the state manager declares as one.
func (r *resource[O]) Rights() []framework.Right { return framework.RightsOf(r.config.Manager) }

// GetDesiredState implements worklist.Ops.
func (r *resource[O]) GetDesiredState(ctx context.Context, obj O) (State, error) {
	set, work, err := r.config.Compute(ctx, obj)
	if err != nil || work == nil {
		return State{}, err
	}
	state := State{set: set, work: work}
	for i := range work.Operations {
		state.operations = append(state.operations, &work.Operations[i])
	}
	return state, nil
}

// NewUpdatePatch implements worklist.Ops. All operations are in one part, so that one that fails does not keep
// the others from theirs. Where updates are not allowed, those that only create or only delete still are.
func (r *resource[O]) NewUpdatePatch(ctx context.Context, _ O, _, desired State) (*framework.TypedPatch[State], error) {
	desired.lookAgain(ctx)
	all := desired.only(pending)
	if updateallowedcontext.IsUpdateAllowed(ctx) {
		return patch.Of(State.busy, State{}, all, State{}), nil
	}
	create, remove := all.only(does(plan.Create)), all.only(does(plan.Delete))
	update := all.only(func(o *statemanager.Operation) bool { return !does(plan.Create)(o) && !does(plan.Delete)(o) })
	return patch.Of(State.busy, create, update, remove), nil
}

// NewDeletePatch implements worklist.Ops. The deletion of the primary waits until nothing is left.
func (r *resource[O]) NewDeletePatch(ctx context.Context, _ O, _, desired State) (*framework.TypedPatch[State], error) {
	desired.lookAgain(ctx)
	if desired.work == nil || desired.work.Left {
		finalizerskeptcontext.SetKept(ctx)
	}
	return patch.Of(State.busy, State{}, State{}, desired.only(pending)), nil
}

// lookAgain asks for the next look at the time that the state manager wants.
func (s State) lookAgain(ctx context.Context) {
	if s.work != nil && s.work.Requeue > 0 {
		requeuecontext.SetAfter(ctx, s.work.Requeue)
	}
}

// only returns the state with those operations for which a condition holds.
func (s State) only(holds func(*statemanager.Operation) bool) State {
	some := State{set: s.set, work: s.work}
	for _, o := range s.operations {
		if holds(o) {
			some.operations = append(some.operations, o)
		}
	}
	return some
}

// does returns a function that tells whether all changes of an operation are of one kind.
func does(action plan.Action) func(*statemanager.Operation) bool {
	return func(o *statemanager.Operation) bool {
		for i := range o.Changes {
			if o.Changes[i].Action != action {
				return false
			}
		}
		return true
	}
}

// busy tells whether there is an operation.
func (s State) busy() bool { return len(s.operations) > 0 }
