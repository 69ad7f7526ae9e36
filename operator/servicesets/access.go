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

func conditionsOfCluster(cd *v1alpha1.ClusterDeployment) *[]metav1.Condition {
	return &cd.Status.Conditions
}

func conditionsOfServices(mcs *v1alpha1.MultiClusterService) *[]metav1.Condition {
	return &mcs.Status.Conditions
}

// specs are the sources of what others write a status of, as far as people write them.
type specs struct{ services, templates, providers, chains *statuses.Changes }

// summariesOf tells of what MultiClusterServices look at in a ClusterDeployment.
func summariesOf(source *informer.Kubernetes) *statuses.Changes {
	return statuses.ChangesOf(source, "summaries", func(before, after client.Object) bool {
		x, y := before.(*v1alpha1.ClusterDeployment), after.(*v1alpha1.ClusterDeployment)
		return !maps.Equal(x.Labels, y.Labels) || x.DeletionTimestamp.IsZero() != y.DeletionTimestamp.IsZero() ||
			!equality.Semantic.DeepEqual(x.Status.ServiceSets, y.Status.ServiceSets)
	})
}
