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

	"github.com/operatorkit/operatorkit/framework"
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
	return keyed.Each(ctx, change.State, newFaults(), func(it item[T]) error { return r.create(ctx, p, it) })
}

// create creates one entry.
func (r *resource[O, T]) create(ctx context.Context, p ownership, it item[T]) error {
	entity := copyOf(it.content)
	r.writes.begin(it.key.Name, p.owner)
	err := r.config.Bucket.Create(ctx, entity)
	if apierrors.IsAlreadyExists(err) {
		return r.existing(ctx, p, it, err)
	}
	r.writes.end(it.key.Name, entity.EntityMeta().Revision(), false)
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
		r.writes.end(it.key.Name, 0, false)
		if apierrors.IsNotFound(err) {
			return conflict(it.key, exists)
		}
		return unreadable(it, err)
	}
	r.writes.end(it.key.Name, entity.EntityMeta().Revision(), false)
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
func (r *resource[O, T]) ApplyUpdateChange(ctx context.Context, obj O, change State[T]) error {
	p, err := r.ownership(ctx, obj)
	if err != nil {
		return err
	}
	return keyed.Each(ctx, change.State, newFaults(), func(it item[T]) error {
		if err := r.update(ctx, p.owner, it.key, copyOf(it.content)); err != nil {
			return err
		}
		message := "updated an entry"
		if it.takenOver() {
			message = "took over an entry"
		}
		r.log(ctx, message, it)
		return nil
	})
}

// update writes an entity in place of the one with its revision.
func (r *resource[O, T]) update(ctx context.Context, o owner, key Key, entity T) error {
	before := entity.EntityMeta().Revision()
	r.writes.begin(key.Name, o)
	err := r.config.Bucket.Update(ctx, entity)
	r.writes.end(key.Name, reached(err, before, entity.EntityMeta().Revision()), false)
	return err
}

// reached returns the revision that the source has to reach after a write: that of what was written or, after a conflict,
// one that is newer than what the write was based on. It is 0 when it is not known.
func reached(err error, before, after uint64) uint64 {
	switch {
	case err == nil:
		return after
	case apierrors.IsConflict(err):
		return before + 1
	}
	return 0
}

// ApplyDeleteChange implements framework.TypedCRUDResourceOps. What is gone already is fine; an entry that has changed since
// the patch was computed is a conflict.
func (r *resource[O, T]) ApplyDeleteChange(ctx context.Context, obj O, change State[T]) error {
	p, err := r.ownership(ctx, obj)
	if err != nil {
		return err
	}
	return keyed.Each(ctx, change.State, newFaults(), func(it item[T]) error { return r.remove(ctx, p.owner, it) })
}

// remove purges an entry, or asks for that.
func (r *resource[O, T]) remove(ctx context.Context, o owner, it item[T]) error {
	if r.waits(it) {
		return r.requestDeletion(ctx, o, it)
	}
	revision := it.content.EntityMeta().Revision()
	r.writes.begin(it.key.Name, o)
	err := r.config.Bucket.Purge(ctx, it.content)
	r.writes.end(it.key.Name, reached(err, revision, revision), err == nil)
	if err != nil {
		return err
	}
	r.log(ctx, "deleted an entry", it)
	return nil
}

// requestDeletion asks whoever holds the entry to let it go.
func (r *resource[O, T]) requestDeletion(ctx context.Context, o owner, it item[T]) error {
	entity := copyOf(it.content)
	now := metav1.NewTime(time.Now().UTC().Truncate(time.Second))
	entity.EntityMeta().DeletionTimestamp = &now
	if err := r.update(ctx, o, it.key, entity); err != nil {
		return err
	}
	r.log(ctx, "asked for the deletion of an entry", it)
	return nil
}

func (r *resource[O, T]) log(ctx context.Context, message string, it item[T]) {
	keyed.Log(ctx, r.config.Logger, message, it, "")
}
