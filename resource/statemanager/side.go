package statemanager

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// side is a set with its services by key.
type side struct {
	set *v1alpha1.ServiceSet
	// entries are what the set lists. A set that is being deleted lists nothing.
	entries map[client.ObjectKey]*v1alpha1.ServiceWithValues
	// states are what its status says of services that are not gone.
	states map[client.ObjectKey]*v1alpha1.ServiceState
}

func newSide(set *v1alpha1.ServiceSet) *side {
	s := &side{
		set: set, entries: map[client.ObjectKey]*v1alpha1.ServiceWithValues{}, states: map[client.ObjectKey]*v1alpha1.ServiceState{},
	}
	for i := range set.Spec.Services {
		if e := &set.Spec.Services[i]; set.DeletionTimestamp == nil {
			s.entries[e.Key()] = e
		}
	}
	for i := range set.Status.Services {
		if state := &set.Status.Services[i]; state.State != v1alpha1.ServiceStateDeleted {
			s.states[state.Key()] = state
		}
	}
	return s
}

// leaving calls f for each service that the set takes away, or is going to, with what it depends on.
func (s *side) leaving(f func(service client.ObjectKey, dependsOn []client.ObjectKey)) {
	for i := range s.set.Spec.Removing {
		r := &s.set.Spec.Removing[i]
		f(r.Key(), keysOf(r.DependsOn))
	}
	if s.set.DeletionTimestamp == nil {
		return
	}
	for i := range s.set.Spec.Services {
		e := &s.set.Spec.Services[i]
		f(e.Key(), keysOf(e.DependsOn))
	}
}

// deployed tells whether the status says that a service is Deployed as the set lists it.
func (s *side) deployed(service client.ObjectKey) bool {
	return deployedAs(s.entries[service], s.states[service])
}

// deployedAs tells whether a state is about what an entry says, and Deployed. What a state does not tell counts as the entry's.
func deployedAs(entry *v1alpha1.ServiceWithValues, state *v1alpha1.ServiceState) bool {
	if entry == nil || state == nil || state.State != v1alpha1.ServiceStateDeployed {
		return false
	}
	if state.Template != "" && state.Template != entry.Template {
		return false
	}
	return state.Version == "" || entry.Version == "" || state.Version == entry.Version
}
