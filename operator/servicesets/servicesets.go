package servicesets

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/servicesetresource"
)

// DefaultSystemNamespace is where the ServiceSets of the management cluster are.
const DefaultSystemNamespace = "operatorkit-system"

// Config configures the frameworks.
type Config struct {
	// SystemNamespace is where the ServiceSets of the management cluster are, and their templates. Default:
	// DefaultSystemNamespace.
	SystemNamespace string
}

// sources are what the frameworks look at, each shared by both.
type sources struct {
	clusters, services, sets, templates, chains, providers *informer.Kubernetes
}

// New returns the frameworks for ClusterDeployments and MultiClusterServices.
func New(d *operator.Dependencies, config Config) ([]*framework.Framework, error) {
	if config.SystemNamespace == "" {
		config.SystemNamespace = DefaultSystemNamespace
	}
	var s sources
	for _, of := range []struct {
		source **informer.Kubernetes
		object client.Object
	}{
		{&s.clusters, &v1alpha1.ClusterDeployment{}},
		{&s.services, &v1alpha1.MultiClusterService{}},
		{&s.sets, &v1alpha1.ServiceSet{}},
		{&s.templates, &v1alpha1.ServiceTemplate{}},
		{&s.chains, &v1alpha1.ServiceTemplateChain{}},
		{&s.providers, &v1alpha1.StateManagementProvider{}},
	} {
		source, err := d.NewSource(of.object)
		if err != nil {
			return nil, err
		}
		*of.source = source
	}
	reader := informer.NewReader(d.Client.Scheme(), s.clusters, s.services, s.sets, s.templates, s.chains, s.providers)
	sets, err := servicesetresource.New(servicesetresource.Config[*v1alpha1.ClusterDeployment]{
		Client: d.Client, Logger: d.Logger,
		Compute: func(ctx context.Context, cd *v1alpha1.ClusterDeployment) ([]serviceset.OwnerOperation, error) {
			return serviceset.ComputeClusterOperations(ctx, reader, config.SystemNamespace, cd)
		},
	})
	if err != nil {
		return nil, err
	}
	clusters, err := d.NewFramework(framework.Config{
		Source: s.clusters, Resources: []framework.Resource{sets},
		Watches: []framework.Watch{{Source: s.sets, Map: clusterOfSet}},
	})
	if err != nil {
		return nil, err
	}
	return []*framework.Framework{clusters}, nil
}

// clusterOfSet returns the ClusterDeployment of a ServiceSet.
func clusterOfSet(_ context.Context, obj any) []informer.Key {
	set := obj.(*v1alpha1.ServiceSet)
	if set.Spec.Cluster == "" {
		return nil
	}
	return []informer.Key{{Namespace: set.Namespace, Name: set.Spec.Cluster}}
}
