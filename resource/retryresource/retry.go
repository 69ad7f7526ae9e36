package retryresource

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/context/resourcecanceledcontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/access"
	"github.com/operatorkit/operatorkit/internal/panics"
)

// retrier is the middleware around the steps.
type retrier struct {
	logger     micrologger.Logger
	newBackOff func() backoff.BackOff
	maxWait    time.Duration
}

// errAgain is what an attempt returns to the library that is to be followed by another one. What it returned itself may have a
// permanent error somewhere in it.
var errAgain = errors.New("try again")

// retry carries out a step until it succeeds, must not be repeated, or its backoff or context ends. When it would have to wait for
// long, it leaves the rest of the tries to a later reconciliation.
func (r *retrier) retry(ctx context.Context, info framework.StepInfo, next func(context.Context) error) error {
	t := r.resume(ctx, info)
	wait := t.wait(ctx, r.maxWait)
	notify := func(error, time.Duration) { t.log(ctx, r.logger, wait.last) }
	// The library takes the mark of a permanent error off, and forgets the last error when the context ends: what
	// the step itself returned is the better answer.
	err := backoff.RetryNotify(func() error {
		t.attempts++
		t.err = next(ctx)
		switch {
		case t.err == nil:
			return nil
		case repeatable(ctx, t.err):
			return errAgain
		}
		return backoff.Permanent(errAgain)
	}, backoff.WithContext(wait, ctx), notify)

	var later *framework.RetryAfterError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && !errors.Is(t.err, ctx.Err()):
		return fmt.Errorf("retrying ended: %w: attempt %d: %w", ctx.Err(), t.attempts, t.err)
	case errors.As(t.err, &later):
		// A wrapper further inside has not used up its tries: this attempt goes on later.
		t.attempts--
		return &framework.RetryAfterError{After: later.After, Err: t}
	case wait.postponed:
		t.log(ctx, r.logger, wait.last)
		return &framework.RetryAfterError{After: wait.last, Err: t}
	case t.attempts > 1:
		t.over.Store(true)
		return t
	}
	return t.err
}

// repeatable tells whether another attempt may end otherwise.
func repeatable(ctx context.Context, err error) bool {
	var panicked *panics.Error
	var later *framework.RetryAfterError
	return !framework.IsPermanent(err) &&
		!errors.As(err, &panicked) &&
		!errors.As(err, &later) &&
		!resourcecanceledcontext.IsCanceled(ctx) &&
		!reconciliationcanceledcontext.IsCanceled(ctx)
}

// tries are those of one step for one object, over several reconciliations if need be. They are an error too: the one by which the next
// reconciliation finds them.
type tries struct {
	of       *retrier
	info     framework.StepInfo
	backOff  backoff.BackOff
	attempts int
	err      error
	// over is true once they were used up, or a later reconciliation goes on with them.
	over atomic.Bool
}

// resume returns the tries that the last reconciliation of the object has left, or new ones.
func (r *retrier) resume(ctx context.Context, info framework.StepInfo) *tries {
	for err := access.LastTry(ctx); err != nil; {
		var left *tries
		if !errors.As(err, &left) {
			break
		}
		if left.of == r && left.info == info && left.over.CompareAndSwap(false, true) {
			return &tries{of: r, info: info, backOff: left.backOff, attempts: left.attempts}
		}
		err = left.err
	}
	b := r.newBackOff()
	if b == nil {
		b = DefaultBackOff()
	}
	b.Reset()
	return &tries{of: r, info: info, backOff: b}
}

// Error implements error.
func (t *tries) Error() string { return fmt.Sprintf("attempt %d: %s", t.attempts, t.err) }

// Unwrap returns what the last attempt returned.
func (t *tries) Unwrap() error { return t.err }

func (t *tries) log(ctx context.Context, logger micrologger.Logger, wait time.Duration) {
	framework.Logger(ctx, logger).LogCtx(ctx, "level", "warning", "message", "retrying", "resource", t.info.Resource,
		"step", string(t.info.Step), "attempt", t.attempts, "wait", wait.String(), "error", t.err.Error())
}

// wait returns the pauses between the tries, as far as they take place in this reconciliation.
func (t *tries) wait(ctx context.Context, most time.Duration) *pauses {
	if !access.RetriesAfter(ctx) {
		most = math.MaxInt64
	}
	return &pauses{backOff: t.backOff, left: most}
}

// pauses are those of a backoff until they take too long together.
type pauses struct {
	backOff backoff.BackOff
	// left is how long they may take from now on, last is the last one, and postponed whether that was too long.
	left, last time.Duration
	postponed  bool
}

// NextBackOff implements backoff.BackOff.
func (p *pauses) NextBackOff() time.Duration {
	p.last = p.backOff.NextBackOff()
	p.postponed = p.last > p.left
	if p.last == backoff.Stop || p.postponed {
		return backoff.Stop
	}
	p.left -= p.last
	return p.last
}

// Reset implements backoff.BackOff. The library calls it, also when tries go on that have begun before.
func (p *pauses) Reset() {}
