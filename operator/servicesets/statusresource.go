package servicesets

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// statusName is the name of the resource that writes the status. It comes before the one that writes ServiceSets: what stops
// that one has to stand in the status too.
const statusName = "status"

// access is how the status S of objects O is reached.
type access[O client.Object, S any] struct {
	kind       string
	status     func(O) *S
	conditions func(*S) *[]metav1.Condition
	// describe says in words what a status tells, by field, without times.
	describe func(*S) map[string]string
}

var clusterAccess = access[*v1alpha1.ClusterDeployment, v1alpha1.ClusterDeploymentStatus]{
	kind:       v1alpha1.ClusterDeploymentKind,
	status:     func(cd *v1alpha1.ClusterDeployment) *v1alpha1.ClusterDeploymentStatus { return &cd.Status },
	conditions: func(s *v1alpha1.ClusterDeploymentStatus) *[]metav1.Condition { return &s.Conditions },
	describe:   describeCluster,
}

var serviceAccess = access[*v1alpha1.MultiClusterService, v1alpha1.MultiClusterServiceStatus]{
	kind:       v1alpha1.MultiClusterServiceKind,
	status:     func(mcs *v1alpha1.MultiClusterService) *v1alpha1.MultiClusterServiceStatus { return &mcs.Status },
	conditions: func(s *v1alpha1.MultiClusterServiceStatus) *[]metav1.Condition { return &s.Conditions },
	describe:   describeService,
}

// statusChange is a status, and what it replaces.
type statusChange[S any] struct {
	object        plan.Object
	before, after *S
	describe      func(*S) map[string]string
}

// Changes implements plan.Changer.
func (c statusChange[S]) Changes() []plan.Change {
	if c.after == nil {
		return nil
	}
	before, after := c.describe(c.before), c.describe(c.after)
	paths := maps.Clone(before)
	maps.Copy(paths, after)
	change := plan.Change{Action: plan.Update, Object: c.object}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if before[path] != after[path] {
			change.Fields = append(change.Fields, plan.FieldChange{Path: path, Old: text(before[path]), New: text(after[path])})
		}
	}
	return []plan.Change{change}
}

// text is a value in a plan: nothing for what is empty.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// statusResource is the logic of the resource.
type statusResource[O client.Object, S any] struct {
	access[O, S]
	client   client.Client
	sources  *sources
	recorder framework.EventRecorder
	// compute returns the status, or nil for one that stays as it is. Conditions of the same status keep their times.
	compute func(ctx context.Context, obj O) (*S, error)
}

func newStatusResource[O client.Object, S any](
	d *operator.Dependencies, s *sources, a access[O, S], compute func(ctx context.Context, obj O) (*S, error),
) (framework.Resource, error) {
	return framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[O, statusChange[S]]{
		Logger: d.Logger, Ops: &statusResource[O, S]{a, d.Client, s, d.Recorder, compute},
	})
}

// Name implements framework.TypedCRUDResourceOps.
func (r *statusResource[O, S]) Name() string { return statusName }

// GetCurrentState implements framework.TypedCRUDResourceOps.
func (r *statusResource[O, S]) GetCurrentState(_ context.Context, obj O) (statusChange[S], error) {
	return statusChange[S]{after: r.status(obj)}, nil
}

// GetDesiredState implements framework.TypedCRUDResourceOps.
func (r *statusResource[O, S]) GetDesiredState(ctx context.Context, obj O) (statusChange[S], error) {
	status, err := r.compute(ctx, obj)
	return statusChange[S]{after: status}, err
}

// NewUpdatePatch implements framework.TypedCRUDResourceOps.
func (r *statusResource[O, S]) NewUpdatePatch(_ context.Context, obj O, current, desired statusChange[S]) (*framework.TypedPatch[statusChange[S]], error) {
	if desired.after == nil || equality.Semantic.DeepEqual(current.after, desired.after) {
		return nil, nil
	}
	patch := framework.NewTypedPatch[statusChange[S]]()
	patch.SetUpdateChange(statusChange[S]{
		object: plan.Object{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: r.kind, Namespace: obj.GetNamespace(), Name: obj.GetName(),
		},
		before: current.after, after: desired.after, describe: r.describe,
	})
	return patch, nil
}

// NewDeletePatch implements framework.TypedCRUDResourceOps. A status says what a deletion waits for.
func (r *statusResource[O, S]) NewDeletePatch(ctx context.Context, obj O, current, desired statusChange[S]) (*framework.TypedPatch[statusChange[S]], error) {
	return r.NewUpdatePatch(ctx, obj, current, desired)
}

// ApplyCreateChange implements framework.TypedCRUDResourceOps. A status is never created.
func (r *statusResource[O, S]) ApplyCreateChange(context.Context, O, statusChange[S]) error {
	return nil
}

// ApplyUpdateChange implements framework.TypedCRUDResourceOps. An object that is newer than the source's, and has the same
// spec, gets the same status; only the times of conditions may have to be others.
func (r *statusResource[O, S]) ApplyUpdateChange(ctx context.Context, obj O, change statusChange[S]) error {
	generation, uid := obj.GetGeneration(), obj.GetUID()
	after := change.after
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		before := *r.conditions(r.status(obj))
		err := writeStatus(ctx, r.client, r.sources, r.access, obj, after)
		if err == nil {
			r.tell(obj, before, *r.conditions(after))
			return nil
		}
		if !apierrors.IsConflict(err) {
			return err
		}
		if getErr := r.client.Get(ctx, client.ObjectKeyFromObject(obj), obj); getErr != nil {
			return getErr
		}
		if obj.GetGeneration() != generation || obj.GetUID() != uid {
			return err
		}
		var computeErr error
		if after, computeErr = r.compute(ctx, obj); computeErr != nil {
			return computeErr
		}
		if after == nil || equality.Semantic.DeepEqual(r.status(obj), after) {
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
func (r *statusResource[O, S]) ApplyDeleteChange(context.Context, O, statusChange[S]) error {
	return nil
}

// writeStatus writes a status over that of an object, provided that it is the newest one.
func writeStatus[O client.Object, S any](ctx context.Context, c client.Client, s *sources, a access[O, S], obj O, status *S) error {
	changed := obj.DeepCopyObject().(O)
	*a.status(changed) = *status
	patch := client.MergeFromWithOptions(obj, client.MergeFromWithOptimisticLock{})
	if err := c.Status().Patch(ctx, changed, patch); err != nil {
		return fmt.Errorf("write the status of %s %s: %w", a.kind, client.ObjectKeyFromObject(obj), err)
	}
	s.awaitEcho(ctx, changed)
	return nil
}
