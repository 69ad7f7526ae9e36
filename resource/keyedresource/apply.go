package keyedresource

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/panics"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// ApplyCreateChange implements framework.TypedCRUDResourceOps.
func (r *resource[O, T]) ApplyCreateChange(ctx context.Context, obj O, change State[T]) error {
	return r.put(ctx, obj, change, "put a new thing")
}

// ApplyUpdateChange implements framework.TypedCRUDResourceOps.
func (r *resource[O, T]) ApplyUpdateChange(ctx context.Context, obj O, change State[T]) error {
	return r.put(ctx, obj, change, "put a thing")
}

// put puts things after their keys have been added to the journal.
func (r *resource[O, T]) put(ctx context.Context, obj O, change State[T], done string) error {
	ctx, _, err := r.ownership(ctx, obj)
	if err != nil {
		return err
	}
	names := slices.Clone(change.bequest)
	for _, it := range change.Items {
		names = append(names, it.key.Name)
	}
	if err := change.journal.add(ctx, names); err != nil {
		return err
	}
	_, err = r.each(ctx, change, done, func(it item[T]) error { return r.config.Put(ctx, obj, it.content) })
	return err
}

// ApplyDeleteChange implements framework.TypedCRUDResourceOps. It removes the keys of deleted things from the journal, or leaves
// that to a later reconciliation, which does not find the things, if deletions take time.
func (r *resource[O, T]) ApplyDeleteChange(ctx context.Context, obj O, change State[T]) error {
	ctx, _, err := r.ownership(ctx, obj)
	if err != nil {
		return err
	}
	gone, err := r.each(ctx, change, "deleted a thing", func(it item[T]) error { return r.config.Delete(ctx, obj, it.content) })
	if r.config.WaitForDeletion {
		gone = nil
	}
	if noted := change.journal.remove(ctx, append(gone, change.stale...)); noted != nil {
		return framework.Partial(err, noted)
	}
	return err
}

// each calls do for each thing, and returns the names of the things for which do has succeeded.
func (r *resource[O, T]) each(
	ctx context.Context, change State[T], done string, do func(item[T]) error,
) (names []string, err error) {
	err = keyed.Each(ctx, change.State, newFaults(), func(it item[T]) error {
		if err := panics.Recovered(func() error { return do(it) }); err != nil {
			return fmt.Errorf("%s %s: %w", it.action, it.key, err)
		}
		names = append(names, it.key.Name)
		r.log(ctx, done, it)
		return nil
	})
	return names, err
}

// newFaults collects the errors of things. An error concerns one thing only unless the system has not answered.
func newFaults(errs ...error) *keyed.Faults {
	return keyed.NewFaults(func(err error) bool { return !errors.As(err, new(net.Error)) }, errs...)
}

func (r *resource[O, T]) log(ctx context.Context, message string, it item[T]) {
	from := ""
	if it.claim.IsFormer() {
		from = it.claim.Former.String()
	}
	keyed.Log(ctx, r.config.Logger, message, it, from)
}
