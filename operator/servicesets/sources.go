package servicesets

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// sources are what the frameworks look at, each shared by both, and a reader of them.
type sources struct {
	clusters, services, sets, templates, chains, providers *informer.Kubernetes

	reader client.Reader
}

func newSources(d *operator.Dependencies, config Config) (*sources, error) {
	system := withNamespace(d.Namespaces, config.SystemNamespace)
	s := &sources{}
	for _, of := range []struct {
		source     **informer.Kubernetes
		object     client.Object
		namespaces []string
	}{
		{&s.clusters, &v1alpha1.ClusterDeployment{}, d.Namespaces},
		{&s.sets, &v1alpha1.ServiceSet{}, system},
		{&s.templates, &v1alpha1.ServiceTemplate{}, system},
		{&s.chains, &v1alpha1.ServiceTemplateChain{}, system},
		{&s.services, &v1alpha1.MultiClusterService{}, nil},
		{&s.providers, &v1alpha1.StateManagementProvider{}, nil},
	} {
		source := informer.KubernetesConfig{Client: d.Client, Object: of.object, Namespaces: of.namespaces, Logger: d.Logger}
		if of.source == &s.services {
			source.LabelSelector = config.MultiClusterServices
		}
		var err error
		if *of.source, err = informer.NewKubernetes(source); err != nil {
			return nil, err
		}
	}
	s.reader = informer.NewReader(d.Client.Scheme(), s.clusters, s.services, s.sets, s.templates, s.chains, s.providers)
	return s, nil
}

// The functions below return objects of the sources by namespace and name. They belong to the sources and must not be
// changed.

// clustersIn returns the ClusterDeployments of a namespace, or of all for "".
func (s *sources) clustersIn(ctx context.Context, namespace string) ([]v1alpha1.ClusterDeployment, error) {
	list := &v1alpha1.ClusterDeploymentList{}
	err := s.reader.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	return list.Items, err
}

// cluster returns a ClusterDeployment.
func (s *sources) cluster(ctx context.Context, key client.ObjectKey) (*v1alpha1.ClusterDeployment, error) {
	cd := &v1alpha1.ClusterDeployment{}
	return cd, s.reader.Get(ctx, key, cd, client.UnsafeDisableDeepCopy)
}

// allServices returns the MultiClusterServices.
func (s *sources) allServices(ctx context.Context) ([]v1alpha1.MultiClusterService, error) {
	list := &v1alpha1.MultiClusterServiceList{}
	err := s.reader.List(ctx, list, client.UnsafeDisableDeepCopy)
	return list.Items, err
}

// setsThat returns the ServiceSets for which a condition holds.
func (s *sources) setsThat(ctx context.Context, holds func(*v1alpha1.ServiceSet) bool) ([]*v1alpha1.ServiceSet, error) {
	list := &v1alpha1.ServiceSetList{}
	if err := s.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var sets []*v1alpha1.ServiceSet
	for i := range list.Items {
		if holds(&list.Items[i]) {
			sets = append(sets, &list.Items[i])
		}
	}
	return sets, nil
}
