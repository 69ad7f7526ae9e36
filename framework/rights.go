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
	// Verbs are those of RBAC, such as "get" and "patch".
	Verbs []string
}

// RightsLister is implemented by resources that send requests to the API server of their operator, so that the rights of its deployment can be
// made of what is declared. CRUD resources whose Ops implement it, and resources that wrap steps, do. What a resource without it needs its
// author names in the configuration of the operator.
type RightsLister interface {
	// Rights returns the rights. It is constant.
	Rights() []Right
}

func rightsOf(r any) []Right {
	if l, ok := r.(RightsLister); ok {
		return l.Rights()
	}
	return nil
}

// readingVerbs are those that change nothing.
var readingVerbs = []string{"get", "list", "watch"}

// Rights returns the rights that the resources of the framework need. Of resource sets that are only planned, as shadows are and all are with
// PlanOnly, these are the rights to read.
func (f *Framework) Rights() []Right {
	var rights []Right
	for _, set := range f.config.ResourceRouter.sets {
		for _, resource := range set.resources {
			for _, right := range rightsOf(resource) {
				if set.shadow || f.config.PlanOnly {
					right.Verbs = slices.DeleteFunc(slices.Clone(right.Verbs), func(verb string) bool { return !slices.Contains(readingVerbs, verb) })
				}
				if len(right.Verbs) > 0 {
					rights = append(rights, right)
				}
			}
		}
	}
	return rights
}
