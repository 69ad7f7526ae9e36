package framework

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Right is a right that a resource needs at the API server of its operator.
type Right struct {
	// Kind is the kind of the objects. Default: the kind of the framework's primaries.
	Kind schema.GroupVersionKind
	// Subresource is a part of them, such as "status". Default: none, the objects themselves.
	Subresource string
	// Name is the name of the only object that the right covers. Default: all objects of the kind.
	Name string
	// Namespaces are the namespaces that the right covers. Default: those of the sources of the
	// kind, or, without such a source, the namespaces of the operator.
	Namespaces []string
	// ClusterScoped is true for a kind without a source if its objects have no namespace. Default:
	// see Namespaces.
	ClusterScoped bool
	// Verbs are verbs of RBAC, such as "get" and "patch".
	Verbs []string
	// DryRun are the Verbs that planning uses, too: the API server allows a dry run only to clients
	// that may send the real request. Default: none in addition to "get", "list" and "watch".
	DryRun []string
}

// RightsLister is implemented by resources that send requests to the API server of their operator.
// The rights of its deployment can then be generated from their declarations. A CRUD resource
// implements it by its Ops, and a resource that wraps steps by the wrapped resource. For a resource
// without it, the author adds the rights to the configuration of the operator.
type RightsLister interface {
	// Rights returns the rights. It is constant.
	Rights() []Right
}

// RightsOf returns the rights of a RightsLister, a resource or something else, and none for other
// values.
func RightsOf(r any) []Right {
	if l, ok := r.(RightsLister); ok {
		return l.Rights()
	}
	return nil
}

// readingVerbs are the verbs that change nothing.
var readingVerbs = []string{"get", "list", "watch"}

// Rights returns the rights that the resources of the framework need, and the rights of its
// configuration. For resource sets that are only planned (shadows, and all with PlanOnly) these are
// the rights to read and to do dry runs.
func (f *Framework) Rights() []Right {
	rights := allowed(f.config.Rights, f.config.PlanOnly)
	for _, g := range f.config.Guards {
		rights = append(rights, allowed(g.Rights, f.config.PlanOnly)...)
	}
	for _, set := range f.config.ResourceRouter.sets {
		for _, resource := range set.resources {
			rights = append(rights, allowed(RightsOf(resource), set.shadow || f.config.PlanOnly)...)
		}
	}
	return rights
}

// allowed returns the rights, or the part of them that planning needs.
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
