package natsresource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
)

// Apply implements keyed.Backend. An entry that does not fit into a full bucket is tried again
// later, because no event says that there is room.
func (r *entries[O, T]) Apply(ctx context.Context, it item[T]) (done string, err error) {
	switch it.Change.Action {
	case plan.Create:
		done, err = "created an entry", r.create(ctx, it)
	case plan.Update:
		done, err = "updated an entry", r.config.Bucket.Update(ctx, copyOf(it.Thing))
	case plan.Delete:
		done, err = r.remove(ctx, it)
	}
	if errors.Is(err, natsinformer.ErrFull) {
		requeuecontext.SetAfter(ctx, natsinformer.FullPause)
	}
	return done, err
}

// create creates one entry. One that is there already, and that the source does not have, is a
// conflict, or can't be decoded.
func (r *entries[O, T]) create(ctx context.Context, it item[T]) error {
	err := r.config.Bucket.Create(ctx, copyOf(it.Thing))
	switch {
	case apierrors.IsAlreadyExists(err):
		if _, err := r.config.Bucket.Get(ctx, it.Key.Name); errors.Is(err, natsinformer.ErrUndecodable) {
			return undecodable(it, err)
		}
		entries := schema.GroupResource{Resource: "entries of bucket " + it.Key.Bucket}
		return apierrors.NewConflict(entries, it.Key.Name, fmt.Errorf("it appeared meanwhile: %w", err))
	case errors.Is(err, jetstream.ErrInvalidKey):
		return framework.Permanent(
			fmt.Errorf("%w: keys are letters, digits and any of -/_=. with no dot at either end", err))
	}
	return err
}

// remove purges an entry, or asks whoever holds it to let it go.
func (r *entries[O, T]) remove(ctx context.Context, it item[T]) (done string, err error) {
	if !r.waits(it) {
		return "deleted an entry", r.config.Bucket.Purge(ctx, it.Thing)
	}
	entity := copyOf(it.Thing)
	now := metav1.NewTime(time.Now().UTC().Truncate(time.Second))
	entity.EntityMeta().DeletionTimestamp = &now
	return "asked for the deletion of an entry", r.config.Bucket.Update(ctx, entity)
}
