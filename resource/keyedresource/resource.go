package keyedresource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// resource is the logic of the CRUD resource.
type resource[O, T any] struct {
	keyed.Engine[O, Key, T]
	config Config[O, T]
}

func newResource[O, T any](config Config[O, T]) *resource[O, T] {
	r := &resource[O, T]{config: config}
	r.Engine = keyed.Engine[O, Key, T]{
		Config: keyed.Config{
			Name: config.Name, FormerNames: config.FormerNames, Noun: "thing",
			Adopt: config.Adopt, Logger: config.Logger,
			Alone: func(err error) bool { return !errors.As(err, new(net.Error)) },
		},
		Rank: config.Order, Concurrency: config.Concurrency,
		For: r.backend,
	}
	return r
}

// Rights implements framework.RightsLister. The things themselves are elsewhere.
func (r *resource[O, T]) Rights() []framework.Right {
	if r.config.Journal == nil {
		return nil
	}
	return []framework.Right{{Verbs: []string{"get", "patch"}}}
}

// NewUpdatePatch implements framework.TypedCRUDResourceOps. It also has the journal written if that
// has to change.
func (r *resource[O, T]) NewUpdatePatch(
	ctx context.Context, obj O, current, desired State[T],
) (*framework.TypedPatch[State[T]], error) {
	j := journalOf(current)
	if j != nil && j.gone != nil && !desired.Terminating {
		return nil, j.gone
	}
	patch, err := r.Engine.NewUpdatePatch(ctx, obj, current, desired)
	if remove, ok := patch.DeleteChange(); ok && !remove.Empty() && r.config.WaitForDeletion {
		requeuecontext.SetAfter(ctx, keyed.Vanishing)
	}
	if j == nil || desired.Terminating {
		return patch, err
	}
	wanted := desired.ByKey()
	sign, trim := j.settle(func(key string) bool {
		_, found := wanted[r.key(key)]
		return found
	})
	if (sign || trim) && patch == nil {
		patch = framework.NewTypedPatch[State[T]]()
	}
	// Creations wait neither for what is refused nor until updates are allowed.
	if create, ok := patch.CreateChange(); sign && !ok {
		create.Note = j
		patch.SetCreateChange(create)
	}
	if remove, ok := patch.DeleteChange(); trim && !ok {
		remove.Note = j
		patch.SetDeleteChange(remove)
	}
	return patch, err
}

// NewDeletePatch implements framework.TypedCRUDResourceOps. The journal goes with the primary.
func (r *resource[O, T]) NewDeletePatch(
	ctx context.Context, obj O, current, desired State[T],
) (*framework.TypedPatch[State[T]], error) {
	current.Note = nil
	return r.Engine.NewDeletePatch(ctx, obj, current, desired)
}

// ApplyCreateChange implements framework.TypedCRUDResourceOps.
func (r *resource[O, T]) ApplyCreateChange(ctx context.Context, obj O, change State[T]) error {
	if err := journalOf(change).add(ctx, change.Keys()); err != nil {
		return err
	}
	return r.Engine.ApplyCreateChange(ctx, obj, change)
}

// ApplyUpdateChange implements framework.TypedCRUDResourceOps.
func (r *resource[O, T]) ApplyUpdateChange(ctx context.Context, obj O, change State[T]) error {
	return r.ApplyCreateChange(ctx, obj, change)
}

// ApplyDeleteChange implements framework.TypedCRUDResourceOps. It removes the keys of deleted
// things from the journal, or leaves that to a later reconciliation, which does not find the
// things, if deletions take time.
func (r *resource[O, T]) ApplyDeleteChange(ctx context.Context, obj O, change State[T]) error {
	err := r.Engine.ApplyDeleteChange(ctx, obj, change)
	if noted := journalOf(change).removeGone(ctx); noted != nil {
		return framework.Partial(err, noted)
	}
	return err
}

// things are the things of one primary.
type things[O, T any] struct {
	*resource[O, T]
	obj O
	// marks are the present one, and then those of former names. Texts are what things have of
	// them.
	marks []identity.Mark
	texts []string
	// journal is that of the primary; nil without one. Deletions at the same time change it under mu.
	mu      sync.Mutex
	journal *journal
}

func (r *resource[O, T]) backend(
	ctx context.Context, obj O, marks []identity.Mark, note any,
) (context.Context, keyed.Backend[Key, T], error) {
	key, err := keyed.OwnerKey(obj, r.config.OwnerKey)
	things := &things[O, T]{resource: r, obj: obj, marks: marks}
	things.journal, _ = note.(*journal)
	for _, m := range marks {
		things.texts = append(things.texts, MarkOf(m, key))
	}
	return context.WithValue(ctx, marksKey{}, things.texts), things, err
}

// List implements keyed.Backend.
func (r *things[O, T]) List(ctx context.Context) (state State[T], err error) {
	if r.journal, err = r.readJournal(ctx); err != nil {
		return state, err
	}
	if r.journal != nil {
		state.Note = r.journal
	}
	there := map[Key]bool{}
	if r.config.Current != nil {
		current, err := r.config.Current(ctx, r.obj)
		if err != nil {
			return state, err
		}
		for _, thing := range current {
			it := r.newItem(thing)
			if there[it.Key] {
				return state, framework.Permanent(
					fmt.Errorf("%s is among the current things twice: have Key tell them apart", it.Key))
			}
			there[it.Key] = true
			it.Claim = r.claimOn(it, true)
			state.Items = append(state.Items, it)
		}
	}
	for _, key := range r.journal.all() {
		if there[r.key(key)] {
			continue
		}
		it, found, err := r.look(ctx, r.key(key), true)
		switch {
		case err != nil:
			return state, err
		case found:
			state.Items = append(state.Items, it)
		default:
			r.journal.stale = append(r.journal.stale, key)
		}
	}
	slices.SortFunc(state.Items, func(a, b item[T]) int { return cmp.Compare(a.Key.Name, b.Key.Name) })
	if r.config.Poll > 0 && !keyed.Deleting(r.obj) {
		requeuecontext.SetAfter(ctx, r.config.Poll)
	}
	return state, nil
}

// Find implements keyed.Backend.
func (r *things[O, T]) Find(ctx context.Context, want item[T]) (item[T], bool, error) {
	if r.config.Get == nil || r.journal.has(want.Key.Name) {
		return item[T]{}, false, nil
	}
	return r.look(ctx, want.Key, false)
}

// look asks for one thing.
func (r *things[O, T]) look(ctx context.Context, k Key, listed bool) (item[T], bool, error) {
	thing, found, err := r.config.Get(ctx, r.obj, k.Name)
	if err != nil || !found {
		return item[T]{}, false, err
	}
	it := r.newItem(thing)
	if it.Key != k {
		return item[T]{}, false, framework.Permanent(fmt.Errorf("asked for %s, Get returned %s", k, it.Key))
	}
	it.Claim = r.claimOn(it, listed)
	return it, true, nil
}

func (r *resource[O, T]) key(name string) Key { return Key{r.config.Kind, name} }

func (r *resource[O, T]) newItem(thing T) item[T] {
	k := r.key(r.config.Key(thing))
	return item[T]{Key: k, Thing: thing, Change: plan.Change{Object: plan.Object{Kind: k.Kind, Name: k.Name}}}
}

// Desired implements keyed.Backend.
func (r *things[O, T]) Desired(ctx context.Context) (int, func(i int) (item[T], error), error) {
	desired, err := r.config.Desired(ctx, r.obj)
	return len(desired), func(i int) (item[T], error) {
		it := r.newItem(desired[i])
		switch {
		case it.Key.Name == "":
			return it, errors.New("it has no key")
		case r.config.Mark != nil && r.config.Mark(it.Thing) != r.texts[0]:
			return it, fmt.Errorf("%s has the mark %q: have Desired set it to keyedresource.Mark(ctx)",
				it.Key, r.config.Mark(it.Thing))
		}
		return it, nil
	}, err
}

// Deletion implements keyed.Backend.
func (r *things[O, T]) Deletion(have item[T]) (item[T], bool) {
	have.Change.Action = plan.Delete
	return have, r.config.WaitForDeletion
}
