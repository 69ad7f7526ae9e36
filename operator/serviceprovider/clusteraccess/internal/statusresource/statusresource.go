// Package statusresource is the CRUD resource that writes the status of the primary object.
package statusresource

import (
	"context"
	"fmt"

	"github.com/giantswarm/micrologger"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
)

// DefaultName is the name of the resource.
const DefaultName = "status"

// Config configures the resource.
type Config[O client.Object] struct {
	// Name is for one of several resources that write a status. Default: DefaultName.
	Name string
	// Client writes.
	Client client.Client
	// Logger is told what was written.
	Logger micrologger.Logger
	// Desired changes the status of the object, which is its own, to what it should be. It is called in deletions, too, and
	// again for a newer object in the same reconciliation.
	Desired func(ctx context.Context, obj O) error
	// Current returns the newest state of the object, for a status that was written before in the same reconciliation.
	// Default: the object as it is.
	Current func(ctx context.Context, obj O) O
	// Written is called when another status was written. Default: nothing happens.
	Written func(ctx context.Context, before, after O)
}

// New returns the resource. It writes only the fields that change, only when there are any, and never over a status that it
// has not seen.
func New[O client.Object](config Config[O]) (framework.Resource, error) {
	if config.Name == "" {
		config.Name = DefaultName
	}
	if config.Current == nil {
		config.Current = func(_ context.Context, obj O) O { return obj }
	}
	return framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[O, change[O]]{
		Logger: config.Logger, Ops: &ops[O]{config},
	})
}

// change is an object with its status as it is, and as it should be.
type change[O client.Object] struct{ before, after O }

// Changes implements plan.Changer. Times of conditions are left out: they say when it was written.
func (c change[O]) Changes() []plan.Change {
	if any(c.before) == nil || any(c.after) == nil {
		return nil
	}
	gvk := c.before.GetObjectKind().GroupVersionKind()
	return []plan.Change{{
		Action: plan.Update,
		Object: plan.Object{
			APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: c.before.GetNamespace(), Name: c.before.GetName(), UID: c.before.GetUID(),
		},
		Fields: plan.Diff(timeless(c.before), timeless(c.after)),
	}}
}

// timeless is the status of an object without the times of its conditions.
func timeless(obj client.Object) map[string]any {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil
	}
	status, _ := fields["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok {
			delete(condition, "lastTransitionTime")
		}
	}
	return map[string]any{"status": status}
}

type ops[O client.Object] struct{ Config[O] }

// Name implements framework.TypedCRUDResourceOps.
func (o *ops[O]) Name() string { return o.Config.Name }

// GetCurrentState implements framework.TypedCRUDResourceOps.
func (o *ops[O]) GetCurrentState(ctx context.Context, obj O) (change[O], error) {
	return change[O]{before: o.Current(ctx, obj)}, nil
}

// GetDesiredState implements framework.TypedCRUDResourceOps.
func (o *ops[O]) GetDesiredState(ctx context.Context, obj O) (change[O], error) {
	after := o.Current(ctx, obj).DeepCopyObject().(O)
	return change[O]{after: after}, o.Desired(ctx, after)
}

// NewUpdatePatch implements framework.TypedCRUDResourceOps.
func (o *ops[O]) NewUpdatePatch(_ context.Context, _ O, current, desired change[O]) (*framework.TypedPatch[change[O]], error) {
	if equality.Semantic.DeepEqual(current.before, desired.after) {
		return nil, nil
	}
	patch := framework.NewTypedPatch[change[O]]()
	patch.SetUpdateChange(change[O]{before: current.before, after: desired.after})
	return patch, nil
}

// NewDeletePatch implements framework.TypedCRUDResourceOps.
func (o *ops[O]) NewDeletePatch(ctx context.Context, obj O, current, desired change[O]) (*framework.TypedPatch[change[O]], error) {
	return o.NewUpdatePatch(ctx, obj, current, desired)
}

// ApplyCreateChange implements framework.TypedCRUDResourceOps. A status is never created.
func (o *ops[O]) ApplyCreateChange(context.Context, O, change[O]) error { return nil }

// ApplyUpdateChange implements framework.TypedCRUDResourceOps. When somebody else has changed the object meanwhile, but not what
// is asked for, the status is made anew for the newest one.
func (o *ops[O]) ApplyUpdateChange(ctx context.Context, _ O, c change[O]) error {
	key, before, after := client.ObjectKeyFromObject(c.after), c.before, c.after
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		written := after.DeepCopyObject().(O)
		err := o.Client.Status().Patch(ctx, written, client.MergeFromWithOptions(before.DeepCopyObject().(O), client.MergeFromWithOptimisticLock{}))
		if err == nil && o.Written != nil {
			o.Written(ctx, before, written)
		}
		if !apierrors.IsConflict(err) {
			return err
		}
		newest := before.DeepCopyObject().(O)
		if getErr := o.Client.Get(ctx, key, newest); getErr != nil {
			return getErr
		}
		if newest.GetUID() != before.GetUID() || newest.GetGeneration() != before.GetGeneration() {
			return err
		}
		before, after = newest, newest.DeepCopyObject().(O)
		if desireErr := o.Desired(ctx, after); desireErr != nil {
			return desireErr
		}
		if equality.Semantic.DeepEqual(before, after) {
			return nil
		}
		return err
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of %s: %w", key, err)
	}
	return nil
}

// ApplyDeleteChange implements framework.TypedCRUDResourceOps. A status is never deleted.
func (o *ops[O]) ApplyDeleteChange(context.Context, O, change[O]) error { return nil }
