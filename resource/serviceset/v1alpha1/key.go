package v1alpha1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The keys below are those by which a service is known on its cluster, wherever it is written of: an empty namespace is "default".

// Key returns the key of the service.
func (s *Service) Key() types.NamespacedName { return ServiceKey(s.Namespace, s.Name) }

// Key returns the key of the service.
func (s *ServiceWithValues) Key() types.NamespacedName { return ServiceKey(s.Namespace, s.Name) }

// Key returns the key of the service.
func (s *ServiceRemoval) Key() types.NamespacedName { return ServiceKey(s.Namespace, s.Name) }

// Key returns the key of the service.
func (s *ServiceState) Key() types.NamespacedName { return ServiceKey(s.Namespace, s.Name) }

// Key returns the key of the service that is depended on.
func (d *ServiceDependsOn) Key() types.NamespacedName { return ServiceKey(d.Namespace, d.Name) }

// Key returns the key of the service that the paths are about.
func (p *ServiceUpgradePaths) Key() types.NamespacedName { return ServiceKey(p.Namespace, p.Name) }

// CompareKeys orders keys by namespace and name.
func CompareKeys(a, b types.NamespacedName) int {
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

// ServiceKey returns the key of a service with this namespace and name.
func ServiceKey(namespace, name string) types.NamespacedName {
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}
