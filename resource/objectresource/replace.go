package objectresource

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/internal/absent"
)

// An object whose update the API server refuses is replaced in two writes: it is deleted, and created anew. It begins anew after each of
// them: an object that is gone, or on its way out, is created as any other that is missing.

// replacement is the change that puts another object in the place of u, whose update was refused. It is made only if the API server, asked by a
// dry run, would create that object if its name were free: otherwise the refusal is about what is desired, and is returned.
func (r *resource[O]) replacement(ctx context.Context, own ownership, u *unstructured.Unstructured, want item, refusal error) (item, error) {
	hash := sha256.Sum256([]byte(want.key.String()))
	anew := want.content.DeepCopy()
	anew.SetName("replacement-" + hex.EncodeToString(hash[:8]))
	anew.SetResourceVersion(absent.Version)
	if err := r.writeAs(ctx, r.manager(own), anew, client.DryRunAll); err != nil {
		return item{}, refusal
	}
	anew.SetName(u.GetName())
	want.replaces = true
	return updating(u, anew, want), nil
}

// replace deletes an object, leaving its dependents, and creates it anew. While the deletion of the old one takes its time, the new one is left to
// a later reconciliation.
func (r *resource[O]) replace(ctx context.Context, own ownership, it item) error {
	if err := framework.Confirm(ctx); err != nil {
		return err
	}
	if err := r.remove(ctx, it, metav1.DeletePropagationOrphan); err != nil {
		return err
	}
	u := it.content.DeepCopy()
	u.SetUID("")
	u.SetResourceVersion(absent.Version)
	err := r.writeAs(ctx, r.manager(own), u)
	if apierrors.IsConflict(err) {
		requeuecontext.SetAfter(ctx, vanishing)
		return nil
	}
	if err != nil {
		return fmt.Errorf("it was deleted, to be replaced: %w", err)
	}
	return nil
}

// remove deletes the object that a change was computed for. What is gone already is as good as deleted.
func (r *resource[O]) remove(ctx context.Context, it item, propagation metav1.DeletionPropagation) error {
	uid := it.content.GetUID()
	err := r.config.Client.Delete(ctx, it.key.empty(), client.PropagationPolicy(propagation),
		client.Preconditions(metav1.Preconditions{UID: &uid, ResourceVersion: &it.version}))
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	r.settled.forget(it.key)
	return nil
}

// replacing says of a change that it is a replacement, and nothing of others.
func (it item) replacing() string {
	if it.action != plan.Update || !it.replaces {
		return ""
	}
	return "replaced: deleted, without its dependents, and created anew"
}
