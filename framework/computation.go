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

// computing is a computation that is under way.
type computing[O, S any] struct {
	ops readOnlyOps[O, S]
	obj O
	states[S]
	patch *TypedPatch[S]
}

// do carries out one step.
func (c *computing[O, S]) do(ctx context.Context, step Step) (err error) {
	switch step {
	case StepGetCurrentState:
		c.current, err = c.ops.GetCurrentState(ctx, c.obj)
	case StepGetDesiredState:
		c.desired, err = c.ops.GetDesiredState(ctx, c.obj)
	case StepNewUpdatePatch:
		c.patch, err = c.ops.NewUpdatePatch(ctx, c.obj, c.current, c.desired)
	case StepNewDeletePatch:
		c.patch, err = c.ops.NewDeletePatch(ctx, c.obj, c.current, c.desired)
	}
	return err
}

// patch returns what the resource would change, and the states. The patch is nil when there is nothing to do, and
// when a signal ended the resource on the way. With an error of Partial it is what the resource would change all the same.
func (c computation[O, S]) patch(ctx context.Context, obj O, event Step) (states[S], *TypedPatch[S], error) {
	last := StepNewUpdatePatch
	if event == StepEnsureDeleted {
		last = StepNewDeletePatch
	}
	now := &computing[O, S]{ops: c.ops, obj: obj}
	for _, step := range [...]Step{StepGetCurrentState, StepGetDesiredState, last} {
		on, err := c.step(ctx, step, now)
		switch {
		case on:
			continue
		case step != last || !IsPartial(err):
			return now.states, nil, err
		case event == StepEnsureCreated:
			now.patch = now.patch.without(deletePart)
		}
		return now.states, now.patch, err
	}
	return now.states, now.patch, nil
}

// step carries out one step unless the resource has been stopped, and tells whether to go on.
func (c computation[O, S]) step(ctx context.Context, step Step, now *computing[O, S]) (bool, error) {
	info := StepInfo{c.ops.Name(), step}
	if on, err := proceed(ctx); !on {
		return false, stepError(info, err)
	}
	err := runStep(ctx, c.middlewares, info, now)
	return err == nil, err
}
