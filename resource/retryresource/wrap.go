package retryresource

import (
	"fmt"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/framework"
)

// The numbers of DefaultBackOff.
const (
	// DefaultInitialInterval is about how long the first wait takes.
	DefaultInitialInterval = 100 * time.Millisecond
	// DefaultMaxInterval is about how long a single wait can get.
	DefaultMaxInterval = 3 * time.Second
	// DefaultMaxElapsedTime is how long after the beginning of a step its last attempt starts at the latest.
	DefaultMaxElapsedTime = 10 * time.Second
)

// DefaultBackOff returns the backoff used when Config has no BackOffFactory: waits of 100 milliseconds, doubled each
// time up to 3 seconds, each randomised by half, and no further attempt 10 seconds after the step began.
func DefaultBackOff() backoff.BackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(DefaultInitialInterval),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(DefaultMaxInterval),
		backoff.WithMaxElapsedTime(DefaultMaxElapsedTime),
	)
}

// Config configures Wrap.
type Config struct {
	// Logger receives a warning for every attempt that failed and is followed by another one. Required.
	Logger micrologger.Logger
	// BackOffFactory returns a new backoff. It is called once for every call of a step, from several goroutines at the
	// same time. A backoff that never stops has the step retried until the context ends. Default: DefaultBackOff.
	BackOffFactory func() backoff.BackOff
}

// Wrap returns resources like the given ones whose every step is retried. The given slice and resources stay as they
// are. It returns an error for which framework.IsInvalidConfig holds when the config lacks something or a resource is
// nil.
func Wrap(resources []framework.Resource, config Config) ([]framework.Resource, error) {
	var faults []string
	if config.Logger == nil {
		faults = append(faults, "Logger must not be nil")
	}
	for i, r := range resources {
		if r == nil {
			faults = append(faults, fmt.Sprintf("resources[%d] must not be nil", i))
		}
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("%w: retryresource.Config: %s", framework.ErrInvalidConfig, strings.Join(faults, "; "))
	}
	if config.BackOffFactory == nil {
		config.BackOffFactory = DefaultBackOff
	}

	r := retrier{logger: config.Logger, newBackOff: config.BackOffFactory}
	wrapped := make([]framework.Resource, 0, len(resources))
	for _, resource := range resources {
		wrapped = append(wrapped, framework.WrapSteps(resource, r.retry))
	}
	return wrapped, nil
}
