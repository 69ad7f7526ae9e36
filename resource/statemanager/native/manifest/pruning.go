package manifest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// planPruning returns the steps for the objects that are not part of a service any more, the last ones first, and says what
// stays.
func (c *Carrier) planPruning(
	ctx context.Context, cluster carrier.Cluster, service *carrier.Service, have *inventory, still []objectReference,
) (steps []step, notes []string, err error) {
	stays := map[carrier.Identity]bool{}
	for _, object := range still {
		stays[object.identity()] = true
	}
	for _, object := range backwards(have.objects) {
		if stays[object.identity()] {
			continue
		}
		s, _, note, err := c.planRemoval(ctx, cluster, service, object, false)
		if err != nil {
			return nil, nil, err
		}
		if note != "" {
			notes = append(notes, note)
		}
		if s.action != "" {
			steps = append(steps, s)
		}
	}
	return steps, notes, nil
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
	why, err := c.whyItStays(ctx, cluster, service, object, have, all)
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
	ctx context.Context, cluster carrier.Cluster, service *carrier.Service, object objectReference, have *metav1.PartialObjectMetadata, all bool,
) (string, error) {
	kind := object.gvk().GroupKind()
	switch {
	case kept(have):
		return "its annotation " + carrier.PruneAnnotation + " says so", nil
	case isNamespace(kind) && object.Name == service.Key.Namespace && !all:
		return "the service lives in it", nil
	case isNamespace(kind):
		return c.othersIn(ctx, cluster, service, object.Name)
	case kind == carrier.DefinitionKind:
		return c.othersOf(ctx, cluster, service, object)
	}
	return "", nil
}

// othersIn says which other services live in a namespace, or nothing.
func (c *Carrier) othersIn(ctx context.Context, cluster carrier.Cluster, service *carrier.Service, namespace string) (string, error) {
	found := &metav1.PartialObjectMetadataList{}
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := cluster.Client().List(ctx, found, client.InNamespace(namespace)); err != nil {
		return "", fmt.Errorf("find out who lives in the namespace %s: %w", namespace, err)
	}
	for i := range found.Items {
		secret := &found.Items[i]
		switch {
		case secret.Labels[InventoryLabel] != "" && !service.Has(secret.Labels):
			return "the service " + serviceOf(secret.Labels) + " lives in it", nil
		case secret.Labels["owner"] == "helm" && secret.Labels["name"] != "":
			return "the Helm release " + secret.Labels["name"] + " lives in it", nil
		}
	}
	return "", nil
}

// pageSize is how many objects are listed at a time.
const pageSize = 500

// othersOf says which objects of the kind that a definition defines are not of the service, or nothing.
func (c *Carrier) othersOf(ctx context.Context, cluster carrier.Cluster, service *carrier.Service, object objectReference) (string, error) {
	crd, err := get(ctx, cluster.Client(), object)
	if crd == nil || err != nil {
		return "", err
	}
	kind := carrier.DefinedBy(crd)
	found := &metav1.PartialObjectMetadataList{}
	found.SetGroupVersionKind(schema.GroupVersionKind{Group: kind.Group, Version: storedVersion(crd), Kind: kind.Kind + "List"})
	for {
		err := cluster.Client().List(ctx, found, client.Limit(pageSize), client.Continue(found.Continue))
		if isAbsent(err) {
			return "", nil
		}
		if err != nil {
			return "", fmt.Errorf("find out whether there are objects of kind %s: %w", kind, err)
		}
		for i := range found.Items {
			if !service.Has(found.Items[i].Labels) {
				name := strings.TrimPrefix(found.Items[i].Namespace+"/"+found.Items[i].Name, "/")
				return fmt.Sprintf("%s %s, which is not of this service, would go with it", kind.Kind, name), nil
			}
		}
		if found.Continue == "" {
			return "", nil
		}
	}
}

// storedVersion is the version of a definition's objects that is served and stored, or else one that is served.
func storedVersion(crd *unstructured.Unstructured) string {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	served := ""
	for _, version := range versions {
		if field(version, "served") != true {
			continue
		}
		served = textOf(version, "name")
		if field(version, "storage") == true {
			break
		}
	}
	return served
}

// holders says which finalizers an object that is being deleted waits for.
func holders(object client.Object) string {
	finalizers := object.GetFinalizers()
	if len(finalizers) == 0 {
		return ""
	}
	return ", and waits for " + strings.Join(shorten(finalizers), ", ") + " (its finalizers)"
}
