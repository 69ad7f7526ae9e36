package objectresource

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// vanishing is when the primary is looked at again while one of its objects is on its way out: sooner, if the object is
// watched.
const vanishing = 2 * time.Second

// resource is the logic of the CRUD resource.
type resource[O any] struct {
	config  Config[O]
	kinds   []kind
	settled settled
	// replaced are the kinds of Config.Replace.
	replaced []schema.GroupVersionKind
}

// Name implements framework.TypedCRUDResourceOps.
func (r *resource[O]) Name() string { return r.config.Name }

// FormerNames implements framework.FormerNamer.
func (r *resource[O]) FormerNames() []string { return r.config.FormerNames }

// Kinds implements framework.KindLister.
func (r *resource[O]) Kinds() []string {
	kinds := make([]string, 0, len(r.kinds))
	for _, k := range r.kinds {
		kinds = append(kinds, Key{GVK: k.gvk}.kind())
	}
	return kinds
}

// Rights implements framework.RightsLister. Kinds with a store are listed too, until that is synced.
func (r *resource[O]) Rights() []framework.Right {
	rights := make([]framework.Right, 0, len(r.kinds))
	for _, k := range r.kinds {
		right := framework.Right{Kind: k.gvk, Verbs: []string{"get", "list", "create", "patch", "delete"}, DryRun: []string{"patch"}}
		if slices.Contains(r.replaced, k.gvk) {
			right.DryRun = []string{"create", "patch"}
		}
		rights = append(rights, right)
	}
	return rights
}

// NewUpdatePatch implements framework.TypedCRUDResourceOps.
func (r *resource[O]) NewUpdatePatch(ctx context.Context, obj O, current, desired State) (*framework.TypedPatch[State], error) {
	if desired.Terminating {
		return nil, nil
	}
	own, err := r.ownership(ctx, obj)
	if err != nil {
		return nil, err
	}

	current.Items = once(current.Items, desired.Items)
	faults := newFaults(desired.Faults...)
	create, update, remove := keyed.Sort(ctx, current, desired, faults,
		func(have item, found bool, want item) (item, error) { return r.decide(ctx, own, have, found, want) },
		func(have item) (item, bool) { return deletion(have), own.cleansUp(ctx, have) && !have.terminating() })
	return keyed.PatchOf(create, update, remove), faults.Err()
}

// newFaults collects errors of objects that fail each for itself.
func newFaults(errs ...error) *keyed.Faults {
	return keyed.NewFaults(func(err error) bool { return errors.As(err, new(*RefusedError)) || meta.IsNoMatchError(err) }, errs...)
}

// NewDeletePatch implements framework.TypedCRUDResourceOps.
func (r *resource[O]) NewDeletePatch(ctx context.Context, obj O, current, _ State) (*framework.TypedPatch[State], error) {
	own, err := r.ownership(ctx, obj)
	if err != nil {
		return nil, err
	}
	var remove State
	left := r.removal(ctx, own, current.Items, &remove)
	if !left || !r.config.WaitForDeletion { // afterwards nobody looks for them any more
		lacked, err := r.lacked(ctx, obj, own, current)
		if err != nil {
			return nil, err
		}
		left = r.removal(ctx, own, lacked, &remove) || left
	}
	if left && r.config.WaitForDeletion {
		finalizerskeptcontext.SetKept(ctx)
		requeuecontext.SetAfter(ctx, vanishing)
	}
	return keyed.PatchOf(State{}, State{}, remove), nil
}

// removal adds what is deleted of some objects, and tells whether any of them has to go.
func (r *resource[O]) removal(ctx context.Context, own ownership, items []item, remove *State) (left bool) {
	for _, have := range once(items, nil) {
		r.settled.forget(have.key)
		if !own.cleansUp(ctx, have) {
			continue
		}
		left = true
		if !have.terminating() {
			remove.Items = append(remove.Items, deletion(have))
		}
	}
	return left
}

// once returns each object once, although Kinds and Stores may name its kind in several versions, in each of which the API server has it: in the
// version in which it is desired, or else in the first.
func once(items, desired []item) []item {
	chosen := make(map[Key]Key, len(items))
	for _, it := range slices.Concat(desired, items) {
		if _, ok := chosen[it.key.unversioned()]; !ok {
			chosen[it.key.unversioned()] = it.key
		}
	}
	return slices.DeleteFunc(slices.Clone(items), func(it item) bool { return chosen[it.key.unversioned()] != it.key })
}

func deletion(have item) item {
	have.action = plan.Delete
	have.version = have.content.GetResourceVersion()
	return have
}

// namespaces returns where the objects of obj may be.
func (r *resource[O]) namespaces(obj O, owner Owner) []string {
	if r.config.Namespaces != nil {
		return r.config.Namespaces(obj)
	}
	if owner.Namespace == "" {
		return []string{metav1.NamespaceAll}
	}
	return []string{owner.Namespace}
}
