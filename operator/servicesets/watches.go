package servicesets

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// The functions below are the maps of the watches. An error of the reader is that a source is not synced: then everything is
// going to be reconciled anyway.

// clusterOfSet returns the cluster of a ServiceSet.
func clusterOfSet(_ context.Context, obj any) []informer.Key {
	set := obj.(*v1alpha1.ServiceSet)
	if set.Spec.Cluster == "" {
		return nil
	}
	return []informer.Key{{Namespace: set.Namespace, Name: set.Spec.Cluster}}
}

// clustersOfServices returns the clusters that a MultiClusterService selects, and those that have something of it: whatever the
// selector was before, and even if nobody can read it, they have to give up what is not selected any more. The same of those that depend
// on it: they may wait for it, or can't be ordered as long as it is not there.
func (s *sources) clustersOfServices(ctx context.Context, obj any) []informer.Key {
	mcs := obj.(*v1alpha1.MultiClusterService)
	all, err := s.allServices(ctx)
	if err != nil {
		return nil
	}
	concerned := map[string]bool{mcs.Name: true}
	for _, name := range serviceset.Dependents(mcs.Name, all) {
		concerned[name] = true
	}
	sets, err := s.setsThat(ctx, func(set *v1alpha1.ServiceSet) bool { return concerned[set.Spec.MultiClusterService] })
	if err != nil {
		return nil
	}
	has := make(map[client.ObjectKey]bool, len(sets))
	for _, set := range sets {
		has[clusterKey(set)] = true
	}
	var selectors []labels.Selector
	for _, one := range append(all, *mcs) {
		if selector, err := metav1.LabelSelectorAsSelector(one.Spec.ClusterSelector); err == nil && concerned[one.Name] {
			selectors = append(selectors, selector)
		}
	}
	return s.clusterKeys(ctx, "", func(cd *v1alpha1.ClusterDeployment) bool {
		return has[client.ObjectKeyFromObject(cd)] ||
			slices.ContainsFunc(selectors, func(selector labels.Selector) bool { return selector.Matches(labels.Set(cd.Labels)) }) ||
			slices.ContainsFunc(cd.Status.ServiceSets, func(summary v1alpha1.ServiceSetSummary) bool { return concerned[summary.MultiClusterService] })
	})
}

// clustersOfNamespace returns the clusters in the namespace of a template or a chain.
func (s *sources) clustersOfNamespace(ctx context.Context, obj any) []informer.Key {
	return s.clusterKeys(ctx, obj.(client.Object).GetNamespace(), func(*v1alpha1.ClusterDeployment) bool { return true })
}

// clustersOfProvider returns the clusters with services that a provider carries out.
func (s *sources) clustersOfProvider(ctx context.Context, obj any) []informer.Key {
	provider := obj.(*v1alpha1.StateManagementProvider).Name
	services, err := s.allServices(ctx)
	if err != nil {
		return nil
	}
	var selectors []labels.Selector
	for i := range services {
		selector, err := metav1.LabelSelectorAsSelector(services[i].Spec.ClusterSelector)
		if err == nil && providerOf(&services[i].Spec.ServiceSpec) == provider {
			selectors = append(selectors, selector)
		}
	}
	return s.clusterKeys(ctx, "", func(cd *v1alpha1.ClusterDeployment) bool {
		if providerOf(&cd.Spec.ServiceSpec) == provider {
			return true
		}
		for _, selector := range selectors {
			if selector.Matches(labels.Set(cd.Labels)) {
				return true
			}
		}
		return false
	})
}

// servicesOfSet returns the MultiClusterServices for which a ServiceSet counts: on the management cluster all that have
// services there, because services depend on each other whoever owns them; on others the owner, while it is being deleted,
// and when nobody else minds the set.
func (s *sources) servicesOfSet(ctx context.Context, obj any) []informer.Key {
	set := obj.(*v1alpha1.ServiceSet)
	owner := set.Spec.MultiClusterService
	if set.Spec.Cluster == "" {
		return s.serviceKeys(ctx, func(mcs *v1alpha1.MultiClusterService) bool { return mcs.Name == owner || selfManaged(mcs) })
	}
	if owner == "" {
		return nil
	}
	_, err := s.cluster(ctx, client.ObjectKey{Namespace: set.Namespace, Name: set.Spec.Cluster})
	return s.serviceKeys(ctx, func(mcs *v1alpha1.MultiClusterService) bool {
		return mcs.Name == owner && (err != nil || mcs.DeletionTimestamp != nil)
	})
}

// servicesOfCluster returns the MultiClusterServices that a cluster has, and those that it should have.
func (s *sources) servicesOfCluster(ctx context.Context, obj any) []informer.Key {
	cd := obj.(*v1alpha1.ClusterDeployment)
	return s.serviceKeys(ctx, func(mcs *v1alpha1.MultiClusterService) bool {
		selector, err := metav1.LabelSelectorAsSelector(mcs.Spec.ClusterSelector)
		return err == nil && selector.Matches(labels.Set(cd.Labels)) || summaryOf(cd, mcs.Name) != nil
	})
}

// servicesOfServices returns the MultiClusterServices that a change of one concerns: those that depend on it, those that it depends on,
// and, if it has services on the management cluster, all that have some there too.
func (s *sources) servicesOfServices(ctx context.Context, obj any) []informer.Key {
	mcs := obj.(*v1alpha1.MultiClusterService)
	all, err := s.allServices(ctx)
	if err != nil {
		return nil
	}
	dependents := serviceset.Dependents(mcs.Name, all)
	return s.serviceKeys(ctx, func(other *v1alpha1.MultiClusterService) bool {
		return slices.Contains(dependents, other.Name) || slices.Contains(mcs.Spec.DependsOn, other.Name) || selfManaged(mcs) && selfManaged(other)
	})
}

// servicesOfNamespace returns the MultiClusterServices whose services may be made of a template or a chain.
func (s *sources) servicesOfNamespace(systemNamespace string) informer.MapFunc {
	return func(ctx context.Context, obj any) []informer.Key {
		namespace := obj.(client.Object).GetNamespace()
		clusters, err := s.clustersIn(ctx, namespace)
		if err != nil {
			return nil
		}
		return s.serviceKeys(ctx, func(mcs *v1alpha1.MultiClusterService) bool {
			if namespace == systemNamespace && selfManaged(mcs) {
				return true
			}
			selector, err := metav1.LabelSelectorAsSelector(mcs.Spec.ClusterSelector)
			if err != nil {
				return false
			}
			for i := range clusters {
				if selector.Matches(labels.Set(clusters[i].Labels)) {
					return true
				}
			}
			return false
		})
	}
}

// servicesOfProvider returns the MultiClusterServices with services on the management cluster that a provider carries out.
func (s *sources) servicesOfProvider(ctx context.Context, obj any) []informer.Key {
	provider := obj.(*v1alpha1.StateManagementProvider).Name
	return s.serviceKeys(ctx, func(mcs *v1alpha1.MultiClusterService) bool {
		return selfManaged(mcs) && providerOf(&mcs.Spec.ServiceSpec) == provider
	})
}

func (s *sources) clusterKeys(ctx context.Context, namespace string, concerned func(*v1alpha1.ClusterDeployment) bool) []informer.Key {
	clusters, err := s.clustersIn(ctx, namespace)
	if err != nil {
		return nil
	}
	var keys []informer.Key
	for i := range clusters {
		if concerned(&clusters[i]) {
			keys = append(keys, client.ObjectKeyFromObject(&clusters[i]))
		}
	}
	return keys
}

func (s *sources) serviceKeys(ctx context.Context, concerned func(*v1alpha1.MultiClusterService) bool) []informer.Key {
	services, err := s.allServices(ctx)
	if err != nil {
		return nil
	}
	var keys []informer.Key
	for i := range services {
		if concerned(&services[i]) {
			keys = append(keys, client.ObjectKeyFromObject(&services[i]))
		}
	}
	return keys
}

// selfManaged tells whether a MultiClusterService has services on the management cluster.
func selfManaged(mcs *v1alpha1.MultiClusterService) bool {
	return mcs.Spec.ServiceSpec.Provider.SelfManagement
}

// providerOf returns the name of the provider of services.
func providerOf(spec *v1alpha1.ServiceSpec) string {
	if spec.Provider.Name == "" {
		return v1alpha1.DefaultStateManagementProvider
	}
	return spec.Provider.Name
}

// summaryOf returns what a cluster says about the services of a MultiClusterService, or about its own for "".
func summaryOf(cd *v1alpha1.ClusterDeployment, multiClusterService string) *v1alpha1.ServiceSetSummary {
	for i := range cd.Status.ServiceSets {
		if s := &cd.Status.ServiceSets[i]; s.MultiClusterService == multiClusterService {
			return s
		}
	}
	return nil
}
