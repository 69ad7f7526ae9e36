package objectresource

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/informer"
)

// What tells whose an object is. Every object that was applied carries these.
const (
	// OwnerLabel is the label by which the objects of one primary and one resource are found. Its value is a hash of
	// the primary and the identity.Mark of the resource, which is also the value of the index OwnerIndex.
	OwnerLabel = "operatorkit.io/owner"
	// OperatorLabel is the label by which all objects of an operator are found: identity.LabelValue of its name.
	OperatorLabel = "operatorkit.io/operator"
	// OwnerAnnotation names the primary for people and for OwnerMap: kind.group/namespace/name.
	OwnerAnnotation = "operatorkit.io/owner"
	// OperatorAnnotation, FrameworkAnnotation and ResourceAnnotation are the names of who applied the object.
	OperatorAnnotation  = "operatorkit.io/operator"
	FrameworkAnnotation = "operatorkit.io/framework"
	ResourceAnnotation  = "operatorkit.io/resource"
	// AppliedAnnotation is the namespace and name of the object itself, by which a copy of it is told apart, and a
	// hash of the paths of its applied fields. No values go into the hash: it says nothing about a Secret.
	AppliedAnnotation = "operatorkit.io/applied"
)

// Owner is the primary that objects belong to.
type Owner struct {
	// GVK is the kind of the primary.
	GVK schema.GroupVersionKind
	// Namespace is empty for kinds without namespaces.
	Namespace string
	Name      string
	// UID is needed for owner references: without it, objects get none, and are not garbage-collected with the
	// primary. Leave it empty for primaries that are not Kubernetes objects of the same cluster.
	UID types.UID
}

// String returns the owner as it stands in OwnerAnnotation. The version of the kind is left out, so that it can change.
func (o Owner) String() string {
	return o.GVK.GroupKind().String() + "/" + o.Namespace + "/" + o.Name
}

// reference returns an owner reference for an object in namespace, or false when there can't be one: an owner with a
// namespace can only have objects in that namespace.
func (o Owner) reference(namespace string) (map[string]any, bool) {
	if o.UID == "" || o.Namespace != "" && o.Namespace != namespace {
		return nil, false
	}
	return map[string]any{
		"apiVersion": o.GVK.GroupVersion().String(),
		"kind":       o.GVK.Kind,
		"name":       o.Name,
		"uid":        string(o.UID),
		"controller": true,
	}, true
}

// isController tells whether ref, the controller reference of an object in namespace, means this owner. Its UID may be
// that of a predecessor of the same name.
func (o Owner) isController(ref *metav1.OwnerReference, namespace string) bool {
	if o.UID != "" && ref.UID == o.UID {
		return true
	}
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && gv.Group == o.GVK.Group && ref.Kind == o.GVK.Kind && ref.Name == o.Name &&
		(o.Namespace == "" || o.Namespace == namespace)
}

// OwnerIndex is the name of the index that a Store needs.
const OwnerIndex = OwnerLabel

// OwnerIndexers returns the index that a Store needs, for informer.KubernetesConfig.
func OwnerIndexers() map[string]informer.IndexFunc {
	return map[string]informer.IndexFunc{OwnerIndex: func(obj any) []string {
		if o, ok := obj.(informer.Meta); ok {
			if owner := o.GetLabels()[OwnerLabel]; owner != "" {
				return []string{owner}
			}
		}
		return nil
	}}
}

// OwnerMap returns the map function for a watch of objects that a resource of this package applied: it names their
// primary, if that is of the given kind. Objects without OwnerAnnotation concern nobody.
func OwnerMap(primary schema.GroupKind) informer.MapFunc {
	return func(_ context.Context, obj any) []informer.Key {
		o, ok := obj.(informer.Meta)
		if !ok {
			return nil
		}
		kind, namespace, name, err := parseOwner(o.GetAnnotations()[OwnerAnnotation])
		if err != nil || kind != primary {
			return nil
		}
		return []informer.Key{{Namespace: namespace, Name: name}}
	}
}

// parseOwner reads what Owner.String wrote.
func parseOwner(s string) (kind schema.GroupKind, namespace, name string, err error) {
	parts := strings.SplitN(s, "/", 3)
	if len(parts) != 3 || parts[0] == "" || parts[2] == "" {
		return kind, "", "", fmt.Errorf("%q is not of the form kind.group/namespace/name", s)
	}
	return schema.ParseGroupKind(parts[0]), parts[1], parts[2], nil
}
