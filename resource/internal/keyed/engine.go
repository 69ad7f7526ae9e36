package keyed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
)

// Backend is what a resource knows of the things of one primary. No method but Apply writes
// anything.
type Backend[K Key, C any] interface {
	// List returns the existing things which may be the resource's own, in the order of their keys.
	List(ctx context.Context) (State[K, C], error)
	// Desired returns the number of desired things, and a function which makes each of them.
	Desired(ctx context.Context) (n int, one func(i int) (Item[K, C], error), err error)
	// Find looks for a desired thing which List has not returned.
	Find(ctx context.Context, want Item[K, C]) (have Item[K, C], found bool, err error)
	// Compare returns the change which makes a thing what is desired, without an action if nothing
	// has to happen. Have is nil if there is no thing yet. An error which is ErrStale makes the
	// engine find the thing and compare it again.
	Compare(ctx context.Context, have *Item[K, C], want Item[K, C]) (Item[K, C], error)
	// Deletion returns the change which deletes a thing, without an action if nothing is to be
	// done, as while it is being deleted. Awaited reports whether the deletion of the primary waits
	// until the thing is gone.
	Deletion(have Item[K, C]) (deletion Item[K, C], awaited bool)
	// Apply makes a change, and returns what was done for the log, such as "created an entry".
	Apply(ctx context.Context, change Item[K, C]) (done string, err error)
}

// ErrStale says that a thing is not what the engine has found it to be.
var ErrStale = errors.New("it has changed meanwhile")

// comparisons is the maximum number of comparisons of a thing in one reconciliation.
const comparisons = 4

// Vanishing is when the primary is reconciled again while one of its things is being deleted:
// earlier if the thing is watched.
const Vanishing = 2 * time.Second

// Config configures an Engine.
type Config struct {
	// Name and FormerNames are those of the resource.
	Name        string
	FormerNames []string
	// Noun is what one of the desired things is called in errors.
	Noun string
	// Adopt lets the resource adopt things which have no owner.
	Adopt bool
	// Alone reports whether an error concerns one thing only, if it is neither permanent, nor a
	// RefusedError, nor the answer of an API server.
	Alone  func(error) bool
	Logger micrologger.Logger
}

// Engine implements framework.TypedCRUDResourceOps for sets of things: it lists, claims, decides,
// adopts and applies.
type Engine[O any, K Key, C any] struct {
	Config Config
	// Rank, if set, is the rank of a thing. Things of a higher one are written after those of a lower
	// one, and not if one of those failed; they are deleted before them.
	Rank func(thing C) int
	// Concurrency is how many things of one rank are written at the same time, at least one. With
	// several, Backend.Apply must be safe for that, and must not panic.
	Concurrency int
	// For returns the backend for one primary. Its things carry one of the marks: the first one, or
	// those of former names. The note is that of the current state, nil before that was read.
	For func(ctx context.Context, obj O, marks []identity.Mark, note any) (context.Context, Backend[K, C], error)
}

// Name implements framework.TypedCRUDResourceOps.
func (e *Engine[O, K, C]) Name() string { return e.Config.Name }

// FormerNames implements framework.FormerNamer.
func (e *Engine[O, K, C]) FormerNames() []string { return e.Config.FormerNames }

func (e *Engine[O, K, C]) backend(ctx context.Context, obj O, note any) (context.Context, Backend[K, C], error) {
	return e.For(ctx, obj, e.Marks(ctx), note)
}

// Marks returns the marks of the things: the present one, and then those of former names.
func (e *Engine[O, K, C]) Marks(ctx context.Context) []identity.Mark {
	return identity.From(ctx).Marks(e.Config.Name, e.Config.FormerNames)
}

// GetCurrentState implements framework.TypedCRUDResourceOps. It returns the things which are the
// resource's own.
func (e *Engine[O, K, C]) GetCurrentState(ctx context.Context, obj O) (State[K, C], error) {
	ctx, b, err := e.backend(ctx, obj, nil)
	if err != nil {
		return State[K, C]{}, err
	}
	listed, err := b.List(ctx)
	if err != nil {
		return State[K, C]{}, err
	}
	state := State[K, C]{Note: listed.Note, others: map[K]Item[K, C]{}}
	for _, it := range listed.Items {
		if it.Claim.Holder == Ours {
			state.Items = append(state.Items, it)
		} else {
			state.others[it.Key] = it
		}
	}
	e.sort(state.Items)
	return state, nil
}

// GetDesiredState implements framework.TypedCRUDResourceOps. Of things with the same key, none is
// desired: nobody can tell which one is meant.
func (e *Engine[O, K, C]) GetDesiredState(ctx context.Context, obj O) (State[K, C], error) {
	if Deleting(obj) {
		return State[K, C]{Terminating: true}, nil
	}
	ctx, b, err := e.backend(ctx, obj, nil)
	if err != nil {
		return State[K, C]{}, err
	}
	n, one, err := b.Desired(ctx)
	if err != nil {
		return State[K, C]{}, err
	}
	var s State[K, C]
	count := make(map[string]int, n)
	for i := range n {
		it, err := one(i)
		if err == nil {
			if count[it.Key.String()]++; count[it.Key.String()] > 1 {
				err = fmt.Errorf("%s is there twice", it.Key)
			}
		}
		if err != nil {
			s.Faults = append(s.Faults, framework.Permanent(fmt.Errorf("desired %s %d: %w", e.Config.Noun, i, err)))
			continue
		}
		s.Items = append(s.Items, it)
	}
	s.Items = slices.DeleteFunc(s.Items, func(it Item[K, C]) bool { return count[it.Key.String()] > 1 })
	e.sort(s.Items)
	return s, nil
}

// sort puts things in the order of their ranks.
func (e *Engine[O, K, C]) sort(items []Item[K, C]) {
	if e.Rank != nil {
		slices.SortStableFunc(items, func(a, b Item[K, C]) int { return cmp.Compare(e.Rank(a.Thing), e.Rank(b.Thing)) })
	}
}
