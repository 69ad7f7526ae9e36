package statuses

import (
	"context"
	"fmt"

	"github.com/giantswarm/micrologger"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
)

// ResourceName is the name of the resource.
const ResourceName = "status"

// Config configures a resource for the status S of objects O. All is required.
type Config[O client.Object, S any] struct {
	Access[O, S]
	// Client writes, and Reader reads the sources.
	Client client.Client
	Reader client.Reader
	Logger micrologger.Logger
	// Compute returns the status, or nil for one that stays as it is. Conditions of the same status keep their times.
	Compute func(ctx context.Context, obj O) (*S, error)
	// Tell is told of each status that was written, with the one that it replaced. The context is that of the reconciliation.
	Tell func(ctx context.Context, obj O, before, after *S)
}

// resource is the logic of the resource.
type resource[O client.Object, S any] struct{ Config[O, S] }

// New returns the resource.
func New[O client.Object, S any](config Config[O, S]) (framework.Resource, error) {
	return framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[O, Change[S]]{
		Logger: config.Logger, Ops: &resource[O, S]{config},
	})
}

// Name implements framework.TypedCRUDResourceOps.
func (r *resource[O, S]) Name() string { return ResourceName }

// GetCurrentState implements framework.TypedCRUDResourceOps.
func (r *resource[O, S]) GetCurrentState(_ context.Context, obj O) (Change[S], error) {
	return Change[S]{after: r.Status(obj)}, nil
}

// GetDesiredState implements framework.TypedCRUDResourceOps.
func (r *resource[O, S]) GetDesiredState(ctx context.Context, obj O) (Change[S], error) {
	status, err := r.Compute(ctx, obj)
	return Change[S]{after: status}, err
}

// NewUpdatePatch implements framework.TypedCRUDResourceOps.
func (r *resource[O, S]) NewUpdatePatch(_ context.Context, obj O, current, desired Change[S]) (*framework.TypedPatch[Change[S]], error) {
	if desired.after == nil || equality.Semantic.DeepEqual(current.after, desired.after) {
		return nil, nil
	}
	patch := framework.NewTypedPatch[Change[S]]()
	patch.SetUpdateChange(Change[S]{
		object: plan.Object{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName()},
		before: current.after, after: desired.after, describe: r.Describe,
	})
	return patch, nil
}

// NewDeletePatch implements framework.TypedCRUDResourceOps. A status says what a deletion waits for.
func (r *resource[O, S]) NewDeletePatch(ctx context.Context, obj O, current, desired Change[S]) (*framework.TypedPatch[Change[S]], error) {
	return r.NewUpdatePatch(ctx, obj, current, desired)
}

// ApplyCreateChange implements framework.TypedCRUDResourceOps. A status is never created.
func (r *resource[O, S]) ApplyCreateChange(context.Context, O, Change[S]) error { return nil }

// ApplyUpdateChange implements framework.TypedCRUDResourceOps. An object that is newer than the source's, and has the same
// spec, gets the same status; only the times of conditions may have to be others.
func (r *resource[O, S]) ApplyUpdateChange(ctx context.Context, obj O, change Change[S]) error {
	generation, uid := obj.GetGeneration(), obj.GetUID()
	after := change.after
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		before := r.Status(obj)
		err := Write(ctx, r.Client, r.Reader, r.Access, obj, after)
		if err == nil {
			r.Tell(ctx, obj, before, after)
			return nil
		}
		if !apierrors.IsConflict(err) {
			return err
		}
		if getErr := r.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); getErr != nil {
			return getErr
		}
		if obj.GetGeneration() != generation || obj.GetUID() != uid {
			return err
		}
		var computeErr error
		if after, computeErr = r.Compute(ctx, obj); computeErr != nil {
			return computeErr
		}
		if after == nil || equality.Semantic.DeepEqual(r.Status(obj), after) {
			return nil
		}
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// ApplyDeleteChange implements framework.TypedCRUDResourceOps. A status is never deleted.
func (r *resource[O, S]) ApplyDeleteChange(context.Context, O, Change[S]) error { return nil }

// Write writes a status over that of an object, provided that it is the newest one. It returns when the sources have it.
func Write[O client.Object, S any](ctx context.Context, c client.Client, reader client.Reader, a Access[O, S], obj O, status *S) error {
	changed := obj.DeepCopyObject().(O)
	*a.Status(changed) = *status
	patch := client.MergeFromWithOptions(obj, client.MergeFromWithOptimisticLock{})
	if err := c.Status().Patch(ctx, changed, patch); err != nil {
		return fmt.Errorf("write the status of %s %s: %w", a.Kind, client.ObjectKeyFromObject(obj), err)
	}
	AwaitEcho(ctx, reader, changed)
	return nil
}
