// Package requeuecontext stores and accesses the request to reconcile an object again after some
// time.
//
// A resource that waits for a change that no watch reports requests a requeue instead of returning
// an error: nothing is logged, counted or backed off. If several resources or callers of
// Framework.EnqueueAfter request one, the earliest time counts. A change of the object before that
// time reconciles it at once, as always, and the requested requeue still happens.
//
//	if !certificate.Issued() {
//		requeuecontext.SetAfter(ctx, time.Minute)
//		return nil
//	}
//
// A reconciliation that fails nevertheless, in this resource or a later one, is retried with its
// backoff, or after the requested time if that is shorter. The request does not reset the backoff.
// So a failure does not delay a requested requeue.
//
// On a context without the signal SetAfter does nothing and After is false.
package requeuecontext

import (
	"context"
	"time"

	"github.com/operatorkit/operatorkit/context/signal"
)

// NewContext returns a child of ctx that carries the request, which is still empty.
func NewContext(ctx context.Context) context.Context {
	return signal.WithRequeue(ctx)
}

// SetAfter requests the next reconciliation of the current object after d.
func SetAfter(ctx context.Context, d time.Duration) {
	signal.SetRequeue(ctx, d)
}

// After returns the shortest requested duration, and false without a request.
func After(ctx context.Context) (time.Duration, bool) {
	return signal.Requeue(ctx)
}
