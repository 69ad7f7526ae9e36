package natsresource

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// GetCurrentState implements framework.TypedCRUDResourceOps. It returns the entries that are the resource's own, also those of its
// former names, in the order of their keys. They are read from the source, which has what was written through its bucket.
func (r *resource[O, T]) GetCurrentState(ctx context.Context, obj O) (State[T], error) {
	p, err := r.ownership(ctx, obj)
	if err != nil {
		return State[T]{}, err
	}
	if !r.config.Source.Status().Synced {
		return State[T]{}, fmt.Errorf("source %s is not synced yet: if it never is, nobody runs it: watch it", r.config.Source.Name())
	}
	var state State[T]
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
			if c := claimOn(entity.EntityMeta(), p); c.Holder == keyed.Ours {
				state.Items = append(state.Items, item[T]{key: r.key(entity.GetName()), content: entity, claim: c})
			}
		}
	}
	slices.SortFunc(state.Items, func(a, b item[T]) int { return strings.Compare(a.key.Name, b.key.Name) })
	return state, nil
}

// lookUp returns an entry as the source has it.
func (r *resource[O, T]) lookUp(key Key) (item[T], bool, error) {
	obj, exists, err := r.config.Source.Get(informer.Key{Name: key.Name})
	if err != nil || !exists {
		return item[T]{}, false, err
	}
	entity, err := r.typed(obj)
	return item[T]{key: key, content: entity}, err == nil, err
}

func (r *resource[O, T]) typed(obj any) (T, error) {
	entity, ok := obj.(T)
	if !ok {
		return entity, framework.Permanent(fmt.Errorf("source %s holds a %T instead of a %T: give it the type of the bucket",
			r.config.Source.Name(), obj, entity))
	}
	return entity, nil
}
