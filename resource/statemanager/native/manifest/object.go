package manifest

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// objectReference names an object in an inventory.
type objectReference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Sensitive is true where no value of the object may be shown, or of what it was before.
	Sensitive bool `json:"sensitive,omitempty"`
	// Outdated is true for an object that is not part of the service any more and has still to be deleted.
	Outdated bool `json:"outdated,omitempty"`
}

func referTo(object client.Object) objectReference {
	apiVersion, kind := object.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	return objectReference{APIVersion: apiVersion, Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

func (r objectReference) gvk() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
}

func (r objectReference) key() client.ObjectKey {
	return client.ObjectKey{Namespace: r.Namespace, Name: r.Name}
}

func (r objectReference) identity() carrier.Identity {
	return carrier.Identity{Kind: r.gvk().GroupKind(), ObjectKey: r.key()}
}

// String returns the object as it stands in messages, such as "Deployment.apps demo/web".
func (r objectReference) String() string {
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + r.Name
	}
	return r.gvk().GroupKind().String() + " " + name
}

// planned names the object in plans.
func (r objectReference) planned() plan.Object {
	return plan.Object{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// get reads an object from the cluster. One whose kind the cluster does not know does not exist.
func get(ctx context.Context, reader client.Reader, r objectReference) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(r.gvk())
	err := reader.Get(ctx, r.key(), object)
	if isAbsent(err) {
		return nil, nil //nolint:nilnil // That there is none is an answer.
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", r, err)
	}
	return object, nil
}

// getMetadata is get for the metadata of an object, in whichever version of its group the cluster has it now.
func getMetadata(ctx context.Context, cluster carrier.Cluster, r objectReference) (*metav1.PartialObjectMetadata, error) {
	gvk := r.gvk()
	mapping, err := cluster.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		mapping, err = cluster.RESTMapper().RESTMapping(gvk.GroupKind())
	}
	if err == nil {
		gvk = mapping.GroupVersionKind
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(gvk)
		if err = cluster.Client().Get(ctx, r.key(), object); err == nil {
			object.SetGroupVersionKind(gvk)
			return object, nil
		}
	}
	if isAbsent(err) {
		return nil, nil //nolint:nilnil // That there is none is an answer.
	}
	return nil, fmt.Errorf("read %s: %w", r, err)
}

func isAbsent(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

func isSecret(object client.Object) bool {
	gvk := object.GetObjectKind().GroupVersionKind()
	return gvk.Group == "" && gvk.Kind == "Secret"
}

func isNamespace(kind schema.GroupKind) bool { return kind == schema.GroupKind{Kind: "Namespace"} }

// asksToStay tells whether an object is to stay when it is not part of its service any more.
func asksToStay(annotations map[string]string) bool {
	return annotations[carrier.PruneAnnotation] == disabled
}
