package framework

import (
	"fmt"
	"slices"

	"github.com/giantswarm/micrologger"
)

// ResourceRouterConfig configures a ResourceRouter.
type ResourceRouterConfig struct {
	// Logger is for the router's own messages. Required.
	Logger micrologger.Logger
	// ResourceSets are asked in this order. Required, at least one that is no shadow. The names of shadows must be unique.
	ResourceSets []*ResourceSet
}

// ResourceRouter picks the one resource set that handles an object. It is safe for concurrent use.
type ResourceRouter struct {
	sets    []*ResourceSet
	shadows []*outline
}

// NewResourceRouter returns a router, or an error for which IsInvalidConfig holds.
func NewResourceRouter(c ResourceRouterConfig) (*ResourceRouter, error) {
	var faults []string
	if c.Logger == nil {
		faults = append(faults, "Logger must not be nil")
	}
	if len(c.ResourceSets) == 0 {
		faults = append(faults, "ResourceSets must not be empty")
	}
	r := &ResourceRouter{sets: slices.Clone(c.ResourceSets)}
	for i, s := range c.ResourceSets {
		switch {
		case s == nil:
			faults = append(faults, fmt.Sprintf("ResourceSets[%d] must not be nil", i))
		case s.shadow && slices.ContainsFunc(r.shadows, func(o *outline) bool { return o.name == s.name }):
			faults = append(faults, fmt.Sprintf("ResourceSets[%d]: the name %q is taken by an earlier shadow", i, s.name))
		case s.shadow:
			r.shadows = append(r.shadows, &s.outline)
		}
	}
	if len(faults) == 0 && len(r.shadows) == len(r.sets) {
		faults = append(faults, "ResourceSets must not be shadows only")
	}
	if err := invalidConfig("ResourceRouterConfig", faults); err != nil {
		return nil, err
	}
	return r, nil
}

// ResourceSet returns the resource set that handles the object. Without one it is an error for which IsNoResourceSet
// holds; with several, one for which IsExecutionFailed holds and which says which they are, counted from 0. Shadows are not
// asked.
func (r *ResourceRouter) ResourceSet(obj any) (*ResourceSet, error) {
	var found *ResourceSet
	first := 0
	for i, s := range r.sets {
		if s.shadow || !s.Handles(obj) {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%w: %w: resource sets %d and %d both handle it; make their Handles functions exclude each other",
				ErrExecutionFailed, errSeveralResourceSets, first, i)
		}
		found, first = s, i
	}
	if found == nil {
		return nil, fmt.Errorf("%w: none of the %d resource sets handles it", ErrNoResourceSet, len(r.sets)-len(r.shadows))
	}
	return found, nil
}
