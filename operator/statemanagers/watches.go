package statemanagers

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
)

// watches are those of all providers, and the manager's own. An error of the reader is that a source is not synced: then
// everything is going to be reconciled anyway.
func (m *managed) watches() []framework.Watch {
	all := []framework.Watch{
		{Source: m.changed.neighbours, Map: m.setsBeside},
		{Source: m.changed.clusters, Map: m.setsOfCluster},
		{Source: m.changed.data, Map: m.setsFilledFrom},
		{Source: m.changed.templates, Map: m.setsOfTemplate},
		{Source: m.changed.providers, Map: m.setsOfProvider},
		{Source: m.configMaps, Map: m.setsMadeFrom(corev1.SchemeGroupVersion.WithKind(statemanager.KindConfigMap))},
		{Source: m.secrets, Map: m.setsMadeFrom(corev1.SchemeGroupVersion.WithKind(statemanager.KindSecret))},
	}
	for _, of := range m.values {
		all = append(all, framework.Watch{Source: of.Kubernetes, Map: m.setsMadeFrom(of.kind)})
	}
	for _, watch := range m.Watches {
		all = append(all, framework.Watch{Source: watch.Source, Map: m.onlyOurs(watch.Map)})
	}
	return all
}

// neighboursOf tells of what other sets of the same cluster look at in a ServiceSet: which services it has, and how they are.
func neighboursOf(source *informer.Kubernetes) *statuses.Changes {
	return statuses.ChangesOf(source, "beside", func(before, after client.Object) bool {
		return statuses.SpecDiffers(before, after) ||
			!slices.EqualFunc(before.(*v1alpha1.ServiceSet).Status.Services, after.(*v1alpha1.ServiceSet).Status.Services, func(x, y v1alpha1.ServiceState) bool {
				return x.Key() == y.Key() &&
					x.State == y.State && x.Template == y.Template && x.Version == y.Version
			})
	})
}

// clustersOf tells of what matters of a ClusterDeployment to those who put services there. Its services are none of it: they reach
// us as ServiceSets.
func clustersOf(source *informer.Kubernetes) *statuses.Changes {
	return statuses.ChangesOf(source, "to reach", func(before, after client.Object) bool {
		x, y := before.(*v1alpha1.ClusterDeployment), after.(*v1alpha1.ClusterDeployment)
		return x.Spec.Kubeconfig != y.Spec.Kubeconfig || x.DeletionTimestamp.IsZero() != y.DeletionTimestamp.IsZero() ||
			x.Annotations[statemanager.LetGoAnnotation] != y.Annotations[statemanager.LetGoAnnotation] ||
			x.Annotations[statemanager.RetryAnnotation] != y.Annotations[statemanager.RetryAnnotation]
	})
}

// dataOf tells of what values templates see of a ClusterDeployment.
func dataOf(source *informer.Kubernetes) *statuses.Changes {
	return statuses.ChangesOf(source, "to fill values", func(before, after client.Object) bool {
		return before.GetGeneration() != after.GetGeneration() || !maps.Equal(before.GetLabels(), after.GetLabels()) ||
			!maps.Equal(before.GetAnnotations(), after.GetAnnotations())
	})
}

// setsBeside returns the other sets of the same cluster that have something to do with a set: a service that depends on one of
// its services, or on which one of its services depends, or the same service.
func (m *managed) setsBeside(_ context.Context, obj any) []informer.Key {
	set := obj.(*v1alpha1.ServiceSet)
	named := namedIn(set)
	return m.keysOn(set.Namespace, set.Spec.Cluster, func(other *v1alpha1.ServiceSet) bool {
		if other.Name == set.Name {
			return false
		}
		for key := range namedIn(other) {
			if named[key] {
				return true
			}
		}
		return false
	})
}

// namedIn returns the services that a set has, takes away, tells of, or depends on.
func namedIn(set *v1alpha1.ServiceSet) map[client.ObjectKey]bool {
	named := make(map[client.ObjectKey]bool, 2*len(set.Spec.Services))
	add := func(namespace, name string, dependsOn []v1alpha1.ServiceDependsOn) {
		named[serviceset.ServiceKey(namespace, name)] = true
		for _, d := range dependsOn {
			named[d.Key()] = true
		}
	}
	for i := range set.Spec.Services {
		add(set.Spec.Services[i].Namespace, set.Spec.Services[i].Name, set.Spec.Services[i].DependsOn)
	}
	for i := range set.Spec.Removing {
		add(set.Spec.Removing[i].Namespace, set.Spec.Removing[i].Name, set.Spec.Removing[i].DependsOn)
	}
	for i := range set.Status.Services {
		add(set.Status.Services[i].Namespace, set.Status.Services[i].Name, nil)
	}
	return named
}

// setsOfCluster returns the sets of a cluster.
func (m *managed) setsOfCluster(_ context.Context, obj any) []informer.Key {
	cluster := obj.(*v1alpha1.ClusterDeployment)
	return m.keysOn(cluster.Namespace, cluster.Name, func(*v1alpha1.ServiceSet) bool { return true })
}

// setsFilledFrom returns the sets of a cluster with services whose values are templates.
func (m *managed) setsFilledFrom(ctx context.Context, obj any) []informer.Key {
	cluster := obj.(*v1alpha1.ClusterDeployment)
	return m.keys(ctx, cluster.Namespace, func(set *v1alpha1.ServiceSet) bool {
		return set.Spec.Cluster == cluster.Name && slices.ContainsFunc(set.Spec.Services, func(s v1alpha1.ServiceWithValues) bool { return s.ValuesTemplate != nil })
	})
}

// setsOfTemplate returns the sets with services that are made of a template.
func (m *managed) setsOfTemplate(ctx context.Context, obj any) []informer.Key {
	template := obj.(*v1alpha1.ServiceTemplate)
	return m.keys(ctx, template.Namespace, func(set *v1alpha1.ServiceSet) bool {
		return slices.ContainsFunc(set.Spec.Services, func(s v1alpha1.ServiceWithValues) bool { return s.Template == template.Name })
	})
}

// setsOfProvider returns the sets of a provider.
func (m *managed) setsOfProvider(ctx context.Context, obj any) []informer.Key {
	name := obj.(*v1alpha1.StateManagementProvider).Name
	return m.keys(ctx, "", func(set *v1alpha1.ServiceSet) bool { return providerOf(set) == name })
}

// setsMadeFrom returns a function that returns the sets which are made from an object of a kind.
func (m *managed) setsMadeFrom(kind schema.GroupVersionKind) informer.MapFunc {
	return func(ctx context.Context, obj any) []informer.Key {
		object := client.ObjectKeyFromObject(obj.(client.Object))
		return m.keys(ctx, object.Namespace, func(set *v1alpha1.ServiceSet) bool {
			templates, err := m.templatesOf(ctx, set)
			return err == nil && slices.ContainsFunc(statemanager.References(set, templates), func(ref statemanager.Reference) bool {
				return ref.ObjectKey == object && ref.GroupVersionKind() == kind
			})
		})
	}
}

// onlyOurs returns the map function without keys of sets that other providers have.
func (m *managed) onlyOurs(of informer.MapFunc) informer.MapFunc {
	return func(ctx context.Context, obj any) []informer.Key {
		return slices.DeleteFunc(of(ctx, obj), func(key informer.Key) bool {
			set := &v1alpha1.ServiceSet{}
			err := m.reader.Get(ctx, key, set, client.UnsafeDisableDeepCopy)
			return err == nil && !m.has(set)
		})
	}
}

// keysOn returns the keys of those sets of a cluster that the provider has and for which a condition holds.
func (m *managed) keysOn(namespace, cluster string, concerned func(*v1alpha1.ServiceSet) bool) []informer.Key {
	sets, err := m.setsOn(namespace, cluster)
	if err != nil {
		return nil
	}
	var keys []informer.Key
	for _, set := range sets {
		if m.has(set) && concerned(set) {
			keys = append(keys, client.ObjectKeyFromObject(set))
		}
	}
	return keys
}

// keys returns the keys of those sets of the provider for which a condition holds.
func (m *managed) keys(ctx context.Context, namespace string, concerned func(*v1alpha1.ServiceSet) bool) []informer.Key {
	sets, err := m.setsIn(ctx, namespace, func(set *v1alpha1.ServiceSet) bool { return m.has(set) && concerned(set) })
	if err != nil {
		return nil
	}
	keys := make([]informer.Key, len(sets))
	for i, set := range sets {
		keys[i] = client.ObjectKeyFromObject(set)
	}
	return keys
}
