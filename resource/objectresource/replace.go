package objectresource

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/absent"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// An object whose update the API server refuses is replaced in two writes: it is deleted, and created anew. It begins anew after each of
// them: an object that is gone, or on its way out, is created as any other that is missing.

// replacement is the change that puts another object in the place of one whose update was refused.
// It is made only if the API server, asked by a dry run, would create that object if its name were
// free: otherwise the refusal is about what is desired, and is returned.
func (r *objects[O]) replacement(ctx context.Context, have, want item, refusal error) (item, error) {
	hash := sha256.Sum256([]byte(want.Key.String()))
	anew := want.Thing.content.DeepCopy()
	anew.SetName("replacement-" + hex.EncodeToString(hash[:8]))
	anew.SetResourceVersion(absent.Version)
	if err := r.writeAs(ctx, r.manager(), anew, client.DryRunAll); err != nil {
		return item{}, refusal
	}
	anew.SetName(want.Key.Name)
	want.Thing.replaces = true
	return updating(have, anew, want), nil
}

// replace deletes an object, leaving its dependents, and creates it anew. While the deletion of the old one takes its time, the new one is left to
// a later reconciliation.
func (r *objects[O]) replace(ctx context.Context, it item) error {
	if err := framework.Confirm(ctx); err != nil {
		return err
	}
	if err := r.remove(ctx, it, metav1.DeletePropagationOrphan); err != nil {
		return err
	}
	u := it.Thing.content.DeepCopy()
	u.SetUID("")
	u.SetResourceVersion(absent.Version)
	err := r.writeAs(ctx, r.manager(), u)
	if apierrors.IsConflict(err) {
		requeuecontext.SetAfter(ctx, keyed.Vanishing)
		return nil
	}
	if err != nil {
		return fmt.Errorf("it was deleted, to be replaced: %w", err)
	}
	return nil
}

// remove deletes the object that a change was computed for. What is gone already is as good as deleted.
func (r *objects[O]) remove(ctx context.Context, it item, propagation metav1.DeletionPropagation) error {
	uid := it.Thing.content.GetUID()
	err := r.config.Client.Delete(ctx, it.Thing.key.empty(), client.PropagationPolicy(propagation),
		client.Preconditions(metav1.Preconditions{UID: &uid, ResourceVersion: &it.Change.Object.Version}))
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	r.settled.forget(it.Key)
	return nil
}
