package framework

import (
	"context"
	"time"
)

// RetryAfterError is the error of a step that has not used up its tries. A Framework tries the object again after After in place of
// the pause of its backoff, and does not tell of a failure: that is up to who returns the error. Elsewhere it is an error like
// others. It is what a wrapper of steps returns that would have to wait for long, such as retryresource.
type RetryAfterError struct {
	// After is the pause before the next try.
	After time.Duration
	// Err is why this one failed.
	Err error
}

// Error implements error.
func (e *RetryAfterError) Error() string { return e.Err.Error() }

// Unwrap returns why the try failed.
func (e *RetryAfterError) Unwrap() error { return e.Err }

// RetriesAfter tells whether the step of a resource is run for the queue of a Framework, which heeds a RetryAfterError.
func RetriesAfter(ctx context.Context) bool {
	s := scopeOf(ctx)
	return s != nil && s.reconciliation.activity != nil
}

// LastTry returns the error with which the last reconciliation of the same object ended if there is a RetryAfterError in its chain, so
// that a wrapper of steps finds what it knew then; nil otherwise, and outside of the step of a resource.
func LastTry(ctx context.Context) error {
	if !RetriesAfter(ctx) {
		return nil
	}
	r := scopeOf(ctx).reconciliation
	last, _ := r.in.failures.Get(r.key)
	return last.later
}
