package framework

import (
	"context"
	"fmt"
	"slices"

	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/internal/faults"
)

// ResourceSetConfig configures a ResourceSet.
type ResourceSetConfig struct {
	// Name identifies the set in plans and records, such as the version of its logic: "v2".
	// Default: none. It is required for a shadow.
	Name string
	// Shadow makes the set a shadow, such as the next version of the operator's logic. A shadow is
	// compared and never run. For objects that another set of the router handles and that its
	// Handles accepts too, the framework plans both sets and keeps the differences of the plans
	// (see Framework.Shadows). By its type, the framework can't apply the plan of a shadow.
	// Default: false.
	Shadow bool
	// Handles reports whether the set handles an object. It must not change the object. For every
	// object at most one set of a router may return true, not counting shadows. Required, unless
	// HandlesRest is set. HandlesLabel and HandlesType are the usual functions.
	Handles func(obj any) bool
	// HandlesRest makes the set handle all objects that no other set of the router handles, instead
	// of Handles. One set of a router may have it, not counting shadows. Default: false, such
	// objects are ignored.
	HandlesRest bool
	// InitCtx prepares the context of one reconciliation, for example with something that all
	// resources need, or with a signal that forbids updates or the deletion. It must return a child
	// of the given context, and must not change the object or anything else: it is called for plans
	// and shadows too. Default: the context is unchanged.
	InitCtx func(ctx context.Context, obj any) (context.Context, error)
	// Logger is for the set's own messages. Default: none.
	Logger micrologger.Logger
	// Resources run in this order. Required; names must be unique, and resources that conclude (see
	// Concluder) come last.
	Resources []Resource
	// DeleteBackwards makes a deletion run the resources from the last to the first: the newest
	// things are deleted first. Resources that conclude stay last. Default: false, the order is the
	// same for all events.
	DeleteBackwards bool
}

// ResourceSet is the ordered list of resources for one version of an object. It is immutable.
type ResourceSet struct {
	setPlanner
	config    ResourceSetConfig
	shadow    bool
	resources []Resource
	// backwards is the set for deletions, if it differs.
	backwards *ResourceSet
}

// setPlanner is a resource set for planning. It can't reach the resources themselves.
type setPlanner struct {
	name     string
	handles  func(obj any) bool
	rest     bool
	initCtx  func(ctx context.Context, obj any) (context.Context, error)
	planners []planner
	// left are the former names of each resource that another resource handles.
	left []identity.Scope
	// deletes is the planner for deletions, if it differs.
	deletes *setPlanner
}

// NewResourceSet returns a resource set, or an error that lists every fault and for which
// IsInvalidConfig holds.
func NewResourceSet(c ResourceSetConfig) (*ResourceSet, error) {
	c.Resources = slices.Clone(c.Resources)
	given := c
	var wrong faults.List
	wrong.If(c.Shadow && c.Name == "", "Name must not be empty for a shadow")
	switch {
	case c.Handles == nil && !c.HandlesRest:
		wrong.Add("Handles must not be nil, or HandlesRest be true")
	case c.Handles != nil && c.HandlesRest:
		wrong.Add("Handles and HandlesRest must not both be set")
	case c.HandlesRest:
		c.Handles = func(any) bool { return true }
	}
	wrong.If(len(c.Resources) == 0, "Resources must not be empty")
	names := map[string]bool{}
	for i, r := range c.Resources {
		switch {
		case isNil(r):
			wrong.Add("Resources[%d] must not be nil", i)
		case r.Name() == "":
			wrong.Add("Resources[%d].Name() must not be empty", i)
		case names[r.Name()]:
			wrong.Add("Resources[%d]: the name %q is taken by an earlier resource", i, r.Name())
		default:
			names[r.Name()] = true
		}
	}
	if len(wrong) == 0 {
		checkFormerNames(c.Resources, &wrong)
		misplacedConclusions(c.Resources, &wrong)
	}
	if err := wrong.Of("ResourceSetConfig"); err != nil {
		return nil, err
	}
	set := &ResourceSet{
		setPlanner: setPlanner{
			name:     c.Name,
			handles:  c.Handles,
			rest:     c.HandlesRest,
			initCtx:  c.InitCtx,
			planners: plannersOf(c.Resources),
			left:     leftToOthers(c.Resources),
		},
		config:    given,
		shadow:    c.Shadow,
		resources: c.Resources,
	}
	if c.DeleteBackwards {
		set.turn()
	}
	return set, nil
}

// Config returns the configuration of the set, as a base for a similar one. The slice of the
// resources is the caller's.
func (r *ResourceSet) Config() ResourceSetConfig {
	c := r.config
	c.Resources = r.Resources()
	return c
}

// Name returns the name from the configuration.
func (r *ResourceSet) Name() string { return r.name }

// Shadow reports whether the set is a shadow.
func (r *ResourceSet) Shadow() bool { return r.shadow }

// Handles reports whether the set handles an object. A set with HandlesRest handles each object
// that no other set handles.
func (r *ResourceSet) Handles(obj any) bool { return r.handles(obj) }

// InitCtx prepares the context of one reconciliation.
func (r *ResourceSet) InitCtx(ctx context.Context, obj any) (context.Context, error) {
	return callInitCtx(ctx, obj, r.initCtx)
}

// parentKey is the context key of the value that identifies child contexts.
type parentKey struct{}

// callInitCtx returns the context that an InitCtx function makes, if there is one.
func callInitCtx(
	ctx context.Context, obj any, initCtx func(context.Context, any) (context.Context, error),
) (context.Context, error) {
	if initCtx == nil {
		return ctx, nil
	}
	mark := new(byte)
	initialised, err := initCtx(context.WithValue(ctx, parentKey{}, mark), obj)
	switch {
	case err != nil:
	case initialised == nil:
		err = fmt.Errorf("%w: InitCtx returned neither a context nor an error", ErrExecutionFailed)
	case initialised.Value(parentKey{}) != mark:
		err = fmt.Errorf("%w: InitCtx returned a context that is no child of the one it was given, "+
			"by which signals and the end of the run come: make it from that one, as context.WithValue does",
			ErrExecutionFailed)
	}
	if err != nil {
		return nil, fmt.Errorf("initialise context: %w", err)
	}
	return initialised, nil
}

// Resources returns the resources in their order. The slice is the caller's.
func (r *ResourceSet) Resources() []Resource { return slices.Clone(r.resources) }

// ResourceRouterConfig configures a ResourceRouter.
type ResourceRouterConfig struct {
	// Logger is for the router's own messages. Required.
	Logger micrologger.Logger
	// ResourceSets are asked in this order. Required, with at least one that is not a shadow. The
	// names of shadows must be unique.
	ResourceSets []*ResourceSet
}

// ResourceRouter picks the one resource set that handles an object. It is safe for concurrent use.
type ResourceRouter struct {
	sets    []*ResourceSet
	shadows []*setPlanner
	// rest is the set with HandlesRest, if there is one.
	rest *ResourceSet
}

// NewResourceRouter returns a router, or an error for which IsInvalidConfig holds.
func NewResourceRouter(c ResourceRouterConfig) (*ResourceRouter, error) {
	var wrong faults.List
	wrong.If(c.Logger == nil, "Logger must not be nil")
	wrong.If(len(c.ResourceSets) == 0, "ResourceSets must not be empty")
	r := &ResourceRouter{sets: slices.Clone(c.ResourceSets)}
	for i, s := range c.ResourceSets {
		switch {
		case s == nil:
			wrong.Add("ResourceSets[%d] must not be nil", i)
		case s.shadow && slices.ContainsFunc(r.shadows, func(p *setPlanner) bool { return p.name == s.name }):
			wrong.Add("ResourceSets[%d]: the name %q is taken by an earlier shadow", i, s.name)
		case s.shadow:
			r.shadows = append(r.shadows, &s.setPlanner)
		case s.rest && r.rest != nil:
			wrong.Add("ResourceSets[%d]: an earlier one has HandlesRest too", i)
		case s.rest:
			r.rest = s
		}
	}
	wrong.If(len(wrong) == 0 && len(r.shadows) == len(r.sets), "ResourceSets must not be shadows only")
	if err := wrong.Of("ResourceRouterConfig"); err != nil {
		return nil, err
	}
	return r, nil
}

// ResourceSet returns the resource set that handles the object. If there is none, IsNoResourceSet
// holds for the error. If there are several, IsExecutionFailed holds for the error, which names
// them, counted from 0. Shadows are not asked, and the set with HandlesRest comes after the others.
func (r *ResourceRouter) ResourceSet(obj any) (*ResourceSet, error) {
	var found *ResourceSet
	first := 0
	for i, s := range r.sets {
		if s.shadow || s.rest || !s.Handles(obj) {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf(
				"%w: %w: resource sets %d and %d both handle it; make their Handles functions exclude each other",
				ErrExecutionFailed, errSeveralResourceSets, first, i)
		}
		found, first = s, i
	}
	if found == nil {
		found = r.rest
	}
	if found == nil {
		return nil, fmt.Errorf("%w: none of the %d resource sets handles it",
			ErrNoResourceSet, len(r.sets)-len(r.shadows))
	}
	return found, nil
}

// shadowHandles reports whether a shadow is compared for an object. A shadow with HandlesRest is
// compared for all objects that no set of the router handles by its Handles.
func (r *ResourceRouter) shadowHandles(shadow *setPlanner, obj any) bool {
	if !shadow.rest {
		return shadow.handles(obj)
	}
	return !slices.ContainsFunc(r.sets, func(s *ResourceSet) bool { return !s.shadow && !s.rest && s.Handles(obj) })
}
