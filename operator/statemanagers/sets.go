package statemanagers

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanagerresource"
)

// managed is the logic of the framework for the ServiceSets of one provider.
type managed struct {
	Manager
	*sources
	d       *operator.Dependencies
	planned statuses.Planned
	memo    statuses.Memo[*setState]
	metrics *metrics
	// finalizers are those that the framework puts on sets, and that it did under former names.
	finalizers []string
}

// setState is all about a ServiceSet, at one moment.
type setState struct {
	set *statemanager.Set
	// work is what has to be done, nil while nothing is known.
	work *statemanager.Work
	// hold is why nothing is done, if that is so.
	hold *hold
	// foreign tells that another operator has claimed the provider, and writes the status.
	foreign bool
}

// frameworkOf returns the name of the framework for the sets of a provider. It is a part of the finalizer and of all marks.
func frameworkOf(provider string) string { return "statemanager-" + provider }

// compute works out what has to be done for a set. What a person has to mend is why nothing is done: the status tells it, and nothing else
// wakes the set.
func (m *managed) compute(ctx context.Context, set *v1alpha1.ServiceSet) (*setState, error) {
	is, err := m.standing(ctx, providerOf(set))
	if err != nil {
		return nil, err
	}
	state := &setState{hold: cmp.Or(is.holdOf(set), m.misplaced(set)), foreign: is.provider != nil && m.claims[m.Provider].Refusal(is.provider) != nil}
	_, suspends := m.StateManager.(statemanager.Suspender)
	if m.isMisplaced(set) && len(set.Status.Services) == 0 && state.hold == nil {
		// It is being deleted, and was never carried out: what looks like its services on the management cluster may be forged.
		state.work = &statemanager.Work{}
		return state, nil
	}
	if state.hold != nil && (!suspends || state.hold.reason != ReasonSuspended) {
		return state, nil
	}
	about, work, err := m.workOut(ctx, set, state.hold != nil)
	switch {
	case framework.IsPermanent(err):
		state.hold = &hold{v1alpha1.ReasonInvalid, err.Error()}
	case err != nil:
		return nil, err
	default:
		state.set, state.work = about, work
	}
	return state, nil
}

// workOut asks the state manager what has to be done for a set.
func (m *managed) workOut(ctx context.Context, set *v1alpha1.ServiceSet, suspended bool) (*statemanager.Set, *statemanager.Work, error) {
	about, err := m.about(ctx, set)
	if err != nil {
		return nil, nil, err
	}
	ask := m.StateManager.Compute
	if suspended {
		ask = m.StateManager.(statemanager.Suspender).Suspend
	} else if err := configured(about); err != nil {
		return nil, nil, err
	}
	work, err := ask(ctx, about)
	if err == nil && work == nil {
		err = fmt.Errorf("state manager %s returned no work for ServiceSet %s", m.StateManager.Name(), client.ObjectKeyFromObject(set))
	}
	return about, work, err
}

// configured tells what is wrong with the configuration of a set. What is taken away with a set does not wait until that is mended, as long as
// it is known with whose rights it goes.
func configured(about *statemanager.Set) error {
	_, err := statemanager.ConfigOf(about.ServiceSet)
	if about.ServiceSet.DeletionTimestamp != nil && !errors.Is(err, statemanager.ErrAccountUnknown) {
		return nil
	}
	return err
}

// about gathers what a set is about.
func (m *managed) about(ctx context.Context, set *v1alpha1.ServiceSet) (*statemanager.Set, error) {
	about := &statemanager.Set{ServiceSet: set, ValueKinds: m.valueKinds(), Providers: m.names()}
	var err error
	about.Config, _ = statemanager.ConfigOf(set) // What is wrong with it is told where that matters.
	if about.Cluster, err = m.cluster(ctx, set); err != nil {
		return nil, err
	}
	if about.Others, err = m.others(set); err != nil {
		return nil, err
	}
	if about.Templates, err = m.templatesOf(ctx, set); err != nil {
		return nil, err
	}
	return about, nil
}

// work returns what the resource of services has to do.
func (m *managed) work(ctx context.Context, set *v1alpha1.ServiceSet) (*statemanager.Set, *statemanager.Work, error) {
	state, err := m.memo.Get(ctx)
	if err != nil {
		return nil, nil, err
	}
	if state.hold != nil && state.work != nil {
		held := *state.work
		held.Left = true
		return state.set, &held, nil
	}
	return state.set, state.work, nil
}

// newManaged makes the framework. notices are sources beside those that all providers have.
func newManaged(d *operator.Dependencies, s *sources, all *metrics, manager Manager) (*framework.Framework, error) {
	m := &managed{Manager: manager, sources: s, d: d, planned: statuses.Planned{All: d.PlanOnly}, metrics: all}
	status, err := statuses.New(d, m.setStatus, m.tell)
	if err != nil {
		return nil, err
	}
	services, err := statemanagerresource.New(statemanagerresource.Config[*v1alpha1.ServiceSet]{
		Manager: &measured{manager.StateManager, manager.Provider, all}, Logger: d.Logger, Compute: m.work,
	})
	if err != nil {
		return nil, err
	}
	check, err := statemanagerresource.NewCheck(statemanagerresource.CheckConfig[*v1alpha1.ServiceSet]{Compute: m.work})
	if err != nil {
		return nil, err
	}
	router, err := statuses.Router(d, m.handles, m.memo, m.compute, m.claims[m.Provider].Resource(), status, services, check)
	if err != nil {
		return nil, err
	}
	s.sets.Subscribe(func(e informer.Event) {
		if e.Type == informer.Deleted && m.has(e.Object.(*v1alpha1.ServiceSet)) {
			m.StateManager.Release(e.Key)
		}
	})
	var formerNames []string
	for _, provider := range manager.FormerProviders {
		formerNames = append(formerNames, frameworkOf(provider))
	}
	var values []framework.Right
	for _, kind := range s.valueKinds() {
		values = append(values, framework.Right{Kind: kind, Verbs: []string{"get"}})
	}
	f, err := d.NewFramework(framework.Config{
		Name: frameworkOf(m.Provider), FormerNames: formerNames, Source: m.claims[m.Provider].Source(s.sets, "of "+m.Provider), ResourceRouter: router,
		PlanReporter: statuses.NewPlanReporter(d.Client, conditionsOf), Watches: m.watches(), Rights: values,
	})
	if err != nil {
		return nil, err
	}
	d.Inspector.Draw(f, m.graphs)
	m.claims[m.Provider].Owner = f
	m.finalizers = append(f.Identity().FormerFinalizers(), f.Finalizer())
	return f, nil
}
