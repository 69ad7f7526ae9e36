package retryresource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/context/resourcecanceledcontext"
	"github.com/operatorkit/operatorkit/framework"
)

// retrier is the middleware around the steps.
type retrier struct {
	logger     micrologger.Logger
	newBackOff func() backoff.BackOff
}

// retry carries out a step until it succeeds, must not be repeated, or its backoff or context ends.
func (r retrier) retry(ctx context.Context, info framework.StepInfo, next func(context.Context) error) error {
	var last error
	attempts := 0
	attempt := func() error {
		attempts++
		last = next(ctx)
		if last == nil || repeatable(ctx, last) {
			return last
		}
		return backoff.Permanent(last)
	}
	notify := func(err error, wait time.Duration) {
		framework.Logger(ctx, r.logger).LogCtx(ctx, "level", "warning", "message", "retrying", "resource", info.Resource,
			"step", string(info.Step), "attempt", attempts, "wait", wait.String(), "error", err.Error())
	}

	// The library takes the mark of a permanent error off, and forgets the last error when the context ends: what
	// the step itself returned is the better answer.
	err := backoff.RetryNotify(attempt, backoff.WithContext(r.newBackOff(), ctx), notify)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && !errors.Is(last, ctx.Err()):
		return fmt.Errorf("retrying ended: %w: attempt %d: %w", ctx.Err(), attempts, last)
	case attempts > 1:
		return fmt.Errorf("attempt %d: %w", attempts, last)
	}
	return last
}

// repeatable tells whether another attempt may end otherwise.
func repeatable(ctx context.Context, err error) bool {
	var panicked *framework.PanicError
	return !framework.IsPermanent(err) &&
		!errors.As(err, &panicked) &&
		!resourcecanceledcontext.IsCanceled(ctx) &&
		!reconciliationcanceledcontext.IsCanceled(ctx)
}
