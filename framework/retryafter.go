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

// RetriesAfter reports whether the step of a resource is run for the queue of a Framework, which
// handles a RetryAfterError.
func RetriesAfter(ctx context.Context) bool {
	s := scopeOf(ctx)
	return s != nil && s.reconciliation.activity != nil
}

// LastTry returns the error of the last reconciliation of the same object if there is a
// RetryAfterError in its chain, so that a wrapper of steps finds its earlier state. Otherwise, and
// outside the step of a resource, it returns nil.
func LastTry(ctx context.Context) error {
	if !RetriesAfter(ctx) {
		return nil
	}
	r := scopeOf(ctx).reconciliation
	last, _ := r.in.failures.Get(r.key)
	return last.later
}
