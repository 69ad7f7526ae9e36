package sveltos

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/sveltos/v1beta1"
	"github.com/operatorkit/operatorkit/resource/statemanager/templating"
)

// leftover is after how long to look again at a ClusterSummary whose profile is gone, and at that of another set.
const leftover = 10 * time.Second

// situation is all about a set at one moment.
type situation struct {
	set     *statemanager.Set
	order   *statemanager.Order
	profile client.Object           // nil when there is none
	summary *v1beta1.ClusterSummary // nil when there is none
	has     []placed                // what the profile has
	wants   []placed                // what it should have, in the order of dependencies
	errs    map[client.ObjectKey]error
	// takers are the sets that are to take a service over, and that Sveltos does not know to do so yet.
	takers map[client.ObjectKey]string
	notes  []string
	// read reads what values templates are filled with.
	read templating.Read
}

// Compute implements statemanager.Planner.
func (m *Manager) Compute(ctx context.Context, set *statemanager.Set) (*statemanager.Work, error) {
	s, err := m.situation(ctx, set)
	if err != nil {
		return nil, err
	}
	s.want(ctx)
	work := &statemanager.Work{}
	if err := m.operations(ctx, s, work); err != nil {
		return nil, err
	}
	for key, err := range s.errs {
		work.Operations = append(work.Operations, statemanager.Operation{Service: key, Err: err})
	}
	slices.SortStableFunc(work.Operations, func(a, b statemanager.Operation) int {
		return v1alpha1.CompareKeys(a.Service, b.Service)
	})
	work.Services = m.states(s)
	work.Left = s.profile != nil || s.summary != nil
	if s.profile == nil && s.summary != nil || len(s.takers) > 0 {
		// Nobody tells whose summary it was, nor that Sveltos has taken note of what another set takes over.
		work.Requeue = leftover
	}
	if statemanager.LetGo(set) {
		work.Left = s.profile != nil && s.profile.GetDeletionTimestamp().IsZero()
	}
	return work, nil
}

// Suspend implements statemanager.Suspender: Sveltos leaves the profile as it is too.
func (m *Manager) Suspend(ctx context.Context, set *statemanager.Set) (*statemanager.Work, error) {
	s, err := m.situation(ctx, set)
	if err != nil {
		return nil, err
	}
	s.wants = s.has
	work := &statemanager.Work{Services: m.states(s), Left: s.profile != nil || s.summary != nil}
	if s.profile != nil && !paused(s.profile) {
		work.Operations = []statemanager.Operation{pauseOperation(s.profile, true)}
	}
	return work, nil
}

// situation reads what there is.
func (m *Manager) situation(ctx context.Context, set *statemanager.Set) (*situation, error) {
	s := &situation{set: set, order: statemanager.NewOrder(set), errs: map[client.ObjectKey]error{}, takers: map[client.ObjectKey]string{}, read: m.content}
	profile := newProfile(set.ServiceSet)
	key := profileKey(set.ServiceSet)
	found, err := m.read(ctx, key, profile)
	if err != nil {
		return nil, err
	}
	if found {
		if !m.isOurs(ctx, profile, set.ServiceSet) {
			return nil, fmt.Errorf("the %s %s belongs to %s: rename it, or delete it if nobody needs it: %w",
				kindOf(profile), key, carrier.Whose(profile), carrier.ErrConflict)
		}
		s.profile, s.has = profile, placedIn(profile)
	}
	if s.summary, err = m.summaryOf(ctx, set.ServiceSet, s.profile); err != nil {
		return nil, err
	}
	for _, state := range set.ServiceSet.Status.Services {
		if s.gone(state.Key(), state.Type) {
			s.order.Gone(state.Key())
		}
	}
	return s, m.findTakers(ctx, s)
}

// want works out which services the profile should have.
func (s *situation) want(ctx context.Context) {
	set := s.set.ServiceSet
	var wants []placed
	if set.DeletionTimestamp == nil {
		for i := range set.Spec.Services {
			wants = append(wants, s.wanted(ctx, &set.Spec.Services[i])...)
		}
	}
	for _, p := range s.has {
		if find(wants, p.key()) != nil || s.order.Entry(p.key()) != nil {
			continue
		}
		if why := s.keptFor(p); why != "" {
			s.notes = append(s.notes, fmt.Sprintf("%s stays: %s", p.key(), why))
			wants = append(wants, p)
		}
	}
	s.wants = ordered(wants)
}

// wanted is what the profile should have of a service that is desired. What can't be expressed keeps its entry.
func (s *situation) wanted(ctx context.Context, service *v1alpha1.ServiceWithValues) []placed {
	key := service.Key()
	before := find(s.has, key)
	keep := func(err error) []placed {
		s.errs[key] = err
		if before == nil {
			return nil
		}
		return []placed{*before}
	}
	filled, err := s.filled(ctx, service)
	if err != nil {
		return keep(err)
	}
	e, err := expressed(s.set, filled)
	if err != nil {
		return keep(err)
	}
	fingerprint, err := statemanager.Fingerprint(s.set.ServiceSet.UID, s.set.Templates[service.Template].Spec, e.chart, e.kustomization, e.policy)
	if err != nil {
		return keep(err)
	}
	return []placed{{record{
		Namespace: key.Namespace, Name: key.Name, Feature: e.feature(), Template: service.Template, Version: service.Version,
		Fingerprint: fingerprint, DependsOn: service.DependsOn,
	}, e}}
}

// keptFor says why a service that is not desired any more has to stay in the profile for now; empty when it may go.
func (s *situation) keptFor(p placed) string {
	if other := s.takers[p.key()]; other != "" {
		return fmt.Sprintf("ServiceSet %s takes it over, which Sveltos has not taken note of yet", other)
	}
	needs := func(dependsOn []v1alpha1.ServiceDependsOn) bool {
		return slices.ContainsFunc(dependsOn, func(d v1alpha1.ServiceDependsOn) bool {
			return d.Key() == p.key()
		})
	}
	for _, q := range s.has {
		if q.key() != p.key() && needs(q.DependsOn) && !mutual(s.has, p, q) {
			return fmt.Sprintf("%s depends on it", q.key())
		}
	}
	for _, key := range s.order.Before(p.key()) {
		if find(s.has, key) == nil {
			return fmt.Sprintf("%s, which depends on it, is not gone yet", key)
		}
	}
	for _, other := range s.set.Others {
		for i := range other.Spec.Services {
			e := &other.Spec.Services[i]
			if needs(e.DependsOn) && reported(other, e.Key()) {
				return fmt.Sprintf("%s of ServiceSet %s depends on it", e.Key(), other.Name)
			}
		}
	}
	return ""
}

// mutual tells whether two services depend on each other, directly or not: neither keeps the other then.
func mutual(all []placed, p, q placed) bool {
	reaches := map[client.ObjectKey]bool{}
	var visit func(key client.ObjectKey)
	visit = func(key client.ObjectKey) {
		if reaches[key] {
			return
		}
		reaches[key] = true
		if found := find(all, key); found != nil {
			for _, d := range found.DependsOn {
				visit(d.Key())
			}
		}
	}
	visit(p.key())
	return reaches[q.key()]
}

// reported tells whether a set has a state of a service.
func reported(set *v1alpha1.ServiceSet, key client.ObjectKey) bool {
	return slices.ContainsFunc(set.Status.Services, func(s v1alpha1.ServiceState) bool {
		return s.Key() == key && s.State != v1alpha1.ServiceStateDeleted
	})
}

// ordered puts services behind those that they depend on, which is the order in which Sveltos takes charts.
func ordered(services []placed) []placed {
	slices.SortStableFunc(services, func(a, b placed) int { return v1alpha1.CompareKeys(a.key(), b.key()) })
	result := make([]placed, 0, len(services))
	seen := map[client.ObjectKey]bool{}
	var visit func(p placed)
	visit = func(p placed) {
		if seen[p.key()] {
			return
		}
		seen[p.key()] = true
		for _, d := range p.DependsOn {
			if q := find(services, d.Key()); q != nil {
				visit(*q)
			}
		}
		result = append(result, p)
	}
	for _, p := range services {
		visit(p)
	}
	return result
}
