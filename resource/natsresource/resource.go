package natsresource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// vanishing is when the primary is looked at again while one of its entries is on its way out: sooner, if the entries are
// watched.
const vanishing = 2 * time.Second

// resource is the logic of the CRUD resource.
type resource[O any, T natsinformer.Entity] struct {
	config Config[O, T]
}

// Name implements framework.TypedCRUDResourceOps.
func (r *resource[O, T]) Name() string { return r.config.Name }

// FormerNames implements framework.FormerNamer.
func (r *resource[O, T]) FormerNames() []string { return r.config.FormerNames }

// NewUpdatePatch implements framework.TypedCRUDResourceOps.
func (r *resource[O, T]) NewUpdatePatch(ctx context.Context, obj O, current, desired State[T]) (*framework.TypedPatch[State[T]], error) {
	if desired.Terminating {
		return nil, nil
	}
	p, err := r.ownership(ctx, obj)
	if err != nil {
		return nil, err
	}

	faults := newFaults(desired.Faults...)
	create, update, remove := keyed.Sort(ctx, current, desired, faults,
		func(have item[T], found bool, want item[T]) (item[T], error) {
			return r.decide(ctx, p, have, found, want)
		},
		func(have item[T]) (item[T], bool) {
			return deletion(have), r.deletable(have) && !have.claim.LeftToOthers(ctx, have.key)
		})
	return keyed.PatchOf(create, update, remove), faults.Err()
}

// newFaults collects errors of entries that fail each for itself.
func newFaults(errs ...error) *keyed.Faults {
	return keyed.NewFaults(func(err error) bool {
		return errors.As(err, new(*RefusedError)) || errors.Is(err, natsinformer.ErrUndecodable)
	}, errs...)
}

// NewDeletePatch implements framework.TypedCRUDResourceOps. While the source is out of contact, it is an error: an entry may have been
// created that the source has not seen, such as by a write that got no answer, and once the primary is gone nobody looks for it any more.
func (r *resource[O, T]) NewDeletePatch(ctx context.Context, _ O, current, _ State[T]) (*framework.TypedPatch[State[T]], error) {
	if err := r.config.Source.Status().LastError; err != nil {
		return nil, fmt.Errorf("source %s is out of contact, and may lack entries of the primary: %w", r.config.Source.Name(), err)
	}
	var remove State[T]
	for _, have := range current.Items {
		if have.claim.LeftToOthers(ctx, have.key) {
			continue
		}
		if r.waits(have) {
			finalizerskeptcontext.SetKept(ctx)
			requeuecontext.SetAfter(ctx, vanishing)
		}
		if r.deletable(have) {
			remove.Items = append(remove.Items, deletion(have))
		}
	}
	return keyed.PatchOf(State[T]{}, State[T]{}, remove), nil
}

// waits tells whether somebody else has to clean up after the entry before it can go.
func (r *resource[O, T]) waits(have item[T]) bool {
	return r.config.RequestDeletion || len(have.content.GetFinalizers()) > 0
}

// deletable tells whether there is something to do in order to delete an entry of the current state.
func (r *resource[O, T]) deletable(have item[T]) bool {
	return have.content.GetDeletionTimestamp() == nil || !r.waits(have)
}

func deletion[T natsinformer.Entity](have item[T]) item[T] {
	have.action = plan.Delete
	return have
}

// ownership returns who the entries of obj belong to.
func (r *resource[O, T]) ownership(ctx context.Context, obj O) (ownership, error) {
	key, err := keyed.OwnerKey(obj, r.config.OwnerKey)
	if err != nil {
		return ownership{}, err
	}
	scope := identity.From(ctx)
	marks := scope.Marks(r.config.Name, r.config.FormerNames)
	return ownership{owner: owner{r.config.Kind, key, madeBy(marks[0])}, scope: scope, marks: marks}, nil
}

// claim returns an entry that exists as one that the resource may write; the error says why it may not.
func (r *resource[O, T]) claim(p ownership, have item[T]) (item[T], error) {
	have.claim = claimOn(have.content.EntityMeta(), p)
	if have.claim.Writable(r.config.Adopt) {
		return have, nil
	}
	return have, &RefusedError{Entry: have.key, Reason: have.claim.Reason, Adoptable: have.claim.Holder == keyed.Free}
}

func (r *resource[O, T]) key(name string) Key { return Key{Bucket: r.config.Bucket.Name(), Name: name} }
