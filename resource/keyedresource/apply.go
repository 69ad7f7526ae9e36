package keyedresource

import (
	"context"
	"fmt"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/internal/panics"
)

// Apply implements keyed.Backend.
func (r *things[O, T]) Apply(ctx context.Context, it item[T]) (done string, err error) {
	do := r.config.Put
	switch it.Change.Action {
	case plan.Create:
		done = "put a new thing"
	case plan.Update:
		done = "put a thing"
	case plan.Delete:
		done, do = "deleted a thing", r.config.Delete
	}
	if err := panics.Recovered(func() error { return do(ctx, r.obj, it.Thing) }); err != nil {
		return "", fmt.Errorf("%s %s: %w", it.Change.Action, it.Key, err)
	}
	if r.journal != nil && it.Change.Action == plan.Delete && !r.config.WaitForDeletion {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.journal.stale = append(r.journal.stale, it.Key.Name)
	}
	return done, nil
}
