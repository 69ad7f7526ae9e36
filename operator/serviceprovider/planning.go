package serviceprovider

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/framework"
)

// planned puts config and clusters of an object into the context in which it is planned, as a reconciliation would find them now.
// Nothing is asked for: an object that would have to wait is an error, and one that would be left alone cancels the plan. In a
// reconciliation they are there already.
func (r *APIReconciler[T, C]) planned(ctx context.Context, obj any) (context.Context, error) {
	if _, reconciled := ClustersFrom(ctx); reconciled {
		return ctx, nil
	}
	planned, ok := obj.(T)
	if !ok {
		return nil, fmt.Errorf("%w: the object is a %T", framework.ErrExecutionFailed, obj)
	}
	annotations, leaves := planned.GetAnnotations(), planned.GetDeletionTimestamp() != nil
	cleanedUp := leaves && (!hasAny(planned, r.finalizers.work) || annotations[LetGoAnnotation] != "")
	if annotations[OperationAnnotation] == OperationIgnore || cleanedUp {
		reconciliationcanceledcontext.SetCanceled(ctx)
		return ctx, nil
	}
	if serves, err := r.serves(ctx, planned); err != nil || !serves {
		reconciliationcanceledcontext.SetCanceled(ctx)
		return ctx, err
	}
	config, err := r.configs.wanted(ctx, leaves, r.configs.name())
	if err != nil {
		return nil, err
	}
	found, err := r.have(ctx, ctrl.Request{NamespacedName: keyOf(planned)}, nil, true)
	if err != nil {
		return nil, err
	}
	status := planned.DeepCopyObject().(T)
	return context.WithValue(withContext(ctx, config, found), objectKey{}, status), nil
}
