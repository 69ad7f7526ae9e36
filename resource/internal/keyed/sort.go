package keyed

import (
	"context"
	"fmt"
	"slices"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/patch"
)

// Desired makes a desired state of n things, each of which one returns, or what is wrong with it. Of things whose keys are
// written the same, which may differ in the version of their kind, none is in it: nobody can tell which one is meant.
func Desired[K Key, I Item[K]](noun string, n int, one func(i int) (I, error)) State[K, I] {
	s := State[K, I]{Items: make([]I, 0, n)}
	count := make(map[string]int, n)
	for i := range n {
		it, err := one(i)
		if err == nil {
			if count[it.Key().String()]++; count[it.Key().String()] > 1 {
				err = fmt.Errorf("%s is there twice", it.Key())
			}
		}
		if err != nil {
			s.Faults = append(s.Faults, framework.Permanent(fmt.Errorf("desired %s %d: %w", noun, i, err)))
			continue
		}
		s.Items = append(s.Items, it)
	}
	s.Items = slices.DeleteFunc(s.Items, func(it I) bool { return count[it.Key().String()] > 1 })
	return s
}

// Sort returns what gets from current to desired: what is to be created, updated and deleted, each in its order. Decide says what
// happens to a desired thing, by the action of its change, and remove of one that is not desired whether it is to go, and how. Errors of
// decide go to faults, to which those of the desired state belong already.
func Sort[K Key, I Item[K]](
	ctx context.Context, current, desired State[K, I], faults *Faults,
	decide func(have I, found bool, want I) (I, error), remove func(have I) (deletion I, gone bool),
) (created, updated, removed State[K, I]) {
	there, wanted := current.ByKey(), desired.ByKey()
	for _, have := range current.Items {
		if _, stays := wanted[have.Key()]; stays {
			continue
		}
		if deletion, gone := remove(have); gone {
			removed.Items = append(removed.Items, deletion)
		}
	}
	for _, want := range desired.Items {
		have, found := there[want.Key()]
		it, err := decide(have, found, want)
		if faults.Add(ctx, err) {
			break
		}
		if err != nil {
			continue
		}
		switch it.Action() {
		case plan.Create:
			created.Items = append(created.Items, it)
		case plan.Update:
			updated.Items = append(updated.Items, it)
		case plan.Delete:
			removed.Items = append(removed.Items, it)
		}
	}
	return created, updated, removed
}

// PatchOf returns the patch with these parts, or nil when nothing is to be done. What was created last is deleted first.
func PatchOf[K Key, I Item[K]](create, update, remove State[K, I]) *framework.TypedPatch[State[K, I]] {
	return patch.Of(func(s State[K, I]) bool { return !s.Empty() }, create, update, remove.Reversed())
}
