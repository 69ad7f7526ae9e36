package serviceprovider

import (
	"context"
	"errors"
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
	config, err := r.configs.look(ctx, leaves)
	if err != nil {
		return nil, err
	}
	found, err := r.have(ctx, ctrl.Request{NamespacedName: keyOf(planned)})
	if err != nil {
		return nil, err
	}
	status := planned.DeepCopyObject().(T)
	return context.WithValue(withContext(ctx, config, found), objectKey{}, status), nil
}

// have returns the clusters that an object has access to already.
func (r *APIReconciler[T, C]) have(ctx context.Context, request ctrl.Request) (found ClusterContext, err error) {
	for _, a := range r.accesses {
		secret, w, err := r.granted(ctx, request, a)
		if err == nil && w != nil {
			err = errors.New(w.message)
		}
		if err != nil {
			return found, err
		}
		c, err := a.cluster(ctx, request)
		if err != nil {
			return found, fmt.Errorf("get access to the %s cluster: %w", a.id, err)
		}
		a.put(&found, c, secret)
	}
	return found, nil
}
