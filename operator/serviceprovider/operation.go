package serviceprovider

import (
	"context"
	"fmt"

	"github.com/operatorkit/operatorkit/framework"
)

// OperationAnnotation asks the runtime for something, on an object. Other values than those below count for nothing, and an
// event says so.
const OperationAnnotation = "serviceprovider.operatorkit.io/operation"

// The values of OperationAnnotation.
const (
	// OperationIgnore leaves the object alone, its deletion included, until the annotation goes.
	OperationIgnore = "ignore"
	// OperationReconcile reconciles the object now. The annotation is dropped.
	OperationReconcile = "reconcile"
)

// leftAlone tells whether an annotation asks to leave the object alone.
func (r *APIReconciler[T, C]) leftAlone(o *object[T]) bool {
	annotations := o.raw.GetAnnotations()
	return annotations[OperationAnnotation] == OperationIgnore ||
		annotations[framework.PausedAnnotation] == "true" || annotations[framework.ClusterPausedAnnotation] == "true"
}

// dropOperation takes the annotation away that asks for a reconciliation.
func (r *APIReconciler[T, C]) dropOperation(ctx context.Context, o *object[T]) error {
	switch operation := o.raw.GetAnnotations()[OperationAnnotation]; operation {
	case "":
		return nil
	case OperationReconcile:
		err := r.patchMetadata(ctx, o, map[string]any{"annotations": map[string]any{OperationAnnotation: nil}})
		if err != nil {
			return fmt.Errorf("drop annotation %s: %w", OperationAnnotation, err)
		}
		return nil
	default:
		r.warn(ctx, o, ReasonInvalidAnnotation, "annotation %s: %q is neither %q nor %q", OperationAnnotation, operation, OperationIgnore, OperationReconcile)
		return nil
	}
}
