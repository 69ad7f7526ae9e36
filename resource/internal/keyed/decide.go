package keyed

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/patch"
)

// NewUpdatePatch implements framework.TypedCRUDResourceOps.
func (e *Engine[O, K, C]) NewUpdatePatch(
	ctx context.Context, obj O, current, desired State[K, C],
) (*framework.TypedPatch[State[K, C]], error) {
	if desired.Terminating {
		return nil, nil
	}
	ctx, b, err := e.backend(ctx, obj, current.Note)
	if err != nil {
		return nil, err
	}
	there, wanted := current.ByKey(), desired.ByKey()
	parts := parts[K, C]{}
	for _, have := range current.Items {
		if _, stays := wanted[have.Key]; !stays && !leftToOthers(ctx, have) {
			deletion, _ := b.Deletion(have)
			parts.add(deletion)
		}
	}
	faults := e.faults(desired.Faults...)
	for _, want := range desired.Items {
		have, found := there[want.Key]
		if !found {
			have, found = current.others[want.Key]
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
func (e *Engine[O, K, C]) decide(
	ctx context.Context, b Backend[K, C], have Item[K, C], found bool, want Item[K, C],
) (change Item[K, C], err error) {
	if len(e.Marks(ctx)) > 1 {
		identity.Take(ctx, want.Key.String())
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
		if claim := have.Claim; !claim.Writable(e.Config.Adopt) {
			return change, &RefusedError[K]{Key: want.Key, Reason: claim.Reason, Adoptable: claim.Holder == Free}
		}
		change, err = b.Compare(ctx, &have, want)
		if errors.Is(err, ErrStale) && attempt < comparisons {
			found = false
			continue
		}
		change.Claim = have.Claim
		if change.Change.Action == plan.Update {
			change.Change.Description = strings.Trim(have.Claim.Takeover()+"; "+change.Change.Description, "; ")
		}
		return change, err
	}
}

// NewDeletePatch implements framework.TypedCRUDResourceOps.
func (e *Engine[O, K, C]) NewDeletePatch(
	ctx context.Context, obj O, current, _ State[K, C],
) (*framework.TypedPatch[State[K, C]], error) {
	ctx, b, err := e.backend(ctx, obj, current.Note)
	if err != nil {
		return nil, err
	}
	parts := parts[K, C]{}
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
type parts[K Key, C any] map[plan.Action][]Item[K, C]

func (p parts[K, C]) add(change Item[K, C]) {
	p[change.Change.Action] = append(p[change.Change.Action], change)
}

// patch returns the patch with these parts, or nil if nothing is to be done. What was created last
// is deleted first.
func (p parts[K, C]) patch(note any) *framework.TypedPatch[State[K, C]] {
	slices.Reverse(p[plan.Delete])
	part := func(action plan.Action) State[K, C] { return State[K, C]{Items: p[action], Note: note} }
	some := func(s State[K, C]) bool { return !s.Empty() }
	return patch.Of(some, part(plan.Create), part(plan.Update), part(plan.Delete))
}
