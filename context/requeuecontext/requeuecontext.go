// Package requeuecontext stores and accesses the request to look at an object again after some time.
//
// A resource that waits for something no watch tells about asks for the next look instead of returning an error: nothing
// is logged, counted or backed off. When several ask, resources or callers of Framework.EnqueueAfter, the earliest time counts. A
// change of the object before that time reconciles it at once, as always, and the look that was asked for comes all the same.
//
//	if !certificate.Issued() {
//		requeuecontext.SetAfter(ctx, time.Minute)
//		return nil
//	}
//
// A reconciliation that fails all the same, in this resource or a later one, is tried again with its backoff, or after the time
// asked for if that is shorter; the backoff is not reset by it. So what waits for a time does not wait for what fails.
//
// On a context without the signal SetAfter does nothing and After is false.
package requeuecontext

import (
	"context"
	"time"

	"github.com/operatorkit/operatorkit/context/signal"
)

// NewContext returns a child of ctx that carries the request, empty so far.
func NewContext(ctx context.Context) context.Context {
	return signal.WithRequeue(ctx)
}

// SetAfter asks for the next reconciliation of the current object after d.
func SetAfter(ctx context.Context, d time.Duration) {
	signal.SetRequeue(ctx, d)
}

// After returns the shortest duration that was asked for, and false when none was.
func After(ctx context.Context) (time.Duration, bool) {
	return signal.Requeue(ctx)
}
