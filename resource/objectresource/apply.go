package objectresource

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/serverside"
)

// ApplyCreateChange implements framework.TypedCRUDResourceOps. An object that appeared since the patch was computed is
// updated if it is the resource's own, as after a crash, and refused otherwise.
func (r *resource[O]) ApplyCreateChange(ctx context.Context, obj O, change State) error {
	owner, err := r.owner(obj)
	if err != nil {
		return err
	}
	for _, it := range change.items {
		u := it.content.DeepCopy()
		u.SetResourceVersion(serverside.AbsentVersion)
		err := r.write(ctx, u)
		if apierrors.IsConflict(err) {
			err = r.overwrite(ctx, owner, it, err)
		}
		if err != nil {
			return requestError("create", it, err)
		}
		r.log(ctx, "created an object", it)
	}
	return nil
}

// overwrite updates an object that was to be created and is there already.
func (r *resource[O]) overwrite(ctx context.Context, owner Owner, it item, conflict error) error {
	existing, exists, err := r.lookUp(ctx, it.key)
	if err != nil {
		return err
	}
	if !exists {
		return conflict
	}
	if err := r.claim(owner, it.key, existing); err != nil {
		return err
	}
	u := it.content.DeepCopy()
	u.SetUID(existing.GetUID())
	return r.write(ctx, u, client.ForceOwnership)
}

// ApplyUpdateChange implements framework.TypedCRUDResourceOps. An object that was deleted or replaced since the patch was
// computed is a conflict, for which apierrors.IsConflict holds: the patch has to be computed anew.
func (r *resource[O]) ApplyUpdateChange(ctx context.Context, _ O, change State) error {
	for _, it := range change.items {
		if err := r.write(ctx, it.content.DeepCopy(), client.ForceOwnership); err != nil {
			return requestError("update", it, err)
		}
		r.log(ctx, "updated an object", it)
	}
	return nil
}

// ApplyDeleteChange implements framework.TypedCRUDResourceOps. What is gone already, or has been replaced by an object of
// the same name, is as good as deleted.
func (r *resource[O]) ApplyDeleteChange(ctx context.Context, _ O, change State) error {
	for _, it := range change.items {
		uid := it.content.GetUID()
		err := r.config.Client.Delete(ctx, it.key.empty(),
			client.Preconditions(metav1.Preconditions{UID: &uid}), client.PropagationPolicy(r.config.Propagation))
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("delete %s: %w", it.key, err)
		}
		r.settled.forget(it.key)
		r.log(ctx, "deleted an object", it)
	}
	return nil
}

// write applies u, which becomes what the server made of it. Another UID than that of the stored object is a conflict.
func (r *resource[O]) write(ctx context.Context, u *unstructured.Unstructured, options ...client.ApplyOption) error {
	options = append(options, client.FieldOwner(r.config.FieldManager))
	return serverside.Apply(ctx, r.config.Client, u, options...)
}

// log says which fields of which object were written, and none of their values.
func (r *resource[O]) log(ctx context.Context, message string, it item) {
	fields := []any{"level", "info", "message", message, "written", it.key.String()}
	if it.action == plan.Update {
		paths := make([]string, 0, len(it.fields))
		for _, f := range it.fields {
			paths = append(paths, f.Path)
		}
		fields = append(fields, "fields", strings.Join(paths, ", "))
	}
	framework.Logger(ctx, r.config.Logger).LogCtx(ctx, fields...)
}
