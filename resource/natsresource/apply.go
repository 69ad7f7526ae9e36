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
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// ApplyCreateChange implements framework.TypedCRUDResourceOps. An entry that appeared since the patch was computed is fine
// if it is what should be created, as after a lost acknowledgement. It is a conflict if it is another one of the
// resource's own, and refused otherwise.
func (r *resource[O, T]) ApplyCreateChange(ctx context.Context, obj O, change State[T]) error {
	p, err := r.ownership(ctx, obj)
	if err != nil {
		return err
	}
	return each(ctx, change, func(it item[T]) error { return r.create(ctx, p, it) })
}

// each applies a change to each entry. Entries that find no room in a full bucket are tried again later, because no event says that there
// is room.
func each[T natsinformer.Entity](ctx context.Context, change State[T], apply func(it item[T]) error) error {
	err := keyed.Each(ctx, change, newFaults(), apply)
	if errors.Is(err, natsinformer.ErrFull) {
		requeuecontext.SetAfter(ctx, natsinformer.FullPause)
	}
	return err
}

// create creates one entry.
func (r *resource[O, T]) create(ctx context.Context, p ownership, it item[T]) error {
	err := r.config.Bucket.Create(ctx, copyOf(it.content))
	if apierrors.IsAlreadyExists(err) {
		return r.existing(ctx, p, it, err)
	}
	if errors.Is(err, jetstream.ErrInvalidKey) {
		err = framework.Permanent(fmt.Errorf("%w: keys are letters, digits and any of -/_=. with no dot at either end", err))
	}
	if err != nil {
		return err
	}
	r.log(ctx, "created an entry", it)
	return nil
}

// existing looks at an entry that was to be created and is there already.
func (r *resource[O, T]) existing(ctx context.Context, p ownership, it item[T], exists error) error {
	entity, err := r.config.Bucket.Get(ctx, it.key.Name)
	if err != nil {
		if apierrors.IsNotFound(err) {
			return conflict(it.key, exists)
		}
		return unreadable(it, err)
	}
	have, err := r.claim(p, item[T]{key: it.key, content: entity})
	if err != nil {
		return err
	}
	change, err := r.updating(have, it)
	if err != nil {
		return err
	}
	if change.action != "" {
		return conflict(it.key, exists)
	}
	return nil
}

// conflict makes the patch be computed anew.
func conflict(key Key, err error) error {
	entries := schema.GroupResource{Resource: "entries of bucket " + key.Bucket}
	return apierrors.NewConflict(entries, key.Name, fmt.Errorf("it appeared meanwhile: %w", err))
}

// ApplyUpdateChange implements framework.TypedCRUDResourceOps. An entry that has changed since the patch was computed is a
// conflict, for which apierrors.IsConflict holds: the patch has to be computed anew.
func (r *resource[O, T]) ApplyUpdateChange(ctx context.Context, _ O, change State[T]) error {
	return each(ctx, change, func(it item[T]) error {
		if err := r.config.Bucket.Update(ctx, copyOf(it.content)); err != nil {
			return err
		}
		message := "updated an entry"
		if it.claim.IsFormer() {
			message = "took over an entry"
		}
		r.log(ctx, message, it)
		return nil
	})
}

// ApplyDeleteChange implements framework.TypedCRUDResourceOps. What is gone already is fine; an entry that has changed since
// the patch was computed is a conflict.
func (r *resource[O, T]) ApplyDeleteChange(ctx context.Context, _ O, change State[T]) error {
	return each(ctx, change, func(it item[T]) error { return r.remove(ctx, it) })
}

// remove purges an entry, or asks for that.
func (r *resource[O, T]) remove(ctx context.Context, it item[T]) error {
	if r.waits(it) {
		return r.requestDeletion(ctx, it)
	}
	if err := r.config.Bucket.Purge(ctx, it.content); err != nil {
		return err
	}
	r.log(ctx, "deleted an entry", it)
	return nil
}

// requestDeletion asks whoever holds the entry to let it go.
func (r *resource[O, T]) requestDeletion(ctx context.Context, it item[T]) error {
	entity := copyOf(it.content)
	now := metav1.NewTime(time.Now().UTC().Truncate(time.Second))
	entity.EntityMeta().DeletionTimestamp = &now
	if err := r.config.Bucket.Update(ctx, entity); err != nil {
		return err
	}
	r.log(ctx, "asked for the deletion of an entry", it)
	return nil
}

func (r *resource[O, T]) log(ctx context.Context, message string, it item[T]) {
	keyed.Log(ctx, r.config.Logger, message, it, "")
}
