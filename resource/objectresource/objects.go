package objectresource

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// objects are the objects of one primary.
type objects[O any] struct {
	*resource[O]
	obj   O
	owner Owner
	// marks are those that the objects have: the present one, and then those of former names.
	marks []identity.Mark
	// namespaces are where the objects may be.
	namespaces []string
}

func (r *resource[O]) objects(obj O, marks []identity.Mark) (*objects[O], error) {
	owner, err := r.owner(obj)
	if err != nil {
		return nil, err
	}
	o := &objects[O]{resource: r, obj: obj, owner: owner, marks: marks, namespaces: []string{owner.Namespace}}
	switch {
	case r.config.Namespaces != nil:
		o.namespaces = r.config.Namespaces(obj)
	case owner.Namespace == "":
		o.namespaces = []string{metav1.NamespaceAll}
	}
	return o, nil
}

func (r *resource[O]) backend(
	ctx context.Context, obj O, marks []identity.Mark, _ any,
) (context.Context, keyed.Backend[Key, object], error) {
	o, err := r.objects(obj, marks)
	return ctx, o, err
}

// label is the value of OwnerLabel.
func (r *objects[O]) label(m identity.Mark) string { return m.Hash(r.owner.String()) }

// labels are the values that OwnerLabel has on the objects.
func (r *objects[O]) labels() []string {
	labels := make([]string, 0, len(r.marks))
	for _, m := range r.marks {
		labels = append(labels, r.label(m))
	}
	return labels
}

// owner returns who the objects of obj belong to.
func (r *resource[O]) owner(obj O) (Owner, error) {
	if r.config.Owner != nil {
		owner, err := r.config.Owner(obj)
		if err != nil {
			return Owner{}, fmt.Errorf("find the owner: %w", err)
		}
		return owner, checkOwner(owner)
	}
	o, ok := any(obj).(client.Object)
	if !ok {
		return Owner{}, framework.Permanent(fmt.Errorf("a %T is no client.Object: set Owner", obj))
	}
	gvk, err := r.config.Client.GroupVersionKindFor(o)
	if err != nil {
		return Owner{}, framework.Permanent(fmt.Errorf("find the kind of the primary: %w: register its type in the client's scheme", err))
	}
	owner := Owner{GVK: gvk, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()}
	return owner, checkOwner(owner)
}

func checkOwner(o Owner) error {
	if o.GVK.Kind == "" || o.Name == "" || strings.Contains(o.Namespace, "/") {
		return framework.Permanent(fmt.Errorf("the owner %q must have a kind and a name, and no slash in its namespace", o))
	}
	return nil
}
