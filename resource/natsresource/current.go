package natsresource

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

// GetCurrentState implements framework.TypedCRUDResourceOps. It returns the entries that are the resource's own, also those of its
// former names, in the order of their keys. They are read from the source; only what it has not caught up with is asked of the server.
func (r *resource[O, T]) GetCurrentState(ctx context.Context, obj O) (State[T], error) {
	p, err := r.ownership(ctx, obj)
	if err != nil {
		return State[T]{}, err
	}
	if !r.config.Source.Status().Synced {
		return State[T]{}, fmt.Errorf("source %s is not synced yet: if it never is, nobody runs it: watch it", r.config.Source.Name())
	}
	written := r.writes.of(p.owner)
	var state State[T]
	add := func(have item[T]) {
		if c := claimOn(have.content.EntityMeta(), p); c.whose == ours {
			have.former = c.former
			state.Items = append(state.Items, have)
		}
	}
	for _, o := range p.owners() {
		entities, err := r.config.Source.ByIndex(OwnerIndex, o.index())
		if err != nil {
			return State[T]{}, framework.Permanent(fmt.Errorf("read source %s: %w: give it the index of OwnerIndexers", r.config.Source.Name(), err))
		}
		for _, e := range entities {
			entity, err := r.typed(e)
			if err != nil {
				return State[T]{}, err
			}
			if !written.Has(entity.GetName()) {
				add(item[T]{key: r.key(entity.GetName()), content: entity})
			}
		}
	}
	for key := range written {
		have, exists, err := r.lookUp(ctx, r.key(key))
		if err != nil {
			return State[T]{}, err
		}
		if exists {
			add(have)
		}
	}
	slices.SortFunc(state.Items, func(a, b item[T]) int { return strings.Compare(a.key.Name, b.key.Name) })
	return state, nil
}

// lookUp returns the newest that is known of a key: from the source, and from the server if the source is behind
// what this resource has written itself.
func (r *resource[O, T]) lookUp(ctx context.Context, key Key) (item[T], bool, error) {
	obj, exists, err := r.config.Source.Get(informer.Key{Name: key.Name})
	shown := sight{exists: exists, revision: revisionOf(obj)}
	switch r.writes.compare(key.Name, shown) {
	case behind:
		return r.ask(ctx, key, shown)
	case purged:
		return item[T]{}, false, nil
	}
	if err != nil || !exists {
		return item[T]{}, false, err
	}
	entity, err := r.typed(obj)
	return item[T]{key: key, content: entity}, err == nil, err
}

// ask reads an entry from the server.
func (r *resource[O, T]) ask(ctx context.Context, key Key, shown sight) (item[T], bool, error) {
	entity, err := r.config.Bucket.Get(ctx, key.Name)
	if apierrors.IsNotFound(err) {
		if !shown.exists {
			r.writes.forget(key.Name)
		}
		return item[T]{}, false, nil
	}
	if err != nil {
		return item[T]{}, false, err
	}
	return item[T]{key: key, content: entity}, true, nil
}

func (r *resource[O, T]) typed(obj any) (T, error) {
	entity, ok := obj.(T)
	if !ok {
		return entity, framework.Permanent(fmt.Errorf("source %s holds a %T instead of a %T: give it the type of the bucket",
			r.config.Source.Name(), obj, entity))
	}
	return entity, nil
}
