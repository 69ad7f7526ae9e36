package serviceset

import (
	"cmp"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// Owner is a ClusterDeployment or a MultiClusterService that has services on a cluster.
type Owner struct {
	// Kind and Key say who it is. The namespace of a MultiClusterService is empty.
	Kind string
	Key  client.ObjectKey
	// Priority decides who gets a service that several owners list: the highest. 0 is v1alpha1.DefaultPriority.
	Priority int32
	// Created decides between equal priorities: the oldest gets it. After that, Key.Name, Key.Namespace and Kind do.
	Created time.Time
	// DependsOn are the names of all MultiClusterServices that come before a MultiClusterService: what it depends on directly or
	// transitively (see Dependencies).
	DependsOn []string
	// Services are what it lists.
	Services []v1alpha1.Service
	// Set is the ServiceSet that it has on the cluster, nil if it has none yet.
	Set *v1alpha1.ServiceSet
}

// String returns the owner's kind and name.
func (o *Owner) String() string {
	if o.Key.Namespace == "" {
		return o.Kind + " " + o.Key.Name
	}
	return o.Kind + " " + o.Key.String()
}

// ClusterDeploymentOwner returns a ClusterDeployment as an owner. Its services are not copied.
func ClusterDeploymentOwner(cd *v1alpha1.ClusterDeployment, set *v1alpha1.ServiceSet) Owner {
	return Owner{
		Kind: v1alpha1.ClusterDeploymentKind, Key: client.ObjectKeyFromObject(cd),
		Priority: cd.Spec.ServiceSpec.Priority, Created: cd.CreationTimestamp.Time,
		Services: cd.Spec.ServiceSpec.Services, Set: set,
	}
}

// MultiClusterServiceOwner returns a MultiClusterService as an owner, with what it depends on directly. Its services are not copied.
func MultiClusterServiceOwner(mcs *v1alpha1.MultiClusterService, set *v1alpha1.ServiceSet) Owner {
	return Owner{
		Kind: v1alpha1.MultiClusterServiceKind, Key: client.ObjectKeyFromObject(mcs),
		Priority: mcs.Spec.ServiceSpec.Priority, Created: mcs.CreationTimestamp.Time, DependsOn: mcs.Spec.DependsOn,
		Services: mcs.Spec.ServiceSpec.Services, Set: set,
	}
}

func (o *Owner) priority() int32 {
	if o.Priority == 0 {
		return v1alpha1.DefaultPriority
	}
	return o.Priority
}

// compareOwners orders owners by precedence, the first one gets a service.
func compareOwners(a, b *Owner) int {
	return cmp.Or(
		cmp.Compare(b.priority(), a.priority()),
		a.Created.Compare(b.Created),
		cmp.Compare(a.Key.Name, b.Key.Name),
		cmp.Compare(a.Key.Namespace, b.Key.Namespace),
		cmp.Compare(a.Kind, b.Kind),
	)
}

// byPrecedence returns pointers to the owners, the first one gets a service.
func byPrecedence(owner *Owner, others []Owner) []*Owner {
	sorted := make([]*Owner, 0, len(others)+1)
	sorted = append(sorted, owner)
	for i := range others {
		sorted = append(sorted, &others[i])
	}
	slices.SortStableFunc(sorted, compareOwners)
	return sorted
}
