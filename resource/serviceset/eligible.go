package serviceset

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// FilterServiceDependencies returns the services that may be touched now, by key, with their templates and versions
// resolved: those for which everything they depend on, directly or transitively, is Deployed, in the version of its
// ServiceSet, and that is the desired one. What they depend on may belong to another owner: what counts is what runs. The
// states are those that state managers have written into the ServiceSets of the cluster cd, or of the management cluster if
// cd is nil.
//
// Services that can't be resolved (a template that is missing, a duplicate), and those that another owner has, are left out.
// The error is a *GraphError for dependencies that are absent from desiredServices or go in circles, and ErrNoOwner without
// mcs and cd. desiredServices is not changed.
func FilterServiceDependencies(
	ctx context.Context, c client.Reader, systemNamespace string,
	mcs *v1alpha1.MultiClusterService, cd *v1alpha1.ClusterDeployment, desiredServices []v1alpha1.Service,
) ([]v1alpha1.Service, error) {
	in, err := subject{systemNamespace, mcs, cd}.input(ctx, c, desiredServices, nil)
	if err != nil {
		return nil, err
	}
	r, err := Resolve(in)
	if err != nil {
		return nil, err
	}
	return r.Eligible, nil
}

// ResolveServicesToApply returns the services that may be touched now, each in the version that the ServiceSet should have
// of it, by key: see [Resolve], whose Resolution says the reasons too. serviceSet is what there is; nil is the one that is
// found on the cluster, if there is one. Nothing is changed.
func ResolveServicesToApply(
	ctx context.Context, c client.Reader, systemNamespace string,
	mcs *v1alpha1.MultiClusterService, cd *v1alpha1.ClusterDeployment, desiredServices []v1alpha1.Service, serviceSet *v1alpha1.ServiceSet,
) ([]v1alpha1.ServiceWithValues, error) {
	in, err := subject{systemNamespace, mcs, cd}.input(ctx, c, desiredServices, serviceSet)
	if err != nil {
		return nil, err
	}
	r, err := Resolve(in)
	if err != nil {
		return nil, fmt.Errorf("resolve the services of %s: %w", &in.Owner, err)
	}
	return r.ToDeploy, nil
}
