package framework

import (
	"context"
	"fmt"
	"slices"

	"github.com/giantswarm/micrologger"
)

// ResourceSetConfig configures a ResourceSet.
type ResourceSetConfig struct {
	// Handles tells whether the set is the one for an object. It must not change the object, and for every object at most
	// one set of a router may say yes. Required. See HandlesLabel and HandlesType for the usual ones.
	Handles func(obj any) bool
	// InitCtx prepares the context of one reconciliation, for example with something that all resources need, or with a
	// signal that forbids updates or the deletion. It must return a child of the given context, and must not change the
	// object. Default: the context as it is.
	InitCtx func(ctx context.Context, obj any) (context.Context, error)
	// Logger is for the set's own messages. Default: none.
	Logger micrologger.Logger
	// Resources run in this order. Required; names must be unique.
	Resources []Resource
}

// ResourceSet is the ordered list of resources for one version of an object. It does not change once it is made.
type ResourceSet struct {
	handles   func(obj any) bool
	initCtx   func(ctx context.Context, obj any) (context.Context, error)
	resources []Resource
}

// NewResourceSet returns a resource set, or an error for which IsInvalidConfig holds and which lists every fault.
func NewResourceSet(c ResourceSetConfig) (*ResourceSet, error) {
	var faults []string
	if c.Handles == nil {
		faults = append(faults, "Handles must not be nil")
	}
	if len(c.Resources) == 0 {
		faults = append(faults, "Resources must not be empty")
	}
	names := map[string]bool{}
	for i, r := range c.Resources {
		switch {
		case isNil(r):
			faults = append(faults, fmt.Sprintf("Resources[%d] must not be nil", i))
		case r.Name() == "":
			faults = append(faults, fmt.Sprintf("Resources[%d].Name() must not be empty", i))
		case names[r.Name()]:
			faults = append(faults, fmt.Sprintf("Resources[%d]: the name %q is taken by an earlier resource", i, r.Name()))
		default:
			names[r.Name()] = true
		}
	}
	if err := invalidConfig("ResourceSetConfig", faults); err != nil {
		return nil, err
	}
	if c.InitCtx == nil {
		c.InitCtx = func(ctx context.Context, _ any) (context.Context, error) { return ctx, nil }
	}
	return &ResourceSet{handles: c.Handles, initCtx: c.InitCtx, resources: slices.Clone(c.Resources)}, nil
}

// Handles tells whether the set is the one for an object.
func (r *ResourceSet) Handles(obj any) bool { return r.handles(obj) }

// InitCtx prepares the context of one reconciliation.
func (r *ResourceSet) InitCtx(ctx context.Context, obj any) (context.Context, error) {
	initialised, err := r.initCtx(ctx, obj)
	if err != nil {
		return nil, fmt.Errorf("initialise context: %w", err)
	}
	if initialised == nil {
		return nil, fmt.Errorf("initialise context: %w: InitCtx returned neither a context nor an error", ErrExecutionFailed)
	}
	return initialised, nil
}

// Resources returns the resources in their order. The slice is the caller's.
func (r *ResourceSet) Resources() []Resource { return slices.Clone(r.resources) }

// HandlesType is a Handles function for sets that take every object of a type.
func HandlesType[O any](obj any) bool {
	_, ok := obj.(O)
	return ok
}

// HandlesLabel returns a Handles function for sets that take the objects with a label, such as a version.
func HandlesLabel(key, value string) func(obj any) bool {
	return func(obj any) bool {
		m, ok := metaOf(obj)
		return ok && m.GetLabels()[key] == value
	}
}

// DefaultResourceSetResourceFunc returns a function that gives the same resources for every object.
func DefaultResourceSetResourceFunc(rs []Resource) func(ctx context.Context, obj any) ([]Resource, error) {
	rs = slices.Clone(rs)
	return func(context.Context, any) ([]Resource, error) { return slices.Clone(rs), nil }
}
