package carrier

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/internal/serverside"
)

// FieldManager names a field manager, and how it has written fields.
type FieldManager struct {
	Name      string
	Operation metav1.ManagedFieldsOperationType
}

// MoveFields gives a field manager what it has applied to a stored object under former names, so that what it does not apply any more
// is taken away as before. The version is that of the object, which must not have changed since: else it is a conflict. It returns
// the version that the object has now.
func MoveFields(ctx context.Context, c client.Client, object *unstructured.Unstructured, former []string, manager string) (version string, err error) {
	var managers []FieldManager
	for _, name := range former {
		managers = append(managers, FieldManager{name, metav1.ManagedFieldsOperationApply})
	}
	return takeFields(ctx, c, object, managers, manager)
}

// TakeOver puts the marks of a service onto an object of another owner, and moves fields from some field managers to another one. An
// object that was changed since it was seen is a conflict.
func TakeOver(
	ctx context.Context, c client.Client, service *Service, seen *unstructured.Unstructured, from []FieldManager, manager string,
) error {
	version, err := takeFields(ctx, c, seen, from, manager)
	if err != nil {
		return err
	}
	marking := Marking(seen, version, LabelsOf(service), map[string]string{OwnerAnnotation: service.Owner.String()})
	return c.Patch(ctx, seen.DeepCopy(), marking, client.FieldOwner(manager))
}

// takeFields is MoveFields for what any field managers have, by applying or otherwise.
func takeFields(
	ctx context.Context, c client.Client, object *unstructured.Unstructured, managers []FieldManager, manager string,
) (version string, err error) {
	version = object.GetResourceVersion()
	if len(managers) == 0 {
		return version, nil
	}
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(object.GroupVersionKind())
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), stored); err != nil {
		return "", fmt.Errorf("read its field managers: %w", err)
	}
	others := func(e metav1.ManagedFieldsEntry) bool {
		return slices.Contains(managers, FieldManager{e.Manager, e.Operation})
	}
	moved, err := serverside.TakeFields(stored.GetManagedFields(), others, manager)
	if moved == nil || err != nil {
		return version, err
	}
	// The managers were read after the version, which the API server compares.
	body, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/resourceVersion", "value": version},
		{"op": "replace", "path": "/metadata/managedFields", "value": moved},
	})
	if err != nil {
		return "", fmt.Errorf("encode its field managers: %w", err)
	}
	if err := c.Patch(ctx, stored, client.RawPatch(types.JSONPatchType, body), client.FieldOwner(manager)); err != nil {
		return "", fmt.Errorf("move its field managers: %w", err)
	}
	return stored.GetResourceVersion(), nil
}

// ManagersWith returns the field managers that have one of some fields of an object, given as metadata.managedFields has them, but for what a manager
// has applied itself.
func ManagersWith(object *unstructured.Unstructured, manager string, fields ...[]string) (found []FieldManager) {
	for _, entry := range object.GetManagedFields() {
		var all map[string]any
		own := entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply
		if own || entry.Subresource != "" || entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &all) != nil {
			continue
		}
		has := func(path []string) bool { _, ok, _ := unstructured.NestedFieldNoCopy(all, path...); return ok }
		if slices.ContainsFunc(fields, has) {
			found = append(found, FieldManager{entry.Manager, entry.Operation})
		}
	}
	return found
}
