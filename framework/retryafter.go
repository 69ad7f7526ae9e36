package framework

import (
	"context"
	"time"
)

// RetryAfterError is the error of a step that has tries left. A Framework retries the object after
// After instead of the pause of its backoff, and does not report a failure: that is up to the code
// that returns the error. Elsewhere it is an ordinary error. Wrappers of steps return it, such as
// retryresource, if they would have to wait for long.
type RetryAfterError struct {
	// After is the pause before the next try.
	After time.Duration
	// Err is the error of this try.
	Err error
}

// Error implements error.
func (e *RetryAfterError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the try.
func (e *RetryAfterError) Unwrap() error { return e.Err }

// retriesAfter is access.RetriesAfter.
func retriesAfter(ctx context.Context) bool {
	s := scopeOf(ctx)
	return s != nil && s.reconciliation.activity != nil
}

// lastTry is access.LastTry.
func lastTry(ctx context.Context) error {
	if !retriesAfter(ctx) {
		return nil
	}
	r := scopeOf(ctx).reconciliation
	last, _ := r.framework.failures.Get(r.key)
	return last.later
}
