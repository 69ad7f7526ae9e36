package keyed

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/giantswarm/micrologger"
	"golang.org/x/sync/errgroup"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
)

// ApplyCreateChange implements framework.TypedCRUDResourceOps.
func (e *Engine[O, K, C]) ApplyCreateChange(ctx context.Context, obj O, change State[K, C]) error {
	return e.apply(ctx, obj, change)
}

// ApplyUpdateChange implements framework.TypedCRUDResourceOps.
func (e *Engine[O, K, C]) ApplyUpdateChange(ctx context.Context, obj O, change State[K, C]) error {
	return e.apply(ctx, obj, change)
}

// ApplyDeleteChange implements framework.TypedCRUDResourceOps.
func (e *Engine[O, K, C]) ApplyDeleteChange(ctx context.Context, obj O, change State[K, C]) error {
	return e.apply(ctx, obj, change)
}

// apply makes the changes, each also if another one of its rank fails.
func (e *Engine[O, K, C]) apply(ctx context.Context, obj O, change State[K, C]) error {
	ctx, b, err := e.backend(ctx, obj, change.Note)
	if err != nil {
		return err
	}
	faults := e.faults()
	for items := change.Items; len(items) > 0; {
		n := e.sameRank(items)
		if e.applyRank(ctx, b, items[:n], faults) || e.Rank != nil && len(faults.errs) > 0 {
			break
		}
		items = items[n:]
	}
	return faults.err()
}

// sameRank returns how many of the first things have the same rank.
func (e *Engine[O, K, C]) sameRank(items []Item[K, C]) int {
	if e.Rank != nil {
		first := e.Rank(items[0].Thing)
		if n := slices.IndexFunc(items, func(it Item[K, C]) bool { return e.Rank(it.Thing) != first }); n > 0 {
			return n
		}
	}
	return len(items)
}

// applyRank makes changes of things of one rank. Stop is true when others would fail as well.
func (e *Engine[O, K, C]) applyRank(
	ctx context.Context, b Backend[K, C], items []Item[K, C], faults *faults,
) (stop bool) {
	var mu sync.Mutex // guards stop and faults
	stopped := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return stop
	}
	one := func(it Item[K, C]) {
		if stopped() {
			return
		}
		done, err := b.Apply(ctx, it)
		if err == nil {
			logWrite(ctx, e.Config.Logger, done, it)
		}
		mu.Lock()
		defer mu.Unlock()
		stop = faults.add(ctx, err) || stop
	}
	var running errgroup.Group
	running.SetLimit(max(1, e.Concurrency))
	for _, it := range items {
		if e.Concurrency > 1 {
			running.Go(func() error { one(it); return nil })
		} else {
			one(it)
		}
	}
	_ = running.Wait() // The errors are among the faults.
	return stop
}

// logWrite logs which thing was written. Of an update it logs which fields have changed, without
// values, and from what former mark the thing was adopted.
func logWrite[K Key, C any](ctx context.Context, logger micrologger.Logger, message string, it Item[K, C]) {
	fields := []any{"level", "info", "message", message, "written", it.Key.String()}
	if it.Change.Action == plan.Update {
		var paths []string
		for _, f := range it.Change.Fields {
			paths = append(paths, f.Path)
		}
		fields = append(fields, "fields", strings.Join(paths, ", "))
		if from := it.Claim.Takeover(); from != "" {
			fields = append(fields, "takeover", from)
		}
	}
	framework.Logger(ctx, logger).LogCtx(ctx, fields...)
}
