package objectresource

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/patch"
)

// vanishing is when the primary is looked at again while one of its objects is on its way out: sooner, if the object is
// watched.
const vanishing = 2 * time.Second

// resource is the logic of the CRUD resource.
type resource[O any] struct {
	config  Config[O]
	kinds   []kind
	settled *settled
}

// Name implements framework.TypedCRUDResourceOps.
func (r *resource[O]) Name() string { return r.config.Name }

// NewUpdatePatch implements framework.TypedCRUDResourceOps.
func (r *resource[O]) NewUpdatePatch(ctx context.Context, obj O, current, desired State) (*framework.TypedPatch[State], error) {
	if desired.terminating {
		return nil, nil
	}
	owner, err := r.owner(obj)
	if err != nil {
		return nil, err
	}

	var create, update, remove State
	for _, want := range desired.items {
		have, found := current.find(want.key)
		change, err := r.decide(ctx, owner, have, found, want)
		if err != nil {
			return nil, err
		}
		switch change.action {
		case plan.Create:
			create.items = append(create.items, change)
		case plan.Update:
			update.items = append(update.items, change)
		}
	}
	for _, have := range current.items {
		if _, wanted := desired.find(have.key); !wanted && r.deletable(owner, have) {
			remove.items = append(remove.items, deletion(have))
		}
	}
	return patchOf(create, update, remove), nil
}

// NewDeletePatch implements framework.TypedCRUDResourceOps.
func (r *resource[O]) NewDeletePatch(ctx context.Context, obj O, current, _ State) (*framework.TypedPatch[State], error) {
	owner, err := r.owner(obj)
	if err != nil {
		return nil, err
	}
	var remove State
	left := false
	for _, have := range current.items {
		r.settled.forget(have.key)
		c, _ := claimOn(have.content, owner, r.config.Name)
		left = left || c == ours
		if r.deletable(owner, have) {
			remove.items = append(remove.items, deletion(have))
		}
	}
	if left && r.config.WaitForDeletion {
		finalizerskeptcontext.SetKept(ctx)
		requeuecontext.SetAfter(ctx, vanishing)
	}
	return patchOf(State{}, State{}, remove), nil
}

// deletable tells whether the object is the resource's own and not being deleted already.
func (r *resource[O]) deletable(owner Owner, have item) bool {
	c, _ := claimOn(have.content, owner, r.config.Name)
	return c == ours && have.content.GetDeletionTimestamp() == nil
}

func deletion(have item) item {
	have.action = plan.Delete
	have.version = have.content.GetResourceVersion()
	return have
}

// patchOf returns the patch with these parts. What was created last is deleted first.
func patchOf(create, update, remove State) *framework.TypedPatch[State] {
	slices.Reverse(remove.items)
	return patch.Of(func(s State) bool { return len(s.items) > 0 }, create, update, remove)
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

// namespaces returns where the objects of obj may be.
func (r *resource[O]) namespaces(obj O, owner Owner) []string {
	if r.config.Namespaces != nil {
		return r.config.Namespaces(obj)
	}
	if owner.Namespace == "" {
		return []string{metav1.NamespaceAll}
	}
	return []string{owner.Namespace}
}

// claim tells whether the resource may write an object that exists; the error says why not.
func (r *resource[O]) claim(owner Owner, key Key, u *unstructured.Unstructured) error {
	c, reason := claimOn(u, owner, r.config.Name)
	if c == ours || c == free && r.config.Adopt {
		return nil
	}
	return &RefusedError{Object: key, Reason: reason, Adoptable: c == free}
}
