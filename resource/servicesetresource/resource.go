package servicesetresource

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// resource is the logic of the CRUD resource.
type resource[O any] struct{ config Config[O] }

// Name implements framework.TypedCRUDResourceOps.
func (r *resource[O]) Name() string { return r.config.Name }

// GetCurrentState implements framework.TypedCRUDResourceOps. What is there is part of the operations.
func (r *resource[O]) GetCurrentState(context.Context, O) (State, error) { return State{}, nil }

// GetDesiredState implements framework.TypedCRUDResourceOps.
func (r *resource[O]) GetDesiredState(ctx context.Context, obj O) (State, error) {
	operations, err := r.config.Compute(ctx, obj)
	return State{operations}, err
}

// NewUpdatePatch implements framework.TypedCRUDResourceOps.
func (r *resource[O]) NewUpdatePatch(_ context.Context, _ O, _, desired State) (*framework.TypedPatch[State], error) {
	return patchOf(desired), nil
}

// NewDeletePatch implements framework.TypedCRUDResourceOps. The deletion of the primary waits until all sets are gone.
func (r *resource[O]) NewDeletePatch(ctx context.Context, _ O, _, desired State) (*framework.TypedPatch[State], error) {
	if len(desired.operations) > 0 {
		finalizerskeptcontext.SetKept(ctx)
	}
	return patchOf(desired), nil
}

// patchOf sorts operations by what they do.
func patchOf(desired State) *framework.TypedPatch[State] {
	patch := framework.NewTypedPatch[State]()
	any := false
	for operation, set := range map[v1alpha1.ServiceSetOperation]func(State){
		v1alpha1.ServiceSetOperationCreate: patch.SetCreateChange,
		v1alpha1.ServiceSetOperationUpdate: patch.SetUpdateChange,
		v1alpha1.ServiceSetOperationDelete: patch.SetDeleteChange,
	} {
		part := slices.DeleteFunc(slices.Clone(desired.operations), func(o serviceset.OwnerOperation) bool {
			return o.Operation == nil || o.Operation.Operation != operation
		})
		if len(part) > 0 {
			set(State{part})
			any = true
		}
	}
	if !any {
		return nil
	}
	return patch
}

// ApplyCreateChange implements framework.TypedCRUDResourceOps.
func (r *resource[O]) ApplyCreateChange(ctx context.Context, _ O, change State) error {
	return each(change, func(o serviceset.OwnerOperation) error {
		return r.config.Client.Create(ctx, o.Operation.ServiceSet.DeepCopy())
	})
}

// ApplyUpdateChange implements framework.TypedCRUDResourceOps.
func (r *resource[O]) ApplyUpdateChange(ctx context.Context, _ O, change State) error {
	return each(change, func(o serviceset.OwnerOperation) error {
		return r.config.Client.Update(ctx, o.Operation.ServiceSet.DeepCopy())
	})
}

// ApplyDeleteChange implements framework.TypedCRUDResourceOps.
func (r *resource[O]) ApplyDeleteChange(ctx context.Context, _ O, change State) error {
	return each(change, func(o serviceset.OwnerOperation) error {
		set := o.Operation.Before
		uid := set.GetUID()
		err := r.config.Client.Delete(ctx, set.DeepCopy(), client.Preconditions(metav1.Preconditions{UID: &uid}))
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// each carries out all operations, also when one fails.
func each(change State, apply func(serviceset.OwnerOperation) error) error {
	var errs []error
	for _, o := range change.operations {
		if err := apply(o); err != nil {
			errs = append(errs, fmt.Errorf("%s ServiceSet %s: %w", o.Operation.Operation, o.Key, err))
		}
	}
	return errors.Join(errs...)
}
