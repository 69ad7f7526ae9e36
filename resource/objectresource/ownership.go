package objectresource

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// ownership is by what the objects are known that a resource of a framework has for one primary.
type ownership struct {
	owner Owner
	scope *identity.Scope
	// marks are those that the objects have: the present one, and then those of former names.
	marks []identity.Mark
}

// ownership returns by what the objects are known that the resource has for obj.
func (r *resource[O]) ownership(ctx context.Context, obj O) (ownership, error) {
	owner, err := r.owner(obj)
	if err != nil {
		return ownership{}, err
	}
	scope := identity.From(ctx)
	return ownership{owner: owner, scope: scope, marks: scope.Marks(r.config.Name, r.config.FormerNames)}, nil
}

// mark is the present one.
func (o ownership) mark() identity.Mark { return o.marks[0] }

// label is the value of OwnerLabel.
func (o ownership) label(m identity.Mark) string { return m.Hash(o.owner.String()) }

// labels are the values that OwnerLabel has on the objects.
func (o ownership) labels() []string {
	labels := make([]string, 0, len(o.marks))
	for _, m := range o.marks {
		labels = append(labels, o.label(m))
	}
	return labels
}

// cleansUp tells whether an object that nobody desires is the resource's to delete: it is its own, and no other resource of the set
// looks after what carries its mark, or has just taken it over.
func (o ownership) cleansUp(ctx context.Context, have item) bool {
	c := o.claimOn(have.content)
	return c.Holder == keyed.Ours && !o.scope.LeavesKind(cmp.Or(c.Former, o.mark()), have.key.kind()) && !identity.Taken(ctx, have.key.String())
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
