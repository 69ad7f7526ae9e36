package framework

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// maxRetryInterval is the longest pause between two tries of a failing object, and the pause when a BackOff says stop:
// nothing is dropped as long as its object exists.
const maxRetryInterval = 5 * time.Minute

// DefaultBackOffFactory returns the factory that is used when none is configured: pauses from 500 ms on, doubling up to
// five minutes, each 50 % more or less by chance, without an end.
func DefaultBackOffFactory() func() backoff.BackOff {
	return func() backoff.BackOff {
		return backoff.NewExponentialBackOff(
			backoff.WithInitialInterval(500*time.Millisecond),
			backoff.WithMultiplier(2),
			backoff.WithRandomizationFactor(0.5),
			backoff.WithMaxInterval(maxRetryInterval),
			backoff.WithMaxElapsedTime(0),
		)
	}
}

// wait waits for a pause of a BackOff, or for the end of ctx.
func wait(ctx context.Context, pause time.Duration) {
	if pause == backoff.Stop {
		pause = maxRetryInterval
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
