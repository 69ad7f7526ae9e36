package framework

import (
	"context"
	"fmt"
	"slices"

	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/internal/faults"
)

// TypedCRUDResourceOps is written by the author of a CRUD resource. O is the type of the reconciled
// objects. S is the type of the states: the current one, the desired one, and the changes.
//
// The functions that compute must not change anything outside. They are called for plans too, at
// any time, also while the same object is reconciled. The Apply functions get exactly what a patch
// holds and compute nothing. All functions are called for different objects at the same time.
type TypedCRUDResourceOps[O, S any] interface {
	// Name identifies the resource in logs, metrics and errors. It is constant and not empty.
	Name() string
	// GetCurrentState returns the current state for the object. It is the first step of every
	// update and deletion.
	GetCurrentState(ctx context.Context, obj O) (S, error)
	// GetDesiredState returns the desired state. In deletions it is called as well; there it
	// returns what may exist.
	GetDesiredState(ctx context.Context, obj O) (S, error)
	// NewUpdatePatch returns the changes from current to desired after the object was created or
	// changed. Nil: nothing to do. With a Partial error, it returns the changes of the things that
	// did not fail.
	NewUpdatePatch(ctx context.Context, obj O, currentState, desiredState S) (*TypedPatch[S], error)
	// NewDeletePatch returns the changes that clean up while the object is being deleted. Nil:
	// nothing to do.
	NewDeletePatch(ctx context.Context, obj O, currentState, desiredState S) (*TypedPatch[S], error)
	// ApplyCreateChange creates the create part of a patch. It must be idempotent: after a crash
	// the next patch may hold it again.
	ApplyCreateChange(ctx context.Context, obj O, createChange S) error
	// ApplyUpdateChange applies the update part of a patch. It must be idempotent.
	ApplyUpdateChange(ctx context.Context, obj O, updateChange S) error
	// ApplyDeleteChange deletes the delete part of a patch. It must be idempotent: if something is
	// already gone, that is not an error.
	ApplyDeleteChange(ctx context.Context, obj O, deleteChange S) error
}

// CRUDResourceOps is the untyped TypedCRUDResourceOps.
type CRUDResourceOps = TypedCRUDResourceOps[any, any]

// TypedCRUDResourceConfig configures a TypedCRUDResource.
type TypedCRUDResourceConfig[O, S any] struct {
	// Logger receives a message at level info for every part of a patch that was applied, without
	// the part's content. Required.
	Logger micrologger.Logger
	// Ops is the logic of the resource. Required.
	Ops TypedCRUDResourceOps[O, S]
}

// CRUDResourceConfig is the untyped TypedCRUDResourceConfig.
type CRUDResourceConfig = TypedCRUDResourceConfig[any, any]

// TypedCRUDResource makes a Resource of TypedCRUDResourceOps. Its steps are current state, desired
// state, patch, and then the parts of the patch that were set, in the order create, update, delete.
// The signals of the context are checked before every step. It is safe for concurrent use.
//
// A type that embeds it is a plain resource, because its EnsureCreated may do more. WrapSteps wraps
// such a type as a whole, unless it has its own method WrapSteps. It can be planned if it is a
// Planner.
type TypedCRUDResource[O, S any] struct {
	TypedCRUDResourceOps[O, S]

	logger      micrologger.Logger
	computation computation[O, S]
	middlewares []Middleware
}

// CRUDResource is the untyped TypedCRUDResource.
type CRUDResource = TypedCRUDResource[any, any]

// NewTypedCRUDResource returns a CRUD resource, or an error for which IsInvalidConfig holds.
func NewTypedCRUDResource[O, S any](config TypedCRUDResourceConfig[O, S]) (*TypedCRUDResource[O, S], error) {
	var wrong faults.List
	wrong.If(config.Logger == nil, "Logger must not be nil")
	if isNil(config.Ops) {
		wrong.Add("Ops must not be nil")
	} else if config.Ops.Name() == "" {
		wrong.Add("Ops.Name() must not be empty")
	}
	if err := wrong.Of("CRUDResourceConfig"); err != nil {
		return nil, err
	}
	return &TypedCRUDResource[O, S]{
		TypedCRUDResourceOps: config.Ops,
		logger:               config.Logger,
		computation:          computation[O, S]{ops: config.Ops},
	}, nil
}

// NewCRUDResource returns an untyped CRUD resource, or an error for which IsInvalidConfig holds.
func NewCRUDResource(config CRUDResourceConfig) (*CRUDResource, error) {
	return NewTypedCRUDResource(config)
}

func (r *TypedCRUDResource[O, S]) itself() Resource { return r }

// WrapSteps implements StepWrapper.
func (r *TypedCRUDResource[O, S]) WrapSteps(m Middleware) Resource {
	c := *r
	c.middlewares = append(slices.Clone(r.middlewares), m)
	c.computation.middlewares = c.middlewares
	return &c
}

// FormerNames implements FormerNamer.
func (r *TypedCRUDResource[O, S]) FormerNames() []string {
	return formerNamesOf(r.TypedCRUDResourceOps)
}

// Kinds implements KindLister.
func (r *TypedCRUDResource[O, S]) Kinds() []string { return kindsOf(r.TypedCRUDResourceOps) }

// Rights implements RightsLister.
func (r *TypedCRUDResource[O, S]) Rights() []Right { return RightsOf(r.TypedCRUDResourceOps) }

// EnsureCreated implements Resource.
func (r *TypedCRUDResource[O, S]) EnsureCreated(ctx context.Context, obj any) error {
	return r.ensure(ctx, obj, StepEnsureCreated)
}

// EnsureDeleted implements Resource.
func (r *TypedCRUDResource[O, S]) EnsureDeleted(ctx context.Context, obj any) error {
	return r.ensure(ctx, obj, StepEnsureDeleted)
}

func (r *TypedCRUDResource[O, S]) ensure(ctx context.Context, obj any, event Step) error {
	o, err := typed[O](r.Name(), obj, event)
	if err != nil {
		return err
	}
	states, patch, fault := r.computation.patch(ctx, o, event)
	if fault != nil && !IsPartial(fault) {
		return fault
	}
	switch on, err := proceed(ctx); {
	case err != nil:
		return joinPartial(fault, stepError(StepInfo{r.Name(), event}, err))
	case !on:
		patch = nil
	}
	changes := func(would parts) ([]plan.Change, error) {
		return changesOf(states.current, patch.without(^would)), nil
	}
	held, err := gate(ctx, Proposal{
		Resource: r.Name(),
		Event:    event.event(),
		parts:    patch.set(),
		describe: changes,
	})
	if err != nil {
		return joinPartial(fault, err)
	}
	return joinPartial(fault, r.apply(ctx, o, states.current, patch.without(held)))
}

// typed returns the object as the type that the resource expects.
func typed[O any](resource string, obj any, event Step) (O, error) {
	o, ok := obj.(O)
	if !ok && obj != nil {
		return o, &StepError{resource, event, Permanent(fmt.Errorf("object is a %T, but the resource is for %T: "+
			"check Handles of its resource set", obj, o))}
	}
	return o, nil
}

// apply applies the parts of a patch that were set: create first, delete last.
func (r *TypedCRUDResource[O, S]) apply(ctx context.Context, obj O, current S, patch *TypedPatch[S]) (fault error) {
	if change, ok := patch.CreateChange(); ok {
		part := applied[S]{StepApplyCreateChange, plan.Create, current, change}
		if fault = r.applyPart(ctx, obj, part, r.ApplyCreateChange); fault != nil && !IsPartial(fault) {
			return fault
		}
	}
	if change, ok := patch.UpdateChange(); ok {
		part := applied[S]{StepApplyUpdateChange, plan.Update, current, change}
		fault = joinPartial(fault, r.applyPart(ctx, obj, part, r.ApplyUpdateChange))
	}
	if fault != nil {
		return fault
	}
	if change, ok := patch.DeleteChange(); ok {
		part := applied[S]{StepApplyDeleteChange, plan.Delete, current, change}
		return r.applyPart(ctx, obj, part, r.ApplyDeleteChange)
	}
	return nil
}

// joinPartial joins two errors as Partial; either may be nil.
func joinPartial(fault, other error) error {
	switch {
	case fault == nil:
		return other
	case other == nil:
		return fault
	}
	return Partial(fault, other)
}

// applied is a part of a patch that is being applied.
type applied[S any] struct {
	step            Step
	action          plan.Action
	current, change S
}

func (r *TypedCRUDResource[O, S]) applyPart(
	ctx context.Context, obj O, part applied[S], apply func(context.Context, O, S) error,
) error {
	info := StepInfo{r.Name(), part.step}
	if on, err := proceed(ctx); !on {
		return stepError(info, err)
	}
	s := scopeOf(ctx)
	s.observers().applying(s, part.action, part.change, part.current)
	return runStep(ctx, r.middlewares, info, applying(func(ctx context.Context) error {
		if err := apply(ctx, obj, part.change); err != nil {
			return err
		}
		logApplied(ctx, r.logger, info)
		return nil
	}))
}

// applying applies a part of a patch.
type applying func(context.Context) error

func (a applying) do(ctx context.Context, _ Step) error { return a(ctx) }
