package objectresource

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/absent"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
	"github.com/operatorkit/operatorkit/resource/internal/serverside"
)

// ApplyCreateChange implements framework.TypedCRUDResourceOps. An object that appeared since the patch was computed is
// updated if it is the resource's own, as after a crash. One that could be adopted is a conflict, for which
// apierrors.IsConflict holds: taking it over was not part of the patch. Others are refused.
func (r *resource[O]) ApplyCreateChange(ctx context.Context, obj O, change State) error {
	own, err := r.ownership(ctx, obj)
	if err != nil {
		return err
	}
	return keyed.Each(ctx, change, newFaults(), func(it item) error {
		u := it.content.DeepCopy()
		u.SetResourceVersion(absent.Version)
		err := r.writeAs(ctx, r.manager(own), u)
		if apierrors.IsConflict(err) {
			err = r.overwrite(ctx, own, it, err)
		}
		if err != nil {
			return requestError("create", it, err)
		}
		r.tellNotKept(ctx, it, u)
		r.log(ctx, "created an object", it)
		return nil
	})
}

// overwrite updates an object of the resource's own that was to be created and is there already.
func (r *resource[O]) overwrite(ctx context.Context, own ownership, it item, conflict error) error {
	existing, exists, err := r.lookUp(ctx, it.key)
	if err != nil {
		return err
	}
	if !exists {
		return conflict
	}
	if err := framework.Confirm(ctx); err != nil {
		return err
	}
	c, err := r.claim(own, it.key, existing)
	if err != nil {
		return err
	}
	if c.Holder != keyed.Ours {
		return conflict
	}
	it.content = pinned(it.content, existing)
	if c.IsFormer() {
		if err := r.takeOver(own, c, existing, &it); err != nil {
			return err
		}
	}
	return r.update(ctx, own, it)
}

// ApplyUpdateChange implements framework.TypedCRUDResourceOps. An object that was changed, deleted or replaced since the patch
// was computed is a conflict, for which apierrors.IsConflict holds: the patch has to be computed anew.
func (r *resource[O]) ApplyUpdateChange(ctx context.Context, obj O, change State) error {
	own, err := r.ownership(ctx, obj)
	if err != nil {
		return err
	}
	return keyed.Each(ctx, change, newFaults(), func(it item) error {
		write, action, done := r.update, "update", "updated an object"
		if it.replaces {
			write, action, done = r.replace, "replace", "replaced an object"
		}
		if err := write(ctx, own, it); err != nil {
			return requestError(action, it, err)
		}
		r.log(ctx, done, it)
		return nil
	})
}

// update applies what is pinned to one version of an object, and takes that over before if it has to.
func (r *resource[O]) update(ctx context.Context, own ownership, it item) error {
	u, err := r.move(ctx, own, it)
	if err != nil {
		return err
	}
	if err := r.writeAs(ctx, r.manager(own), u, client.ForceOwnership); err != nil {
		return err
	}
	r.tellNotKept(ctx, it, u)
	return nil
}

// ApplyDeleteChange implements framework.TypedCRUDResourceOps. What is gone already is as good as deleted. An object that was
// changed or replaced since the patch was computed is a conflict, for which apierrors.IsConflict holds.
func (r *resource[O]) ApplyDeleteChange(ctx context.Context, _ O, change State) error {
	return keyed.Each(ctx, change, newFaults(), func(it item) error {
		if err := r.remove(ctx, it, r.config.Propagation); err != nil {
			return fmt.Errorf("delete %s: %w", it.key, err)
		}
		r.log(ctx, "deleted an object", it)
		return nil
	})
}

// writeAs applies u under that name, and u becomes what the server made of it. Another UID or version than that of the stored
// object is a conflict.
func (r *resource[O]) writeAs(ctx context.Context, manager string, u *unstructured.Unstructured, options ...client.ApplyOption) error {
	return serverside.Apply(ctx, r.config.Client, u, append(options, client.FieldOwner(manager))...)
}

func (r *resource[O]) log(ctx context.Context, message string, it item) {
	keyed.Log(ctx, r.config.Logger, message, it, it.claim.Takeover())
}
