package natsresource

import (
	"context"
	"errors"
	"reflect"

	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// GetDesiredState implements framework.TypedCRUDResourceOps.
func (r *resource[O, T]) GetDesiredState(ctx context.Context, obj O) (State[T], error) {
	if keyed.Deleting(obj) {
		return State[T]{Terminating: true}, nil
	}
	p, err := r.ownership(ctx, obj)
	if err != nil {
		return State[T]{}, err
	}
	entities, err := r.config.Desired(ctx, obj)
	if err != nil {
		return State[T]{}, err
	}
	return keyed.Desired("entry", len(entities), func(i int) (item[T], error) {
		it, err := r.desiredItem(entities[i], p.owner)
		if err == nil {
			it.mark(ctx)
		}
		return it, err
	}), nil
}

// desiredItem makes what is applied of what the author gave.
func (r *resource[O, T]) desiredItem(entity T, o owner) (item[T], error) {
	if v := reflect.ValueOf(entity); !v.IsValid() || v.IsNil() {
		return item[T]{}, errors.New("is nil")
	}
	given := entity.EntityMeta()
	if given.Name == "" {
		return item[T]{}, errors.New("has no name: set the Name of its Meta to the key of the entry")
	}
	it := item[T]{key: r.key(given.Name), content: copyOf(entity)}
	it.sensitive = r.config.Sensitive != nil && r.config.Sensitive(entity)
	m := it.content.EntityMeta()
	*m = natsinformer.Meta{
		Name:        given.Name,
		Labels:      m.Labels,
		Annotations: m.Annotations,
		Finalizers:  m.Finalizers,
		Conditions:  mergeConditions(nil, nil, m.Conditions),
	}
	return it, mark(m, o)
}
