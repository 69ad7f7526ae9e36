package serviceset

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// FilterServiceDependencies returns the services that may be touched now, by key, with their templates and versions
// resolved: those for which everything they depend on, directly or transitively, is Deployed, in the version of its
// ServiceSet, and that is the desired one. What they depend on may belong to another owner: what counts is what runs. The
// states are those that state managers have written into the ServiceSets of the cluster cd, or of the management cluster if
// cd is nil.
//
// Services that can't be resolved (a template that is missing, a duplicate), and those that another owner has, or has not let
// go yet, are left out. There are none of an owner that has nothing on the cluster any more: see [ComputeClusterOperations].
// The error is a *GraphError for dependencies that are absent from desiredServices or go in circles, and ErrNoOwner without
// mcs and cd. desiredServices is not changed.
func FilterServiceDependencies(
	ctx context.Context, c client.Reader, systemNamespace string,
	mcs *v1alpha1.MultiClusterService, cd *v1alpha1.ClusterDeployment, desiredServices []v1alpha1.Service,
) ([]v1alpha1.Service, error) {
	in, err := readInput(ctx, c, systemNamespace, mcs, cd, desiredServices, nil)
	if err != nil {
		return nil, err
	}
	r, err := in.resolver()
	if err != nil {
		return nil, err
	}
	return r.eligibleServices(), nil
}

// eligibleServices returns the services that may be touched, with what they stand for.
func (r *resolver) eligibleServices() []v1alpha1.Service {
	services := make([]v1alpha1.Service, len(r.touched))
	for to, from := range r.touched {
		n := &r.nodes[from]
		services[to] = *n.service
		services[to].Template, services[to].Version = n.goal.Template, n.goal.Version
	}
	return services
}

// ResolveServicesToApply returns the services that may be touched now, each in the version that the ServiceSet should have
// of it, by key, and those that it takes over from another owner, as they are: see [Resolve], which says the reasons too. serviceSet is what there is; nil is the one that is
// found on the cluster, if there is one. Nothing is changed.
func ResolveServicesToApply(
	ctx context.Context, c client.Reader, systemNamespace string,
	mcs *v1alpha1.MultiClusterService, cd *v1alpha1.ClusterDeployment, desiredServices []v1alpha1.Service, serviceSet *v1alpha1.ServiceSet,
) ([]v1alpha1.ServiceWithValues, error) {
	in, err := readInput(ctx, c, systemNamespace, mcs, cd, desiredServices, serviceSet)
	if err != nil {
		return nil, err
	}
	r, err := in.resolver()
	if err != nil {
		return nil, fmt.Errorf("resolve the services of %s: %w", &in.Owner, err)
	}
	return r.servicesToApply(), nil
}

// servicesToApply returns the entries that are new, or may be.
func (r *resolver) servicesToApply() []v1alpha1.ServiceWithValues {
	return slices.DeleteFunc(slices.Clone(r.Services), func(s v1alpha1.ServiceWithValues) bool {
		_, deployed := slices.BinarySearchFunc(r.deployed, s.Key(), v1alpha1.CompareKeys)
		return !deployed
	})
}
