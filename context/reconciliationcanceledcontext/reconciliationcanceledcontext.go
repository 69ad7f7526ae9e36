// Package reconciliationcanceledcontext stores and accesses the signal that cancels the rest of a
// reconciliation.
//
// After SetCanceled no further step of this resource and no further resource runs. It is not an
// error: an update counts as done until the object changes again (or until the time requested
// through requeuecontext). A deletion does not count as done: the finalizer stays, and the deletion
// is retried with backoff.
//
//	if machine.Provisioning() {
//		reconciliationcanceledcontext.SetCanceled(ctx)
//		requeuecontext.SetAfter(ctx, 10*time.Second)
//		return nil
//	}
//
// On a context without the signal SetCanceled does nothing and IsCanceled is false.
package reconciliationcanceledcontext

import (
	"context"

	"github.com/operatorkit/operatorkit/context/signal"
)

// NewContext returns a child of ctx that carries the signal, not set.
func NewContext(ctx context.Context) context.Context {
	return signal.With(ctx, signal.ReconciliationCanceled)
}

// SetCanceled cancels the rest of the current reconciliation.
func SetCanceled(ctx context.Context) {
	signal.Set(ctx, signal.ReconciliationCanceled)
}

// IsCanceled reports whether the rest of the current reconciliation is cancelled.
func IsCanceled(ctx context.Context) bool {
	set, _ := signal.Lookup(ctx, signal.ReconciliationCanceled)
	return set
}
