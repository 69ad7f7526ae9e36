package servicesets

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// changes is a source that tells only of changes that matter to those who watch it. The status of a MultiClusterService
// follows every service on every cluster: if each of these changes reconciled every cluster, n of them would cost n².
type changes struct {
	*informer.Kubernetes
	name    string
	matters func(before, after client.Object) bool
}

// Name implements informer.Source.
func (c *changes) Name() string { return c.name }

// Subscribe implements informer.Source.
func (c *changes) Subscribe(h informer.Handler) (unsubscribe func()) {
	return c.Kubernetes.Subscribe(func(e informer.Event) {
		before, ok := e.Old.(client.Object)
		if e.Type == informer.Updated && ok && before.GetUID() == e.Object.(client.Object).GetUID() &&
			!c.matters(before, e.Object.(client.Object)) {
			return
		}
		h(e)
	})
}

// specsOf tells of what people write.
func specsOf(source *informer.Kubernetes) *changes {
	return &changes{source, source.Name() + " specs", func(before, after client.Object) bool {
		return before.GetGeneration() != after.GetGeneration() || before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero()
	}}
}

// specs are the sources of what others write a status of, as far as people write them.
type specs struct{ services, templates, providers *changes }

// summariesOf tells of what MultiClusterServices look at in a ClusterDeployment.
func summariesOf(source *informer.Kubernetes) *changes {
	return &changes{source, source.Name() + " summaries", func(before, after client.Object) bool {
		x, y := before.(*v1alpha1.ClusterDeployment), after.(*v1alpha1.ClusterDeployment)
		return !maps.Equal(x.Labels, y.Labels) || x.DeletionTimestamp.IsZero() != y.DeletionTimestamp.IsZero() ||
			!equality.Semantic.DeepEqual(x.Status.ServiceSets, y.Status.ServiceSets)
	}}
}
