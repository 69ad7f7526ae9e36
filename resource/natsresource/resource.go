package natsresource

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// resource is the logic of the CRUD resource.
type resource[O any, T natsinformer.Entity] struct {
	keyed.Engine[O, Key, T]
	config Config[O, T]
}

func newResource[O any, T natsinformer.Entity](config Config[O, T]) *resource[O, T] {
	r := &resource[O, T]{config: config}
	r.Engine = keyed.Engine[O, Key, T]{
		Config: keyed.Config{
			Name: config.Name, FormerNames: config.FormerNames, Noun: "entry",
			Adopt: config.Adopt, Logger: config.Logger,
			Alone: func(err error) bool { return errors.Is(err, natsinformer.ErrUndecodable) },
		},
		For: r.entries,
	}
	return r
}

// NewDeletePatch implements framework.TypedCRUDResourceOps. While the source is out of contact, it is an error: an entry may have been
// created that the source has not seen, such as by a write that got no answer, and once the primary is gone nobody looks for it any more.
func (r *resource[O, T]) NewDeletePatch(
	ctx context.Context, obj O, current, desired State[T],
) (*framework.TypedPatch[State[T]], error) {
	if err := r.config.Source.Status().LastError; err != nil {
		return nil, fmt.Errorf("source %s is out of contact, and may lack entries of the primary: %w", r.config.Source.Name(), err)
	}
	return r.Engine.NewDeletePatch(ctx, obj, current, desired)
}

// entries are the entries of one primary.
type entries[O any, T natsinformer.Entity] struct {
	*resource[O, T]
	obj   O
	owner owner
	marks []identity.Mark
}

func (r *resource[O, T]) entries(
	ctx context.Context, obj O, marks []identity.Mark, _ any,
) (context.Context, keyed.Backend[Key, T], error) {
	key, err := keyed.OwnerKey(obj, r.config.OwnerKey)
	return ctx, &entries[O, T]{r, obj, owner{r.config.Kind, key, madeBy(marks[0])}, marks}, err
}

// List implements keyed.Backend. It reads the source, which has what was written through its
// bucket.
func (r *entries[O, T]) List(context.Context) (state State[T], err error) {
	source := r.config.Source
	if !source.Status().Synced {
		return state, fmt.Errorf("source %s is not synced yet: if it never is, nobody runs it: watch it", source.Name())
	}
	for _, m := range r.marks {
		found, err := source.ByIndex(OwnerIndex, owner{r.owner.kind, r.owner.key, madeBy(m)}.index())
		if err != nil {
			return state, framework.Permanent(
				fmt.Errorf("read source %s: %w: give it the index of OwnerIndexers", source.Name(), err))
		}
		for _, obj := range found {
			it, err := r.existing(obj)
			if err != nil {
				return state, err
			}
			state.Items = append(state.Items, it)
		}
	}
	slices.SortFunc(state.Items, func(a, b item[T]) int { return strings.Compare(a.Key.Name, b.Key.Name) })
	return state, nil
}

// Find implements keyed.Backend.
func (r *entries[O, T]) Find(_ context.Context, want item[T]) (item[T], bool, error) {
	obj, exists, err := r.config.Source.Get(informer.Key{Name: want.Key.Name})
	if errors.Is(err, natsinformer.ErrUndecodable) {
		err = undecodable(want, err)
	}
	if err != nil || !exists {
		return item[T]{}, false, err
	}
	have, err := r.existing(obj)
	return have, err == nil, err
}

// undecodable drops a decoder's own words for a sensitive entry: they may quote it.
func undecodable[T natsinformer.Entity](want item[T], err error) error {
	if want.Sensitive {
		err = natsinformer.ErrUndecodable
	}
	return fmt.Errorf("refusing to overwrite %s: %w: mend or delete it", want.Key, err)
}

// existing returns what the source holds as an item.
func (r *entries[O, T]) existing(obj any) (item[T], error) {
	entity, ok := obj.(T)
	if !ok {
		return item[T]{}, framework.Permanent(fmt.Errorf(
			"source %s holds a %T instead of a %T: give it the type of the bucket", r.config.Source.Name(), obj, entity))
	}
	it := newItem(r.config.Bucket.Name(), entity)
	it.Claim = r.claimOn(entity.EntityMeta())
	return it, nil
}

// Desired implements keyed.Backend.
func (r *entries[O, T]) Desired(ctx context.Context) (int, func(i int) (item[T], error), error) {
	entities, err := r.config.Desired(ctx, r.obj)
	return len(entities), func(i int) (item[T], error) {
		it, err := r.desired(entities[i])
		if err == nil {
			markSecrets(ctx, it)
		}
		return it, err
	}, err
}

// desired makes what is applied of what the author gave.
func (r *entries[O, T]) desired(entity T) (item[T], error) {
	if v := reflect.ValueOf(entity); !v.IsValid() || v.IsNil() {
		return item[T]{}, errors.New("is nil")
	}
	made := copyOf(entity)
	m := made.EntityMeta()
	*m = natsinformer.Meta{
		Name:        m.Name,
		Labels:      m.Labels,
		Annotations: m.Annotations,
		Finalizers:  m.Finalizers,
		Conditions:  mergeConditions(nil, nil, m.Conditions),
	}
	it := newItem(r.config.Bucket.Name(), made)
	if m.Name == "" {
		return it, errors.New("has no name: set the Name of its Meta to the key of the entry")
	}
	it.Sensitive = r.config.Sensitive != nil && r.config.Sensitive(entity)
	return it, mark(m, r.owner)
}

// Deletion implements keyed.Backend.
func (r *entries[O, T]) Deletion(have item[T]) (item[T], bool) {
	waits := r.waits(have)
	if have.Thing.GetDeletionTimestamp() == nil || !waits {
		have.Change.Action = plan.Delete
	}
	return have, waits
}

// waits reports whether somebody else has to clean up after the entry before it can go.
func (r *resource[O, T]) waits(have item[T]) bool {
	return r.config.RequestDeletion || len(have.Thing.GetFinalizers()) > 0
}
