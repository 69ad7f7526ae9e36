package manifest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// planPruning plans the deletion of the objects that are not part of a service any more, the last ones first, and says what stays. What the
// new version needs to be ready first is deleted later: the old one may be running until then.
func (c *Carrier) planPruning(
	ctx context.Context, cluster carrier.Cluster, service *carrier.Service, todo *installation, result *carrier.Result,
) error {
	stays, gone := map[carrier.Identity]bool{}, map[carrier.Identity]bool{}
	for _, object := range todo.objects {
		stays[object.identity()] = true
	}
	for _, object := range backwards(todo.have.objects) {
		if stays[object.identity()] {
			continue
		}
		s, _, note, err := c.planRemoval(ctx, cluster, service, object, false)
		if err != nil {
			return err
		}
		if note != "" {
			result.Notes = append(result.Notes, note)
		}
		if s.action != "" {
			todo.prunes = append(todo.prunes, s)
			gone[object.identity()] = true
		}
	}
	if len(todo.prunes) == 0 {
		return nil
	}
	if ready, err := c.readyAtOnce(ctx, cluster, service, todo); ready || err != nil {
		return err
	}
	todo.prunes = nil
	for _, object := range todo.have.objects {
		if gone[object.identity()] {
			object.Outdated = true
			todo.outdated = append(todo.outdated, object)
		}
	}
	result.Notes = append(result.Notes, prunedLater(todo.outdated))
	return nil
}

// prunedLater says of objects that they are not deleted yet.
func prunedLater(outdated []objectReference) string {
	names := make([]string, len(outdated))
	for i, object := range outdated {
		names[i] = object.String()
	}
	return "not part of the service any more, and deleted when the objects of the new version are ready: " + strings.Join(shorten(names), ", ")
}

// readyAtOnce reports whether all objects of a service are ready when the steps are done: those that are written by what is known of them before,
// such as ConfigMaps, and the others by how they are.
func (c *Carrier) readyAtOnce(ctx context.Context, cluster carrier.Cluster, service *carrier.Service, todo *installation) (bool, error) {
	written := map[carrier.Identity]bool{}
	for _, s := range todo.steps {
		written[s.object.identity()] = true
	}
	health := summary{left: c.config.HealthTimeout}
	for _, m := range todo.manifests {
		object := m.Object
		if !written[carrier.IdentityOf(object)] {
			var err error
			if object, err = get(ctx, cluster.Client(), referTo(object)); err != nil {
				return false, err
			}
		}
		if object != nil || !slices.Contains(todo.record.Done, referTo(m.Object).String()) {
			health.add(service, m, object)
		}
	}
	state, _ := health.phase(c.config.HealthTimeout)
	return state.Phase == v1alpha1.ServiceStateDeployed, nil
}

// computePruning plans the deletion of what earlier versions have left, when the objects of the service are ready. Done are the Jobs that have
// finished and are gone.
func (c *Carrier) computePruning(
	ctx context.Context, cluster carrier.Cluster, service *carrier.Service, have *inventory, done []string, result *carrier.Result,
) error {
	todo := &installation{packed: have.secret.Data[manifestsKey], record: have.record, have: have}
	for _, object := range have.objects {
		if object.Outdated {
			todo.outdated = append(todo.outdated, object)
		} else {
			todo.objects = append(todo.objects, object)
		}
	}
	switch {
	case len(todo.outdated) == 0 || len(result.Changes) > 0:
		return nil
	case result.Health.Phase != v1alpha1.ServiceStateDeployed:
		result.Notes = append(result.Notes, prunedLater(todo.outdated))
		return nil
	}
	todo.outdated, todo.record.Done = nil, done
	if err := c.planPruning(ctx, cluster, service, todo, result); err != nil {
		return err
	}
	result.Changes, result.Payload = todo.changes(service), todo
	return nil
}

// backwards are objects in the order in which they are taken away.
func backwards(objects []objectReference) []objectReference {
	objects = slices.Clone(objects)
	slices.SortStableFunc(objects, func(a, b objectReference) int { return order(a.gvk().GroupKind(), b.gvk().GroupKind()) })
	slices.Reverse(objects)
	return objects
}

// planRemoval returns the step that takes an object away, or lets it go where it stays; one without an action where there is
// nothing to do. Holds says what an object that is being deleted waits for. All tells that the whole service goes.
func (c *Carrier) planRemoval(
	ctx context.Context, cluster carrier.Cluster, service *carrier.Service, object objectReference, all bool,
) (s step, holds, note string, err error) {
	have, err := getMetadata(ctx, cluster, object)
	if have == nil || err != nil {
		return step{}, "", "", err
	}
	object = objectReference{APIVersion: have.APIVersion, Kind: have.Kind, Namespace: have.Namespace, Name: have.Name}
	switch {
	case !service.Has(have.GetLabels()):
		note := fmt.Sprintf("%s stays, because it has not the labels of this service any more", object)
		if owner := ownerOf(have); owner != "" {
			note += ": it belongs to " + owner
		}
		return step{}, "", note, nil
	case have.DeletionTimestamp != nil:
		return step{}, fmt.Sprintf("%s is being deleted%s", object, holders(have)), "", nil
	}
	s = step{action: plan.Delete, object: object, uid: have.UID, version: have.ResourceVersion}
	why, err := c.whyItStays(ctx, cluster, service, have, all)
	if err != nil {
		return step{}, "", "", err
	}
	if why == "" {
		return s, "", "", nil
	}
	s.action, s.reason = plan.Update, "it stays, and is let go"
	for _, label := range []string{carrier.OwnerLabel, carrier.ServiceLabel, carrier.ServiceNamespaceLabel} {
		if value, ok := have.Labels[label]; ok {
			s.fields = append(s.fields, plan.FieldChange{Path: "metadata.labels" + plan.Segment(label), Old: value})
		}
	}
	if value, ok := have.Annotations[carrier.OwnerAnnotation]; ok {
		s.fields = append(s.fields, plan.FieldChange{Path: "metadata.annotations" + plan.Segment(carrier.OwnerAnnotation), Old: value})
	}
	return s, "", fmt.Sprintf("%s stays, because %s", object, why), nil
}

// whyItStays says why an object is not deleted, or nothing.
func (c *Carrier) whyItStays(
	ctx context.Context, cluster carrier.Cluster, service *carrier.Service, have *metav1.PartialObjectMetadata, all bool,
) (string, error) {
	switch {
	case asksToStay(have.Annotations):
		return "its annotation " + carrier.PruneAnnotation + " says so", nil
	case isNamespace(have.GroupVersionKind().GroupKind()) && have.Name == service.Key.Namespace && !all:
		return "the service lives in it", nil
	}
	return carrier.Bystanders(ctx, cluster, service, have, asksToStay)
}

// holders says which finalizers an object that is being deleted waits for.
func holders(object client.Object) string {
	finalizers := object.GetFinalizers()
	if len(finalizers) == 0 {
		return ""
	}
	return ", and waits for " + strings.Join(shorten(finalizers), ", ") + " (its finalizers)"
}
