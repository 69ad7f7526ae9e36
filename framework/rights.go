package framework

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Right is a right that a resource needs at the API server of its operator.
type Right struct {
	// Kind is the kind of the objects. Default: that of the primaries of the framework.
	Kind schema.GroupVersionKind
	// Subresource is a part of them, such as "status". Default: none, the objects themselves.
	Subresource string
	// Name is that of the only object that it is about. Default: all of the kind.
	Name string
	// Namespaces are those that it is for. Default: those of the sources of the kind, or without one those that the operator looks at.
	Namespaces []string
	// ClusterScoped says of a kind without a source that its objects have no namespace. Default: see Namespaces.
	ClusterScoped bool
	// Verbs are those of RBAC, such as "get" and "patch".
	Verbs []string
	// DryRun are those of Verbs by which it is computed what would change, too: the API server allows a dry run to those only who may do it in
	// truth. Default: none beside "get", "list" and "watch".
	DryRun []string
}

// RightsLister is implemented by resources that send requests to the API server of their operator, so that the rights of its deployment can be
// made of what is declared. CRUD resources whose Ops implement it, and resources that wrap steps, do. What a resource without it needs its
// author names in the configuration of the operator.
type RightsLister interface {
	// Rights returns the rights. It is constant.
	Rights() []Right
}

// RightsOf returns the rights of a resource, or of something else, that is a RightsLister, and none of others.
func RightsOf(r any) []Right {
	if l, ok := r.(RightsLister); ok {
		return l.Rights()
	}
	return nil
}

// readingVerbs are those that change nothing.
var readingVerbs = []string{"get", "list", "watch"}

// Rights returns the rights that the resources of the framework need, and those of its configuration. Of resource sets that are only planned, as
// shadows are and all are with PlanOnly, these are the rights to read and to ask by dry runs.
func (f *Framework) Rights() []Right {
	rights := allowed(f.config.Rights, f.config.PlanOnly)
	for _, set := range f.config.ResourceRouter.sets {
		for _, resource := range set.resources {
			rights = append(rights, allowed(RightsOf(resource), set.shadow || f.config.PlanOnly)...)
		}
	}
	return rights
}

// allowed are the rights, or those of them that planning takes.
func allowed(rights []Right, planning bool) (allowed []Right) {
	for _, right := range rights {
		if planning {
			right.Verbs = slices.DeleteFunc(slices.Clone(right.Verbs), func(verb string) bool {
				return !slices.Contains(readingVerbs, verb) && !slices.Contains(right.DryRun, verb)
			})
		}
		if len(right.Verbs) > 0 {
			allowed = append(allowed, right)
		}
	}
	return allowed
}
