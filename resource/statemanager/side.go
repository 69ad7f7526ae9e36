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
	// reported are states with those of services that are gone.
	reported map[client.ObjectKey]*v1alpha1.ServiceState
}

func newSide(set *v1alpha1.ServiceSet) *side {
	s := &side{
		set: set, entries: map[client.ObjectKey]*v1alpha1.ServiceWithValues{}, states: map[client.ObjectKey]*v1alpha1.ServiceState{},
		reported: map[client.ObjectKey]*v1alpha1.ServiceState{},
	}
	for i := range set.Spec.Services {
		if e := &set.Spec.Services[i]; set.DeletionTimestamp == nil {
			s.entries[e.Key()] = e
		}
	}
	for i := range set.Status.Services {
		state := &set.Status.Services[i]
		s.reported[state.Key()] = state
		if state.State != v1alpha1.ServiceStateDeleted {
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

// wants tells whether the set lists a service as one that is to be there.
func (s *side) wants(service client.ObjectKey) bool {
	entry := s.entries[service]
	return entry != nil && entry.Done() == v1alpha1.ServiceStateDeployed
}

// deployed tells whether the status says that a service is Deployed as the set lists it.
func (s *side) deployed(service client.ObjectKey) bool {
	state := s.states[service]
	return state != nil && state.State == v1alpha1.ServiceStateDeployed && isAbout(state, s.entries[service])
}

// asListed tells whether the status says that a service is as the set lists it.
func (s *side) asListed(service client.ObjectKey) bool {
	return isAsListed(s.entries[service], s.reported[service])
}

// isAsListed tells whether a state is about what an entry says, and done: Deployed, or Deleted where that is what the entry asks for.
func isAsListed(entry *v1alpha1.ServiceWithValues, state *v1alpha1.ServiceState) bool {
	return state != nil && isAbout(state, entry) && state.State == entry.Done()
}

// isAbout tells whether a state is about what an entry says. What a state does not tell counts as the entry's.
func isAbout(state *v1alpha1.ServiceState, entry *v1alpha1.ServiceWithValues) bool {
	if entry == nil || state.Template != "" && state.Template != entry.Template {
		return false
	}
	return state.Version == "" || entry.Version == "" || state.Version == entry.Version
}
