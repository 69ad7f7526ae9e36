package framework

import "context"

// readOnlyOps is the part of TypedCRUDResourceOps that changes nothing. Code that has only this can
// plan and cannot apply.
type readOnlyOps[O, S any] interface {
	Name() string
	GetCurrentState(ctx context.Context, obj O) (S, error)
	GetDesiredState(ctx context.Context, obj O) (S, error)
	NewUpdatePatch(ctx context.Context, obj O, currentState, desiredState S) (*TypedPatch[S], error)
	NewDeletePatch(ctx context.Context, obj O, currentState, desiredState S) (*TypedPatch[S], error)
}

// computation computes the patch of a CRUD resource. By its type it can't reach an Apply function.
type computation[O, S any] struct {
	ops         readOnlyOps[O, S]
	middlewares []Middleware
}

// states are the inputs of a patch.
type states[S any] struct{ current, desired S }

// computing is a computation in progress.
type computing[O, S any] struct {
	ops readOnlyOps[O, S]
	obj O
	states[S]
	patch *TypedPatch[S]
}

// do executes one step.
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

// patch returns the changes of the resource, and the states. The patch is nil when there is nothing
// to do, and when a signal ended the resource before. With a Partial error, it still holds the
// changes that did not fail.
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

// step executes one step unless the resource has been stopped, and reports whether to continue.
func (c computation[O, S]) step(ctx context.Context, step Step, now *computing[O, S]) (bool, error) {
	info := StepInfo{c.ops.Name(), step}
	if on, err := proceed(ctx); !on {
		return false, stepError(info, err)
	}
	err := runStep(ctx, c.middlewares, info, now)
	return err == nil, err
}
