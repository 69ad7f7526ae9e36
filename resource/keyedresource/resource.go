package keyedresource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
	"github.com/operatorkit/operatorkit/resource/internal/patch"
)

// vanishing is when the primary is looked at again while one of its things is on its way out.
const vanishing = 2 * time.Second

// resource is the logic of the CRUD resource.
type resource[O, T any] struct{ config Config[O, T] }

// Name implements framework.TypedCRUDResourceOps.
func (r *resource[O, T]) Name() string { return r.config.Name }

// FormerNames implements framework.FormerNamer.
func (r *resource[O, T]) FormerNames() []string { return r.config.FormerNames }

// Rights implements framework.RightsLister. The things themselves are elsewhere.
func (r *resource[O, T]) Rights() []framework.Right {
	if r.config.Journal == nil {
		return nil
	}
	return []framework.Right{{Verbs: []string{"get", "patch"}}}
}

// GetCurrentState implements framework.TypedCRUDResourceOps. It returns the things that are the resource's own, in the order of
// their keys, and has those of others at hand.
func (r *resource[O, T]) GetCurrentState(ctx context.Context, obj O) (State[T], error) {
	ctx, own, err := r.ownership(ctx, obj)
	if err != nil {
		return State[T]{}, err
	}
	state := State[T]{others: map[Key]item[T]{}}
	if state.journal, err = r.readJournal(ctx, obj, own); err != nil {
		return State[T]{}, err
	}
	there := map[Key]bool{}
	if r.config.Current != nil {
		things, err := r.config.Current(ctx, obj)
		if err != nil {
			return State[T]{}, err
		}
		for _, thing := range things {
			it := r.newItem(thing)
			if there[it.key] {
				return State[T]{}, framework.Permanent(fmt.Errorf("%s is among the current things twice: have Key tell them apart", it.key))
			}
			there[it.key] = true
			state.add(it, r.claimOn(own, state.journal, it, true))
		}
	}
	for _, key := range state.journal.keys() {
		if there[r.key(key)] {
			continue
		}
		it, found, err := r.look(ctx, obj, r.key(key))
		switch {
		case err != nil:
			return State[T]{}, err
		case found:
			state.add(it, r.claimOn(own, state.journal, it, true))
		default:
			state.stale = append(state.stale, key)
		}
	}
	slices.SortFunc(state.Items, func(a, b item[T]) int { return cmp.Compare(a.key.Name, b.key.Name) })
	if r.config.Poll > 0 && !keyed.Deleting(obj) {
		requeuecontext.SetAfter(ctx, r.config.Poll)
	}
	return state, nil
}

// add takes a thing into a current state.
func (s *State[T]) add(it item[T], c claim) {
	it.claim = c
	if c.Holder == keyed.Ours {
		s.Items = append(s.Items, it)
		return
	}
	s.others[it.key] = it
}

// look asks for one thing.
func (r *resource[O, T]) look(ctx context.Context, obj O, k Key) (item[T], bool, error) {
	thing, found, err := r.config.Get(ctx, obj, k.Name)
	if err != nil || !found {
		return item[T]{}, false, err
	}
	it := r.newItem(thing)
	if it.key != k {
		return item[T]{}, false, framework.Permanent(fmt.Errorf("asked for %s, Get returned %s", k, it.key))
	}
	return it, true, nil
}

func (r *resource[O, T]) key(name string) Key { return Key{r.config.Kind, name} }

func (r *resource[O, T]) newItem(thing T) item[T] {
	return item[T]{key: r.key(r.config.Key(thing)), content: thing}
}

// GetDesiredState implements framework.TypedCRUDResourceOps.
func (r *resource[O, T]) GetDesiredState(ctx context.Context, obj O) (State[T], error) {
	if keyed.Deleting(obj) {
		return State[T]{State: keyed.State[Key, item[T]]{Terminating: true}}, nil
	}
	ctx, own, err := r.ownership(ctx, obj)
	if err != nil {
		return State[T]{}, err
	}
	things, err := r.config.Desired(ctx, obj)
	if err != nil {
		return State[T]{}, err
	}
	return State[T]{State: keyed.Desired("thing", len(things), func(i int) (item[T], error) {
		it := r.newItem(things[i])
		switch {
		case it.key.Name == "":
			return it, errors.New("it has no key")
		case r.config.Mark != nil && r.config.Mark(it.content) != own.texts[0]:
			return it, fmt.Errorf("%s has the mark %q: have Desired set it to keyedresource.Mark(ctx)", it.key, r.config.Mark(it.content))
		}
		return it, nil
	})}, nil
}

// NewUpdatePatch implements framework.TypedCRUDResourceOps.
func (r *resource[O, T]) NewUpdatePatch(ctx context.Context, obj O, current, desired State[T]) (*framework.TypedPatch[State[T]], error) {
	if desired.Terminating {
		return nil, nil
	}
	if err := current.journal.standing(); err != nil {
		return nil, err
	}
	ctx, own, err := r.ownership(ctx, obj)
	if err != nil {
		return nil, err
	}
	faults := newFaults(desired.Faults...)
	create, update, remove := current.part(), current.part(), current.part()
	create.State, update.State, remove.State = keyed.Sort(ctx, current.State, desired.State, faults,
		func(have item[T], found bool, want item[T]) (item[T], error) {
			return r.decide(ctx, obj, own, decision[T]{current, want, have, found})
		},
		func(have item[T]) (item[T], bool) { return deletion(have), !have.claim.LeftToOthers(ctx, have.key) })
	r.await(ctx, remove)
	wanted := desired.ByKey()
	stays := func(key string) bool {
		_, found := wanted[r.key(key)]
		return found
	}
	remove.stale = slices.DeleteFunc(slices.Clone(current.stale), stays)
	create.bequest, create.unsigned = current.journal.bequest(stays), current.journal.unsigned()
	update.bequest = create.bequest
	return patchOf(create, update, remove), faults.Err()
}

// part returns an empty part of a patch.
func (s State[T]) part() State[T] { return State[T]{journal: s.journal} }

// NewDeletePatch implements framework.TypedCRUDResourceOps.
func (r *resource[O, T]) NewDeletePatch(ctx context.Context, _ O, current, _ State[T]) (*framework.TypedPatch[State[T]], error) {
	var remove State[T] // The journal goes with the primary.
	for _, have := range current.Items {
		if !have.claim.LeftToOthers(ctx, have.key) {
			remove.Items = append(remove.Items, deletion(have))
		}
	}
	if r.await(ctx, remove) {
		finalizerskeptcontext.SetKept(ctx)
	}
	return patchOf(State[T]{}, State[T]{}, remove), nil
}

// await has the primary looked at again if something is on its way out, and tells whether.
func (r *resource[O, T]) await(ctx context.Context, remove State[T]) bool {
	waits := r.config.WaitForDeletion && !remove.Empty()
	if waits {
		requeuecontext.SetAfter(ctx, vanishing)
	}
	return waits
}

func deletion[T any](have item[T]) item[T] {
	have.action = plan.Delete
	return have
}

// patchOf returns the patch with these parts.
func patchOf[T any](create, update, remove State[T]) *framework.TypedPatch[State[T]] {
	remove.State = remove.Reversed()
	return patch.Of(func(s State[T]) bool { return !s.Empty() || len(s.stale) > 0 || s.unsigned }, create, update, remove)
}
