package servicesets

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// Sources are what this operator and that of package statemanagers both look at. A process that runs both watches each kind once
// when it gives them to both.
type Sources struct {
	// Clusters has the ClusterDeployments, Sets the ServiceSets, Templates the ServiceTemplates, and Providers the
	// StateManagementProviders.
	Clusters, Sets, Templates, Providers *informer.Kubernetes
}

// ByCluster is the index of Sources.Sets that files a ServiceSet under its namespace and its cluster: see ClusterIndex.
const ByCluster = "cluster"

// ClusterIndex returns the value of the index ByCluster for the sets of a cluster; the name of the management cluster is empty.
func ClusterIndex(namespace, cluster string) string { return namespace + "/" + cluster }

func indexOf(obj any) []string {
	set, ok := obj.(*v1alpha1.ServiceSet)
	if !ok {
		return nil
	}
	return []string{ClusterIndex(set.Namespace, set.Spec.Cluster)}
}

// NewSources returns sources for the namespaces of d; that of the services of the management cluster belongs to them too. Default:
// DefaultSystemNamespace.
func NewSources(d *operator.Dependencies, systemNamespace string) (*Sources, error) {
	if systemNamespace == "" {
		systemNamespace = DefaultSystemNamespace
	}
	system := withNamespace(d.Namespaces, systemNamespace)
	s := &Sources{}
	for _, of := range []struct {
		source     **informer.Kubernetes
		object     client.Object
		namespaces []string
		indexers   map[string]informer.IndexFunc
	}{
		{&s.Clusters, &v1alpha1.ClusterDeployment{}, d.Namespaces, nil},
		{&s.Sets, &v1alpha1.ServiceSet{}, system, map[string]informer.IndexFunc{ByCluster: indexOf}},
		{&s.Templates, &v1alpha1.ServiceTemplate{}, system, nil},
		{&s.Providers, &v1alpha1.StateManagementProvider{}, nil, nil},
	} {
		var err error
		*of.source, err = informer.NewKubernetes(informer.KubernetesConfig{
			Client: d.Client, Object: of.object, Namespaces: of.namespaces, Indexers: of.indexers, Logger: d.Logger,
		})
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// sources are what the frameworks look at, each shared by both, and a reader of them.
type sources struct {
	clusters, services, sets, templates, chains, providers *informer.Kubernetes

	reader client.Reader
	paths  *pathCache
}

func newSources(d *operator.Dependencies, config Config) (*sources, error) {
	shared := config.Sources
	if shared == nil {
		var err error
		if shared, err = NewSources(d, config.SystemNamespace); err != nil {
			return nil, err
		}
	}
	s := &sources{clusters: shared.Clusters, sets: shared.Sets, templates: shared.Templates, providers: shared.Providers}
	var err error
	s.chains, err = informer.NewKubernetes(informer.KubernetesConfig{
		Client: d.Client, Object: &v1alpha1.ServiceTemplateChain{}, Namespaces: withNamespace(d.Namespaces, config.SystemNamespace), Logger: d.Logger,
	})
	if err != nil {
		return nil, err
	}
	s.services, err = informer.NewKubernetes(informer.KubernetesConfig{
		Client: d.Client, Object: &v1alpha1.MultiClusterService{}, LabelSelector: config.MultiClusterServices, Logger: d.Logger,
	})
	if err != nil {
		return nil, err
	}
	s.paths = newPathCache(statuses.SpecsOf(s.templates), statuses.SpecsOf(s.chains))
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

// isLeft tells whether the API server has a ServiceSet for which a condition holds.
func (s *sources) isLeft(ctx context.Context, live client.Reader, holds func(*v1alpha1.ServiceSet) bool) (bool, error) {
	namespaces := s.sets.Namespaces()
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		list := &v1alpha1.ServiceSetList{}
		if err := live.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return false, fmt.Errorf("look for what is left of ServiceSets: %w", err)
		}
		if slices.ContainsFunc(list.Items, func(set v1alpha1.ServiceSet) bool { return holds(&set) }) {
			return true, nil
		}
	}
	return false, nil
}
