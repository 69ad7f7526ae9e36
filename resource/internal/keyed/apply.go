package keyed

import (
	"context"
	"strings"

	"github.com/giantswarm/micrologger"

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

// apply makes the changes, each also if another one fails.
func (e *Engine[O, K, C]) apply(ctx context.Context, obj O, change State[K, C]) error {
	ctx, b, err := e.backend(ctx, obj, change.Note)
	if err != nil {
		return err
	}
	faults := e.faults()
	for _, it := range change.Items {
		done, err := b.Apply(ctx, it)
		if err == nil {
			logWrite(ctx, e.Config.Logger, done, it)
		}
		if faults.add(ctx, err) {
			break
		}
	}
	return faults.err()
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
