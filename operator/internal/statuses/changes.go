package statuses

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
)

// Changes is a source that tells only of updates that matter to those who watch it. Where a status follows every step of
// something, n changes that reconcile n others would cost n².
type Changes struct {
	*informer.Kubernetes
	name    string
	matters func(before, after client.Object) bool
}

// ChangesOf returns a source of those updates of another one for which matters holds. All else of it is told.
func ChangesOf(source *informer.Kubernetes, what string, matters func(before, after client.Object) bool) *Changes {
	return &Changes{source, source.Name() + " " + what, matters}
}

// SpecsOf tells of what people write: the spec, and the deletion.
func SpecsOf(source *informer.Kubernetes) *Changes {
	return ChangesOf(source, "specs", SpecDiffers)
}

// SpecDiffers tells whether an object has another spec, or is being deleted now.
func SpecDiffers(before, after client.Object) bool {
	return before.GetGeneration() != after.GetGeneration() || before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero()
}

// Name implements informer.Source.
func (c *Changes) Name() string { return c.name }

// Subscribe implements informer.Source.
func (c *Changes) Subscribe(h informer.Handler) (unsubscribe func()) {
	return c.Kubernetes.Subscribe(func(e informer.Event) {
		before, ok := e.Old.(client.Object)
		if e.Type == informer.Updated && ok && before.GetUID() == e.Object.(client.Object).GetUID() &&
			!c.matters(before, e.Object.(client.Object)) {
			return
		}
		h(e)
	})
}
