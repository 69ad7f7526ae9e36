package framework_test

import (
	"context"
	"sync/atomic"

	"github.com/operatorkit/operatorkit/context/deletionallowedcontext"
	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
)

func cancelReconciliation(ctx context.Context) { reconciliationcanceledcontext.SetCanceled(ctx) }

func keepFinalizers(ctx context.Context) { finalizerskeptcontext.SetKept(ctx) }

func allowDeletion(ctx context.Context) { deletionallowedcontext.SetDeletionAllowed(ctx) }

// forbidDeletionUntilAllowed is an InitCtx that forbids the deletion; the resource named gate allows it half-way, so
// that the first try after allowed is set is not complete either.
func forbidDeletionUntilAllowed(allowed *atomic.Bool) func(context.Context, any) (context.Context, error) {
	var tries atomic.Int32
	return func(ctx context.Context, _ any) (context.Context, error) {
		ctx = deletionallowedcontext.NewContext(ctx)
		if allowed.Load() && tries.Add(1) > 1 {
			deletionallowedcontext.SetDeletionAllowed(ctx)
		}
		return ctx, nil
	}
}
