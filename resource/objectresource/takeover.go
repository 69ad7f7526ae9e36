package objectresource

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/resource/internal/serverside"
)

// An object under a former name is taken over in two writes. The first one makes the fields that were applied under the former name
// the resource's, and changes nothing else; by the second one it is applied as any other, and gets its mark. So it can be begun again
// after each of them, and fields that are no longer desired go away.

// manager is the name under which fields are applied.
func (r *objects[O]) manager() string {
	return cmp.Or(r.config.FieldManager, r.marks[0].FieldManager())
}

// managerOf is the one under which applying u changes what it changes once u is taken over.
func (r *objects[O]) managerOf(u *unstructured.Unstructured) string {
	entries := u.GetManagedFields()
	if i := slices.IndexFunc(entries, r.former); i >= 0 {
		return entries[i].Manager
	}
	return r.manager()
}

// former tells whether an entry is of what was applied under a former name.
func (r *objects[O]) former(e metav1.ManagedFieldsEntry) bool {
	applied := e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "" && e.Manager != r.manager()
	wrote := func(m identity.Mark) bool { return m.FieldManager() == e.Manager }
	return applied && slices.ContainsFunc(r.marks[1:], wrote)
}

// takeOver prepares the first of the writes by which u, which has the mark of a former name, is taken over.
func (r *objects[O]) takeOver(u *unstructured.Unstructured, change *item) error {
	moved, err := serverside.TakeFields(u.GetManagedFields(), r.former, r.manager())
	if err != nil {
		return fmt.Errorf("move the fields of %s: %w", change.Key, err)
	}
	if moved == nil {
		return nil
	}
	change.Thing.move, err = json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": moved},
		{"op": "replace", "path": "/metadata/uid", "value": u.GetUID()},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": u.GetResourceVersion()},
	})
	return err
}

// move carries out the first of the writes by which an object is taken over, if it takes one, and returns what the second applies.
func (r *objects[O]) move(ctx context.Context, it item) (*unstructured.Unstructured, error) {
	u := it.Thing.content.DeepCopy()
	if it.Thing.move == nil {
		return u, nil
	}
	moved := it.Thing.key.empty()
	patch := client.RawPatch(types.JSONPatchType, it.Thing.move)
	err := r.config.Client.Patch(ctx, moved, patch, client.FieldOwner(r.manager()))
	if apierrors.IsNotFound(err) {
		resource := schema.GroupResource{Group: it.Key.GVK.Group, Resource: it.Key.GVK.Kind}
		return nil, apierrors.NewConflict(resource, it.Key.Name, err)
	}
	if err != nil {
		return nil, err
	}
	u.SetResourceVersion(moved.GetResourceVersion())
	return u, nil
}
