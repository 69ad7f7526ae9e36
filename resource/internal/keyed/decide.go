package keyed

import (
	"context"
	"errors"
	"slices"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/patch"
)

// NewUpdatePatch implements framework.TypedCRUDResourceOps.
func (e *Engine[O, K, I]) NewUpdatePatch(
	ctx context.Context, obj O, current, desired State[K, I],
) (*framework.TypedPatch[State[K, I]], error) {
	if desired.Terminating {
		return nil, nil
	}
	ctx, b, err := e.backend(ctx, obj, current.Note)
	if err != nil {
		return nil, err
	}
	there, wanted := current.ByKey(), desired.ByKey()
	parts := parts[K, I]{}
	for _, have := range current.Items {
		if _, stays := wanted[have.Key()]; !stays && !leftToOthers(ctx, have) {
			deletion, _ := b.Deletion(have)
			parts.add(deletion)
		}
	}
	faults := e.faults(desired.Faults...)
	for _, want := range desired.Items {
		have, found := there[want.Key()]
		if !found {
			have, found = current.others[want.Key()]
		}
		change, err := e.decide(ctx, b, have, found, want)
		if faults.add(ctx, err) {
			break
		}
		if err == nil {
			parts.add(change)
		}
	}
	return parts.patch(current.Note), faults.err()
}

// decide returns what has to happen to a desired thing.
func (e *Engine[O, K, I]) decide(ctx context.Context, b Backend[K, I], have I, found bool, want I) (change I, err error) {
	if len(e.Marks(ctx)) > 1 {
		identity.Take(ctx, want.Key().String())
	}
	for attempt := 1; ; attempt++ {
		if !found {
			if have, found, err = b.Find(ctx, want); err != nil {
				return change, err
			}
		}
		if !found {
			return b.Compare(ctx, nil, want)
		}
		if claim := have.Held(); !claim.Writable(e.Config.Adopt) {
			return change, &RefusedError[K]{Key: want.Key(), Reason: claim.Reason, Adoptable: claim.Holder == Free}
		}
		change, err = b.Compare(ctx, &have, want)
		if !errors.Is(err, ErrStale) || attempt == comparisons {
			return change, err
		}
		found = false
	}
}

// NewDeletePatch implements framework.TypedCRUDResourceOps.
func (e *Engine[O, K, I]) NewDeletePatch(
	ctx context.Context, obj O, current, _ State[K, I],
) (*framework.TypedPatch[State[K, I]], error) {
	ctx, b, err := e.backend(ctx, obj, current.Note)
	if err != nil {
		return nil, err
	}
	parts := parts[K, I]{}
	for _, have := range current.Items {
		if leftToOthers(ctx, have) {
			continue
		}
		deletion, awaited := b.Deletion(have)
		if awaited {
			finalizerskeptcontext.SetKept(ctx)
			requeuecontext.SetAfter(ctx, Vanishing)
		}
		parts.add(deletion)
	}
	return parts.patch(current.Note), nil
}

// parts are the changes of a patch by their actions. Those without an action have no part.
type parts[K Key, I Item[K]] map[plan.Action][]I

func (p parts[K, I]) add(change I) { p[change.Action()] = append(p[change.Action()], change) }

// patch returns the patch with these parts, or nil if nothing is to be done. What was created last is deleted first.
func (p parts[K, I]) patch(note any) *framework.TypedPatch[State[K, I]] {
	slices.Reverse(p[plan.Delete])
	part := func(action plan.Action) State[K, I] { return State[K, I]{Items: p[action], Note: note} }
	return patch.Of(func(s State[K, I]) bool { return !s.Empty() }, part(plan.Create), part(plan.Update), part(plan.Delete))
}
