package framework

import "context"

// readOnlyOps is the part of TypedCRUDResourceOps that changes nothing. Whoever has only this can plan and cannot apply.
type readOnlyOps[O, S any] interface {
	Name() string
	GetCurrentState(ctx context.Context, obj O) (S, error)
	GetDesiredState(ctx context.Context, obj O) (S, error)
	NewUpdatePatch(ctx context.Context, obj O, currentState, desiredState S) (*TypedPatch[S], error)
	NewDeletePatch(ctx context.Context, obj O, currentState, desiredState S) (*TypedPatch[S], error)
}

// computation computes the patch of a CRUD resource. By its type it can't reach a function that applies one.
type computation[O, S any] struct {
	ops         readOnlyOps[O, S]
	middlewares []Middleware
}

// states are what a patch is computed from.
type states[S any] struct{ current, desired S }

// patch returns what the resource would change, and the states. The patch is nil when there is nothing to do, and
// when a signal ended the resource on the way. With an error of Partial it is what the resource would change all the same.
func (c computation[O, S]) patch(ctx context.Context, obj O, event Step) (s states[S], patch *TypedPatch[S], err error) {
	if on, err := c.step(ctx, StepGetCurrentState, func(ctx context.Context) (err error) {
		s.current, err = c.ops.GetCurrentState(ctx, obj)
		return err
	}); !on {
		return s, nil, err
	}
	if on, err := c.step(ctx, StepGetDesiredState, func(ctx context.Context) (err error) {
		s.desired, err = c.ops.GetDesiredState(ctx, obj)
		return err
	}); !on {
		return s, nil, err
	}

	step, newPatch := StepNewUpdatePatch, c.ops.NewUpdatePatch
	if event == StepEnsureDeleted {
		step, newPatch = StepNewDeletePatch, c.ops.NewDeletePatch
	}
	on, err := c.step(ctx, step, func(ctx context.Context) (err error) {
		patch, err = newPatch(ctx, obj, s.current, s.desired)
		return err
	})
	switch {
	case on:
		return s, patch, nil
	case !IsPartial(err):
		return s, nil, err
	case event == StepEnsureCreated:
		patch = patch.withoutDelete()
	}
	return s, patch, err
}

// step carries out one step unless the resource has been stopped, and tells whether to go on.
func (c computation[O, S]) step(ctx context.Context, step Step, do func(context.Context) error) (bool, error) {
	info := StepInfo{c.ops.Name(), step}
	if on, err := proceed(ctx); !on {
		return false, stepError(info, err)
	}
	err := runStep(ctx, c.middlewares, info, do)
	return err == nil, err
}
