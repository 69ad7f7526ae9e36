package servicesets

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/internal/claims"
	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/servicesetresource"
)

// services is the logic of the framework for MultiClusterServices.
type services struct {
	*sources
	config  Config
	claims  *claims.Claims
	planned statuses.Planned
	memo    statuses.Memo[*serviceState]
	// live reads past the sources.
	live client.Reader
}

// serviceState is all about a MultiClusterService but what clusters say of it, at one moment.
type serviceState struct {
	// operations are those that the framework carries out, and what is left elsewhere of one that is being deleted.
	operations []serviceset.OwnerOperation
	// management is how far the services are on the management cluster, nil if there are none and should be none.
	management *report
	// fault says why the services can't be resolved anywhere, if that is so.
	fault *fault
	// selector selects the clusters.
	selector labels.Selector
	// dependents are the MultiClusterServices whose services have to go before those of one that is being deleted.
	dependents []string
}

// compute works out all about a MultiClusterService. There is nothing to do for one that another operator has claimed.
func (s *services) compute(ctx context.Context, mcs *v1alpha1.MultiClusterService) (*serviceState, error) {
	state := &serviceState{selector: labels.Nothing()}
	if s.claims.Refusal(mcs) != nil {
		return state, nil
	}
	if err := s.computeManagement(ctx, mcs, state); err != nil {
		return nil, err
	}
	if err := s.computeElsewhere(ctx, mcs, state); err != nil {
		return nil, err
	}
	all, err := s.allServices(ctx)
	if err != nil {
		return nil, err
	}
	if mcs.DeletionTimestamp != nil {
		state.dependents, err = s.presentDependents(ctx, mcs, all)
		return state, err
	}
	owner := serviceset.MultiClusterServiceOwner(mcs, nil)
	fail := func(err error) {
		state.operations = append(state.operations, serviceset.OwnerOperation{Owner: owner, Key: s.managementKey(mcs), Err: err})
	}
	selector, err := metav1.LabelSelectorAsSelector(mcs.Spec.ClusterSelector)
	if err != nil {
		state.fault = &fault{v1alpha1.ReasonSelectorInvalid, fmt.Sprintf("clusterSelector can't be read: %s", err)}
		fail(framework.Permanent(errors.New(state.fault.message)))
	} else {
		state.selector = selector
	}
	_, disorder := serviceset.Dependencies(mcs, all)
	// Without templates this finds only what contradicts itself.
	_, contradiction := serviceset.Resolve(serviceset.Input{Owner: owner})
	for _, err := range []error{disorder, contradiction} {
		if err == nil {
			continue
		}
		if state.fault == nil {
			state.fault = faultOf(err)
		}
		if state.management == nil {
			fail(err)
		}
	}
	return state, nil
}

// presentDependents returns those of all MultiClusterServices that depend on one and have a ServiceSet where it has one.
func (s *services) presentDependents(ctx context.Context, mcs *v1alpha1.MultiClusterService, all []v1alpha1.MultiClusterService) ([]string, error) {
	sets, err := s.setsThat(ctx, func(*v1alpha1.ServiceSet) bool { return true })
	if err != nil {
		return nil, err
	}
	owners := map[string]map[client.ObjectKey]bool{}
	for _, set := range sets {
		owner := set.Spec.MultiClusterService
		if owners[owner] == nil {
			owners[owner] = map[client.ObjectKey]bool{}
		}
		owners[owner][clusterKey(set)] = true
	}
	return slices.DeleteFunc(serviceset.Dependents(mcs.Name, all), func(name string) bool {
		for at := range owners[name] {
			if owners[mcs.Name][at] {
				return false
			}
		}
		return true
	}), nil
}

// computeManagement works out what has to be done on the management cluster.
func (s *services) computeManagement(ctx context.Context, mcs *v1alpha1.MultiClusterService, state *serviceState) error {
	err := s.reader.Get(ctx, s.managementKey(mcs), &v1alpha1.ServiceSet{}, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err) && (!selfManaged(mcs) || mcs.DeletionTimestamp != nil):
		return nil
	case err != nil && !apierrors.IsNotFound(err):
		return err
	}
	operations, err := serviceset.ComputeClusterOperations(ctx, s.reader, s.config.SystemNamespace, nil)
	if err != nil {
		return err
	}
	for i, r := range newReports(operations) {
		if r.owner.Kind == v1alpha1.MultiClusterServiceKind && r.owner.Key.Name == mcs.Name {
			state.management = r
			state.operations = append(state.operations, operations[i])
		}
	}
	return nil
}

// computeElsewhere finds the other ServiceSets that concern this framework: all of a MultiClusterService that is being deleted, which
// waits for them; and those whose cluster is gone without having been cleaned up, which it deletes.
func (s *services) computeElsewhere(ctx context.Context, mcs *v1alpha1.MultiClusterService, state *serviceState) error {
	sets, err := s.setsThat(ctx, func(set *v1alpha1.ServiceSet) bool {
		return s.has(mcs, set) && !isAbout(state.operations, client.ObjectKeyFromObject(set))
	})
	if err != nil {
		return err
	}
	for _, set := range sets {
		operation := &serviceset.Operation{Operation: v1alpha1.ServiceSetOperationNone, ServiceSet: set, Before: set}
		orphan, err := s.orphaned(ctx, set)
		if err != nil {
			return err
		}
		if orphan && set.DeletionTimestamp == nil {
			operation.Operation = v1alpha1.ServiceSetOperationDelete
		}
		if orphan || mcs.DeletionTimestamp != nil {
			state.operations = append(state.operations, serviceset.OwnerOperation{
				Owner: serviceset.MultiClusterServiceOwner(mcs, set), Key: client.ObjectKeyFromObject(set), Operation: operation,
			})
		}
	}
	return nil
}

// has tells whether a ServiceSet is one of a MultiClusterService. Those of the management cluster are in the system namespace: one elsewhere is
// somebody else's, whatever it says.
func (s *services) has(mcs *v1alpha1.MultiClusterService, set *v1alpha1.ServiceSet) bool {
	return set.Spec.MultiClusterService == mcs.Name && (set.Spec.Cluster != "" || set.Namespace == s.config.SystemNamespace)
}

// orphaned tells whether the cluster of a ServiceSet does not exist. The source may be behind the one of ServiceSets, and
// what is deleted by mistake is gone: so the API server is asked too.
func (s *services) orphaned(ctx context.Context, set *v1alpha1.ServiceSet) (bool, error) {
	if set.Spec.Cluster == "" {
		return false, nil
	}
	key := client.ObjectKey{Namespace: set.Namespace, Name: set.Spec.Cluster}
	if _, err := s.cluster(ctx, key); err == nil {
		return false, nil
	}
	err := s.live.Get(ctx, key, &v1alpha1.ClusterDeployment{})
	if err == nil || apierrors.IsNotFound(err) {
		return err != nil, nil
	}
	return false, fmt.Errorf("look for the cluster of ServiceSet %s: %w", client.ObjectKeyFromObject(set), err)
}

func (s *services) managementKey(mcs *v1alpha1.MultiClusterService) client.ObjectKey {
	return serviceset.ObjectKey(s.config.SystemNamespace, nil, mcs)
}

// operations returns what the resource of ServiceSets has to do.
func (s *services) operations(ctx context.Context, _ *v1alpha1.MultiClusterService) ([]serviceset.OwnerOperation, error) {
	state, err := s.memo.Get(ctx)
	if err != nil {
		return nil, err
	}
	return state.operations, nil
}

// newServices makes the framework.
func newServices(d *operator.Dependencies, config Config, src *sources, specs *specs) (*framework.Framework, error) {
	s := &services{
		sources: src, config: config, planned: statuses.Planned{All: d.PlanOnly}, live: d.Client,
		claims: &claims.Claims{Client: d.Client, Kind: v1alpha1.MultiClusterServiceKind},
	}
	sets, err := servicesetresource.New(servicesetresource.Config[*v1alpha1.MultiClusterService]{
		Client: d.Client, Logger: d.Logger, Compute: s.operations,
		Left: func(ctx context.Context, mcs *v1alpha1.MultiClusterService) (bool, error) {
			if s.claims.Refusal(mcs) != nil {
				return false, nil
			}
			return s.isLeft(ctx, s.live, func(set *v1alpha1.ServiceSet) bool { return s.has(mcs, set) })
		},
	})
	if err != nil {
		return nil, err
	}
	check, err := servicesetresource.NewCheck(servicesetresource.CheckConfig[*v1alpha1.MultiClusterService]{Compute: s.operations})
	if err != nil {
		return nil, err
	}
	status, err := newStatusResource(d, conditionsOfServices, func(ctx context.Context, mcs *v1alpha1.MultiClusterService) error {
		state, err := s.memo.Get(ctx)
		if err != nil || mcs.DeletionTimestamp != nil && len(state.operations) == 0 {
			return err
		}
		return s.setStatus(ctx, mcs, state)
	})
	if err != nil {
		return nil, err
	}
	router, err := statuses.Router(d, nil, s.memo, s.compute, s.claims.Resource(), status, sets, check)
	if err != nil {
		return nil, err
	}
	s.claims.Owner, err = d.NewFramework(framework.Config{
		Source: s.claims.Source(src.services, ""), ResourceRouter: router, PlanReporter: statuses.NewPlanReporter(d.Client, conditionsOfServices),
		Watches: []framework.Watch{
			// As for clusters.
			{Source: src.sets, Map: src.servicesOfSet, OwnWrites: true},
			{Source: summariesOf(src.clusters), Map: src.servicesOfCluster},
			{Source: specs.services, Map: src.servicesOfServices},
			{Source: specs.templates, Map: src.servicesOfNamespace(config.SystemNamespace)},
			{Source: specs.chains, Map: src.servicesOfNamespace(config.SystemNamespace)},
			{Source: specs.providers, Map: src.servicesOfProvider},
		},
	})
	if err != nil {
		return nil, err
	}
	d.Inspector.Draw(s.claims.Owner, s.graphs)
	return s.claims.Owner, nil
}
