package objectresource

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/framework/plan"
)

// Key names an object of the cluster. It is comparable.
type Key struct {
	// GVK is the kind, with the version in which the object is read and written.
	GVK schema.GroupVersionKind
	// Namespace is empty for kinds without namespaces.
	Namespace string
	Name      string
}

// String returns the key as it stands in errors, such as "Deployment.apps default/web".
func (k Key) String() string {
	return k.kind() + " " + k.place()
}

// kind is the kind without its version, such as "Deployment.apps".
func (k Key) kind() string { return k.GVK.GroupKind().String() }

// place is the namespace and name of the object.
func (k Key) place() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// unversioned is the same for all versions in which an object is served.
func (k Key) unversioned() Key {
	k.GVK.Version = ""
	return k
}

// object is the key as it stands in a plan.
func (k Key) object() plan.Object {
	return plan.Object{APIVersion: k.GVK.GroupVersion().String(), Kind: k.GVK.Kind, Namespace: k.Namespace, Name: k.Name}
}

// empty returns an object of this key without anything else.
func (k Key) empty() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(k.GVK)
	u.SetNamespace(k.Namespace)
	u.SetName(k.Name)
	return u
}

func keyOf(gvk schema.GroupVersionKind, u *unstructured.Unstructured) Key {
	return Key{GVK: gvk, Namespace: u.GetNamespace(), Name: u.GetName()}
}
