package statemanagers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/internal/claims"
	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/operator/servicesets"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
)

// sources are what the frameworks look at, and a reader of them.
type sources struct {
	clusters, sets, templates, providers *informer.Kubernetes
	// configMaps and secrets have the metadata of those that sets may be made from.
	configMaps, secrets *informer.Kubernetes
	// values have the metadata of what values templates may be filled with beside ConfigMaps.
	values []valueSource

	// The sources below tell only of what matters to the frameworks.
	changed struct{ neighbours, clusters, data, templates, providers *statuses.Changes }

	reader client.Reader
	// system is the namespace of the sets of the management cluster.
	system string
	// claims are those of the providers, by name, be it a former one. They are owned by the framework for the sets of the provider.
	claims map[string]*claims.Claims
}

// valueSource has the metadata of the objects of a kind.
type valueSource struct {
	kind schema.GroupVersionKind
	*informer.Kubernetes
}

// valueKinds are the kinds whose objects values templates may be filled with beside ConfigMaps.
func (s *sources) valueKinds() (kinds []schema.GroupVersionKind) {
	for _, source := range s.values {
		kinds = append(kinds, source.kind)
	}
	return kinds
}

func newSources(d *operator.Dependencies, config Config) (*sources, error) {
	shared := config.Sources
	if shared == nil {
		var err error
		if shared, err = servicesets.NewSources(d, config.SystemNamespace); err != nil {
			return nil, err
		}
	}
	s := &sources{
		clusters: shared.Clusters, sets: shared.Sets, templates: shared.Templates, providers: shared.Providers, system: config.SystemNamespace,
	}
	var namespaces []string
	if len(d.Namespaces) > 0 {
		namespaces = append([]string{config.SystemNamespace}, d.Namespaces...)
	}
	metadata := func(kind schema.GroupVersionKind, name string) (*informer.Kubernetes, error) {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(kind)
		return informer.NewKubernetes(informer.KubernetesConfig{
			Client: d.Client, Object: object, Name: name, Namespaces: compact(namespaces), Logger: d.Logger,
		})
	}
	var err error
	if s.configMaps, err = metadata(corev1.SchemeGroupVersion.WithKind(statemanager.KindConfigMap), "configmaps of service sets"); err != nil {
		return nil, err
	}
	if s.secrets, err = metadata(corev1.SchemeGroupVersion.WithKind(statemanager.KindSecret), "secrets of service sets"); err != nil {
		return nil, err
	}
	for _, kind := range config.ValueKinds {
		source, err := metadata(kind, strings.ToLower(kind.GroupKind().String())+" for values of service sets")
		if err != nil {
			return nil, err
		}
		s.values = append(s.values, valueSource{kind, source})
	}
	s.changed.neighbours, s.changed.clusters = neighboursOf(s.sets), clustersOf(s.clusters)
	s.changed.data = dataOf(s.clusters)
	s.changed.templates = statuses.ChangesOf(s.templates, "to carry out", statuses.SpecDiffers)
	s.changed.providers = statuses.ChangesOf(s.providers, "to carry out", func(before, after client.Object) bool {
		return statuses.SpecDiffers(before, after) || before.GetAnnotations()[claims.Annotation] != after.GetAnnotations()[claims.Annotation]
	})
	s.reader = informer.NewReader(d.Client.Scheme(), s.clusters, s.sets, s.templates, s.providers)
	return s, nil
}

// compact returns names without repetitions.
func compact(names []string) (unique []string) {
	known := map[string]bool{}
	for _, name := range names {
		if !known[name] {
			unique = append(unique, name)
		}
		known[name] = true
	}
	return unique
}

// The functions below return objects of the sources. They belong to the sources and must not be changed.

// cluster returns the ClusterDeployment of a set, nil for the management cluster and for one that does not exist.
func (s *sources) cluster(ctx context.Context, set *v1alpha1.ServiceSet) (*v1alpha1.ClusterDeployment, error) {
	if set.Spec.Cluster == "" {
		return nil, nil
	}
	cd := &v1alpha1.ClusterDeployment{}
	err := s.reader.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: set.Spec.Cluster}, cd, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	return cd, nil
}

// setsIn returns the ServiceSets of a namespace, or of all for "", for which a condition holds.
func (s *sources) setsIn(ctx context.Context, namespace string, holds func(*v1alpha1.ServiceSet) bool) ([]*v1alpha1.ServiceSet, error) {
	list := &v1alpha1.ServiceSetList{}
	if err := s.reader.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
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

// setsOn returns the ServiceSets of a cluster, by name. It takes as long as there are such.
func (s *sources) setsOn(namespace, cluster string) ([]*v1alpha1.ServiceSet, error) {
	if !s.sets.Status().Synced {
		return nil, fmt.Errorf("list the ServiceSets of cluster %s/%s: %w", namespace, cluster, informer.ErrNotSynced)
	}
	found, err := s.sets.ByIndex(servicesets.ByCluster, servicesets.ClusterIndex(namespace, cluster))
	if err != nil {
		return nil, err
	}
	sets := make([]*v1alpha1.ServiceSet, len(found))
	for i, obj := range found {
		sets[i] = obj.(*v1alpha1.ServiceSet)
	}
	slices.SortFunc(sets, func(a, b *v1alpha1.ServiceSet) int { return strings.Compare(a.Name, b.Name) })
	return sets, nil
}

// others returns the other ServiceSets of the same cluster.
func (s *sources) others(set *v1alpha1.ServiceSet) ([]*v1alpha1.ServiceSet, error) {
	sets, err := s.setsOn(set.Namespace, set.Spec.Cluster)
	return slices.DeleteFunc(sets, func(other *v1alpha1.ServiceSet) bool { return other.Name == set.Name }), err
}

// templatesOf returns the templates that the services of a set name, as far as they exist.
func (s *sources) templatesOf(ctx context.Context, set *v1alpha1.ServiceSet) (map[string]*v1alpha1.ServiceTemplate, error) {
	templates := map[string]*v1alpha1.ServiceTemplate{}
	for i := range set.Spec.Services {
		name := set.Spec.Services[i].Template
		if templates[name] != nil {
			continue
		}
		template := &v1alpha1.ServiceTemplate{}
		err := s.reader.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: name}, template, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if err == nil {
			templates[name] = template
		}
	}
	return templates, nil
}

// provider returns a StateManagementProvider, nil if it does not exist.
func (s *sources) provider(ctx context.Context, name string) (*v1alpha1.StateManagementProvider, error) {
	provider := &v1alpha1.StateManagementProvider{}
	err := s.reader.Get(ctx, client.ObjectKey{Name: name}, provider, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	return provider, nil
}

// providerOf returns the name of the provider of a set.
func providerOf(set *v1alpha1.ServiceSet) string {
	if set.Spec.Provider.Name == "" {
		return v1alpha1.DefaultStateManagementProvider
	}
	return set.Spec.Provider.Name
}
