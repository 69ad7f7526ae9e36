package servicesets

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

var clusterAccess = statuses.Access[*v1alpha1.ClusterDeployment, v1alpha1.ClusterDeploymentStatus]{
	APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ClusterDeploymentKind,
	Status:     func(cd *v1alpha1.ClusterDeployment) *v1alpha1.ClusterDeploymentStatus { return &cd.Status },
	Conditions: func(s *v1alpha1.ClusterDeploymentStatus) *[]metav1.Condition { return &s.Conditions },
	Describe:   describeCluster,
}

var serviceAccess = statuses.Access[*v1alpha1.MultiClusterService, v1alpha1.MultiClusterServiceStatus]{
	APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.MultiClusterServiceKind,
	Status:     func(mcs *v1alpha1.MultiClusterService) *v1alpha1.MultiClusterServiceStatus { return &mcs.Status },
	Conditions: func(s *v1alpha1.MultiClusterServiceStatus) *[]metav1.Condition { return &s.Conditions },
	Describe:   describeService,
}

// specs are the sources of what others write a status of, as far as people write them.
type specs struct{ services, templates, providers *statuses.Changes }

// summariesOf tells of what MultiClusterServices look at in a ClusterDeployment.
func summariesOf(source *informer.Kubernetes) *statuses.Changes {
	return statuses.ChangesOf(source, "summaries", func(before, after client.Object) bool {
		x, y := before.(*v1alpha1.ClusterDeployment), after.(*v1alpha1.ClusterDeployment)
		return !maps.Equal(x.Labels, y.Labels) || x.DeletionTimestamp.IsZero() != y.DeletionTimestamp.IsZero() ||
			!equality.Semantic.DeepEqual(x.Status.ServiceSets, y.Status.ServiceSets)
	})
}
