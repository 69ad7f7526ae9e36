// Package finalizerskeptcontext stores and accesses the signal that keeps the finalizer of an
// object that is being deleted.
//
// A resource that needs more than one reconciliation to clean up calls SetKept in a deletion. All
// resources still run. The finalizer stays, and the deletion is retried with backoff, or after the
// time requested through requeuecontext.
//
//	if !volume.Gone() {
//		finalizerskeptcontext.SetKept(ctx)
//		requeuecontext.SetAfter(ctx, 30*time.Second)
//	}
//
// In an update the signal has no effect. On a context without it SetKept does nothing and IsKept is
// false.
package finalizerskeptcontext

import (
	"context"

	"github.com/operatorkit/operatorkit/context/signal"
)

// NewContext returns a child of ctx that carries the signal, not set.
func NewContext(ctx context.Context) context.Context {
	return signal.With(ctx, signal.FinalizersKept)
}

// SetKept keeps the finalizer in the current deletion.
func SetKept(ctx context.Context) {
	signal.Set(ctx, signal.FinalizersKept)
}

// IsKept reports whether the finalizer is kept in the current deletion.
func IsKept(ctx context.Context) bool {
	set, _ := signal.Lookup(ctx, signal.FinalizersKept)
	return set
}
