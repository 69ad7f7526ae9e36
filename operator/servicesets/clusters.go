package servicesets

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/servicesetresource"
)

// clusters is the logic of the framework for ClusterDeployments.
type clusters struct {
	*sources
	config  Config
	planned statuses.Planned
	memo    statuses.Memo[*clusterState]
}

// clusterState is all about the services of a cluster, at one moment.
type clusterState struct {
	operations []serviceset.OwnerOperation
	reports    []*report
	// generations are those of the MultiClusterServices that the operations are about, or earlier ones.
	generations map[string]int64
}

// compute works out what has to be done with the ServiceSets of a cluster.
func (c *clusters) compute(ctx context.Context, cd *v1alpha1.ClusterDeployment) (*clusterState, error) {
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
	state.reports = newReports(state.operations)
	return state, nil
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
	c := &clusters{sources: s, config: config, planned: statuses.Planned{All: d.PlanOnly}}
	sets, err := servicesetresource.New(servicesetresource.Config[*v1alpha1.ClusterDeployment]{
		Client: &statuses.Echoing{Client: d.Client, Reader: s.reader}, Logger: d.Logger, Compute: c.operations,
	})
	if err != nil {
		return nil, err
	}
	check, err := servicesetresource.NewCheck(servicesetresource.CheckConfig[*v1alpha1.ClusterDeployment]{Compute: c.own})
	if err != nil {
		return nil, err
	}
	status, err := newStatusResource(d, s, clusterAccess, func(ctx context.Context, cd *v1alpha1.ClusterDeployment) (*v1alpha1.ClusterDeploymentStatus, error) {
		state, err := c.memo.Get(ctx)
		if err != nil || cd.DeletionTimestamp != nil && len(state.operations) == 0 {
			return nil, err
		}
		return c.status(ctx, cd, state)
	})
	if err != nil {
		return nil, err
	}
	router, err := newRouter(d, func(ctx context.Context, obj any) (context.Context, error) {
		cd := obj.(*v1alpha1.ClusterDeployment).DeepCopy()
		return c.memo.With(ctx, func(ctx context.Context) (*clusterState, error) { return c.compute(ctx, cd) }), nil
	}, status, sets, check)
	if err != nil {
		return nil, err
	}
	return d.NewFramework(framework.Config{
		Source: s.clusters, ResourceRouter: router, Graphs: c.graphs, PlanReporter: statuses.NewPlanReporter(d.Client, s.reader, clusterAccess),
		Watches: []framework.Watch{
			{Source: s.sets, Map: clusterOfSet},
			{Source: specs.services, Map: s.clustersOfServices},
			{Source: specs.templates, Map: s.clustersOfNamespace},
			{Source: s.chains, Map: s.clustersOfNamespace},
			{Source: specs.providers, Map: s.clustersOfProvider},
		},
	})
}

// newStatusResource returns the resource that writes the status. It comes before the one that writes ServiceSets: what stops
// that one has to stand in the status too.
func newStatusResource[O client.Object, S any](
	d *operator.Dependencies, s *sources, a statuses.Access[O, S], compute func(ctx context.Context, obj O) (*S, error),
) (framework.Resource, error) {
	return statuses.New(statuses.Config[O, S]{
		Access: a, Client: d.Client, Reader: s.reader, Logger: d.Logger, Compute: compute,
		Tell: func(_ context.Context, obj O, before, after *S) {
			tell(d.Recorder, obj, *a.Conditions(before), *a.Conditions(after))
		},
	})
}

// newRouter makes a router with one resource set.
func newRouter(
	d *operator.Dependencies, init func(ctx context.Context, obj any) (context.Context, error), resources ...framework.Resource,
) (*framework.ResourceRouter, error) {
	set, err := framework.NewResourceSet(framework.ResourceSetConfig{
		Handles: framework.HandlesType[any], InitCtx: init, Logger: d.Logger, Resources: resources,
	})
	if err != nil {
		return nil, err
	}
	return framework.NewResourceRouter(framework.ResourceRouterConfig{
		Logger: d.Logger, ResourceSets: []*framework.ResourceSet{set},
	})
}
