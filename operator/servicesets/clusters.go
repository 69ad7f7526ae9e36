package servicesets

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/internal/claims"
	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/servicesetresource"
)

// clusters is the logic of the framework for ClusterDeployments.
type clusters struct {
	*sources
	config  Config
	claims  *claims.Claims
	planned statuses.Planned
	memo    statuses.Memo[*clusterState]
	// live reads past the sources.
	live client.Reader
}

// clusterState is all about the services of a cluster, at one moment.
type clusterState struct {
	operations []serviceset.OwnerOperation
	reports    []*report
	// generations are those of the MultiClusterServices that the operations are about, or earlier ones.
	generations map[string]int64
}

// compute works out what has to be done with the ServiceSets of a cluster: nothing for one that another operator has claimed.
func (c *clusters) compute(ctx context.Context, cd *v1alpha1.ClusterDeployment) (*clusterState, error) {
	if c.claims.Refusal(cd) != nil {
		return &clusterState{}, nil
	}
	services, err := c.allServices(ctx)
	if err != nil {
		return nil, err
	}
	state := &clusterState{generations: make(map[string]int64, len(services))}
	for i := range services {
		state.generations[services[i].Name] = services[i].Generation
	}
	state.operations, err = serviceset.ComputeClusterOperations(ctx, c.reader, c.config.SystemNamespace, cd)
	if err != nil {
		return nil, err
	}
	if cd.DeletionTimestamp != nil {
		err = c.addOthers(cd, state)
	} else {
		err = c.confirm(ctx, services, state.operations)
	}
	if err != nil {
		return nil, err
	}
	state.reports = newReports(state.operations)
	return state, nil
}

// addOthers adds the ServiceSets of a cluster that were made by somebody else: its deletion waits for them too, and the status says so.
func (c *clusters) addOthers(cd *v1alpha1.ClusterDeployment, state *clusterState) error {
	found, err := c.sets.ByIndex(ByCluster, ClusterIndex(cd.Namespace, cd.Name))
	if err != nil {
		return err
	}
	for _, obj := range found {
		set := obj.(*v1alpha1.ServiceSet)
		key := client.ObjectKeyFromObject(set)
		if isAbout(state.operations, key) {
			continue
		}
		state.operations = append(state.operations, serviceset.OwnerOperation{
			Owner: serviceset.Owner{Kind: v1alpha1.ServiceSetKind, Key: key, Set: set}, Key: key,
			Operation: &serviceset.Operation{Operation: v1alpha1.ServiceSetOperationNone, ServiceSet: set, Before: set},
		})
	}
	return nil
}

// isAbout tells whether one of the operations is about a ServiceSet.
func isAbout(operations []serviceset.OwnerOperation, set client.ObjectKey) bool {
	return slices.ContainsFunc(operations, func(o serviceset.OwnerOperation) bool { return o.Key == set })
}

// operations returns what the resource of ServiceSets has to do.
func (c *clusters) operations(ctx context.Context, _ *v1alpha1.ClusterDeployment) ([]serviceset.OwnerOperation, error) {
	state, err := c.memo.Get(ctx)
	if err != nil {
		return nil, err
	}
	return state.operations, nil
}

// own returns the operations of the cluster's own services. What a MultiClusterService has to mend is no error of each of its
// clusters.
func (c *clusters) own(ctx context.Context, cd *v1alpha1.ClusterDeployment) ([]serviceset.OwnerOperation, error) {
	operations, err := c.operations(ctx, cd)
	return slices.DeleteFunc(slices.Clone(operations), func(o serviceset.OwnerOperation) bool {
		return o.Owner.Kind != v1alpha1.ClusterDeploymentKind
	}), err
}

// newClusters makes the framework.
func newClusters(d *operator.Dependencies, config Config, s *sources, specs *specs) (*framework.Framework, error) {
	c := &clusters{
		sources: s, config: config, planned: statuses.Planned{All: d.PlanOnly}, live: d.Client,
		claims: &claims.Claims{Client: d.Client, Kind: v1alpha1.ClusterDeploymentKind},
	}
	sets, err := servicesetresource.New(servicesetresource.Config[*v1alpha1.ClusterDeployment]{
		Client: d.Client, Logger: d.Logger, Compute: c.operations,
		Left: func(ctx context.Context, cd *v1alpha1.ClusterDeployment) (bool, error) {
			if c.claims.Refusal(cd) != nil {
				return false, nil
			}
			return s.isLeft(ctx, d.Client, func(set *v1alpha1.ServiceSet) bool {
				return set.Namespace == cd.Namespace && set.Spec.Cluster == cd.Name
			})
		},
	})
	if err != nil {
		return nil, err
	}
	check, err := servicesetresource.NewCheck(servicesetresource.CheckConfig[*v1alpha1.ClusterDeployment]{Compute: c.own})
	if err != nil {
		return nil, err
	}
	status, err := newStatusResource(d, conditionsOfCluster, func(ctx context.Context, cd *v1alpha1.ClusterDeployment) error {
		state, err := c.memo.Get(ctx)
		if err != nil || cd.DeletionTimestamp != nil && len(state.operations) == 0 {
			return err
		}
		return c.setStatus(ctx, cd, state)
	})
	if err != nil {
		return nil, err
	}
	router, err := statuses.Router(d, nil, c.memo, c.compute, c.claims.Resource(), status, sets, check)
	if err != nil {
		return nil, err
	}
	c.claims.Owner, err = d.NewFramework(framework.Config{
		Source: c.claims.Source(s.clusters, ""), ResourceRouter: router, PlanReporter: statuses.NewPlanReporter(d.Client, conditionsOfCluster),
		Watches: []framework.Watch{
			// A set is deleted in the look at the one that was emptied, and its status is told from what was written.
			{Source: s.sets, Map: clusterOfSet, OwnWrites: true},
			{Source: specs.services, Map: s.clustersOfServices},
			{Source: specs.templates, Map: s.clustersOfNamespace},
			{Source: specs.chains, Map: s.clustersOfNamespace},
			{Source: specs.providers, Map: s.clustersOfProvider},
		},
	})
	if err != nil {
		return nil, err
	}
	d.Inspector.Draw(c.claims.Owner, c.graphs)
	return c.claims.Owner, nil
}

// newStatusResource returns the resource that writes the status. It comes before the one that writes ServiceSets: what stops
// that one has to stand in the status too.
func newStatusResource[O client.Object](
	d *operator.Dependencies, conditions func(O) *[]metav1.Condition, set func(ctx context.Context, obj O) error,
) (framework.Resource, error) {
	return statuses.New(d, set, func(ctx context.Context, before, after O) {
		tell(framework.Recorder(ctx, d.Recorder), after, *conditions(before), *conditions(after))
	})
}
