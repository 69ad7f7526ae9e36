package serviceset

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// An entry carries the generation of its ServiceSet with which it changed last. What the state manager says about an earlier one is
// not about this entry: it was not rolled out yet.

// observed tells whether the status of a set with a generation is about an entry as it is. A generation that has not come yet is left
// from a set that was restored: it counts as the present one.
func observed(set *v1alpha1.ServiceSet, generation int64, e *v1alpha1.ServiceWithValues) bool {
	return set.Status.ObservedGeneration == 0 || min(e.Generation, generation) <= set.Status.ObservedGeneration
}

// observed tells whether the state of a service is about its entry as it is.
func (n *node) observed() bool { return observed(n.holder.Set, n.holder.Set.Generation, n.stored) }

// Observed tells whether the state manager has taken note of an entry of ServiceSet, as it is once the operation is carried out: an
// entry that the operation changes is not, nor is one that has changed since the status was written.
func (o *Operation) Observed(e *v1alpha1.ServiceWithValues) bool {
	generation := o.ServiceSet.Generation
	if o.Operation == v1alpha1.ServiceSetOperationUpdate {
		generation++
	}
	return observed(o.ServiceSet, generation, e)
}

// stamp notes in the entries of a set with which generation they changed last. before is the set that there is, nil if there is none.
func stamp(before, after *v1alpha1.ServiceSet) {
	generation, known := int64(1), map[client.ObjectKey]*v1alpha1.ServiceWithValues{}
	if before != nil {
		generation = before.Generation + 1
		for i := range before.Spec.Services {
			known[before.Spec.Services[i].Key()] = &before.Spec.Services[i]
		}
	}
	for i := range after.Spec.Services {
		e := &after.Spec.Services[i]
		e.Generation = generation
		if was := known[e.Key()]; was != nil && sameEntry(was, e) {
			e.Generation = was.Generation
		}
	}
}
