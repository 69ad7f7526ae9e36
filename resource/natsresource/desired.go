package natsresource

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
)

// GetDesiredState implements framework.TypedCRUDResourceOps.
func (r *resource[O, T]) GetDesiredState(ctx context.Context, obj O) (State[T], error) {
	if deleting(obj) {
		return State[T]{terminating: true}, nil
	}
	p, err := r.party(ctx, obj)
	if err != nil {
		return State[T]{}, err
	}
	entities, err := r.config.Desired(ctx, obj)
	if err != nil {
		return State[T]{}, err
	}
	state := State[T]{items: make([]item[T], 0, len(entities))}
	for i, e := range entities {
		it, err := r.desiredItem(e, p.owner)
		if err != nil {
			return State[T]{}, framework.Permanent(fmt.Errorf("desired entry %d: %w", i, err))
		}
		if _, twice := state.find(it.key); twice {
			return State[T]{}, framework.Permanent(fmt.Errorf("desired entry %d: %s is there twice", i, it.key))
		}
		state.items = append(state.items, it)
	}
	return state, nil
}

// deleting tells whether the primary is being deleted.
func deleting(obj any) bool {
	o, ok := obj.(interface{ GetDeletionTimestamp() *metav1.Time })
	return ok && o.GetDeletionTimestamp() != nil
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
