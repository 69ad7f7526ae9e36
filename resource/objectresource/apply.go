package objectresource

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/internal/absent"
	"github.com/operatorkit/operatorkit/resource/internal/serverside"
)

// Apply implements keyed.Backend. An object that appeared, or was changed or replaced, since the
// change was computed is a conflict, for which apierrors.IsConflict holds: the patch has to be
// computed anew. What is gone already is as good as deleted.
func (r *objects[O]) Apply(ctx context.Context, it item) (done string, err error) {
	action := string(it.Change.Action)
	switch {
	case it.Change.Action == plan.Create:
		done, err = "created an object", r.create(ctx, it)
	case it.Change.Action == plan.Delete:
		done, err = "deleted an object", r.remove(ctx, it, r.config.Propagation)
	case it.Thing.replaces:
		action, done, err = "replace", "replaced an object", r.replace(ctx, it)
	default:
		done, err = "updated an object", r.update(ctx, it)
	}
	return done, requestError(action, it, err)
}

// create applies an object that must not exist.
func (r *objects[O]) create(ctx context.Context, it item) error {
	u := it.Thing.content.DeepCopy()
	u.SetResourceVersion(absent.Version)
	if err := r.writeAs(ctx, r.manager(), u); err != nil {
		return err
	}
	r.tellNotKept(ctx, it, u)
	return nil
}

// update applies what is pinned to one version of an object, and takes that over before if it has to.
func (r *objects[O]) update(ctx context.Context, it item) error {
	u, err := r.move(ctx, it)
	if err != nil {
		return err
	}
	if err := r.writeAs(ctx, r.manager(), u, client.ForceOwnership); err != nil {
		return err
	}
	r.tellNotKept(ctx, it, u)
	return nil
}

// writeAs applies u under that name, and u becomes what the server made of it. Another UID or version than that of the stored
// object is a conflict.
func (r *resource[O]) writeAs(ctx context.Context, manager string, u *unstructured.Unstructured, options ...client.ApplyOption) error {
	return serverside.Apply(ctx, r.config.Client, u, append(options, client.FieldOwner(manager))...)
}
