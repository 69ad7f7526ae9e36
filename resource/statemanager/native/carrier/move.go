package carrier

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/fluxcd/pkg/ssa"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MoveFields gives a field manager what it has applied to a stored object under former names, so that what it does not apply any more
// is taken away as before. The version is that of the object, which must not have changed since: else it is a conflict. It returns
// the version that the object has now.
func MoveFields(ctx context.Context, c client.Client, object *unstructured.Unstructured, former []string, manager string) (version string, err error) {
	version = object.GetResourceVersion()
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(object.GroupVersionKind())
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), stored); err != nil {
		return "", fmt.Errorf("read its field managers: %w", err)
	}
	var managers []ssa.FieldManager
	for _, name := range former {
		managers = append(managers, ssa.FieldManager{Name: name, ExactMatch: true, OperationType: metav1.ManagedFieldsOperationApply})
	}
	patches, err := ssa.PatchReplaceFieldsManagers(stored, managers, manager)
	if err != nil || len(patches) == 0 {
		return version, err
	}
	// The managers were read after the version, which the API server compares.
	operations := []any{map[string]string{"op": "replace", "path": "/metadata/resourceVersion", "value": version}}
	for _, patch := range patches {
		operations = append(operations, patch)
	}
	body, err := json.Marshal(operations)
	if err != nil {
		return "", fmt.Errorf("encode its field managers: %w", err)
	}
	if err := c.Patch(ctx, stored, client.RawPatch(types.JSONPatchType, body), client.FieldOwner(manager)); err != nil {
		return "", fmt.Errorf("move its field managers: %w", err)
	}
	return stored.GetResourceVersion(), nil
}
