package retryresource

import (
	"cmp"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/faults"
)

// The numbers of DefaultBackOff.
const (
	// DefaultInitialInterval is about how long the first wait takes.
	DefaultInitialInterval = 100 * time.Millisecond
	// DefaultMaxInterval is about how long a single wait can get.
	DefaultMaxInterval = 3 * time.Second
	// DefaultMaxWait is how long the waits of a step may take together before it is left to a later reconciliation.
	DefaultMaxWait = time.Second
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
	// same time; for nil DefaultBackOff takes its place. A backoff that never stops has the step retried until the context ends. Default: DefaultBackOff.
	BackOffFactory func() backoff.BackOff
	// MaxWait is how long the waits of one call of a step may take together where the queue of a framework can go on: before a wait
	// that would make them longer, the worker is given back, and the step's later tries count on in the reconciliation that
	// follows after that wait. Elsewhere, such as in ProcessUpdate and ReconcileObject, every wait takes place in the step.
	// Default: DefaultMaxWait (1 s).
	MaxWait time.Duration
}

// Wrap returns resources like the given ones whose every step is retried. The given slice and resources stay as they
// are. It returns an error for which framework.IsInvalidConfig holds when the config lacks something or a resource is
// nil.
func Wrap(resources []framework.Resource, config Config) ([]framework.Resource, error) {
	var wrong faults.List
	wrong.If(config.Logger == nil, "Logger must not be nil")
	wrong.If(config.MaxWait < 0, "MaxWait must not be negative, is %s", config.MaxWait)
	for i, r := range resources {
		wrong.If(faults.IsNil(r), "resources[%d] must not be nil", i)
	}
	if err := wrong.Of("retryresource.Config"); err != nil {
		return nil, err
	}
	if config.BackOffFactory == nil {
		config.BackOffFactory = DefaultBackOff
	}

	r := &retrier{logger: config.Logger, newBackOff: config.BackOffFactory, maxWait: cmp.Or(config.MaxWait, DefaultMaxWait)}
	wrapped := make([]framework.Resource, 0, len(resources))
	for _, resource := range resources {
		wrapped = append(wrapped, framework.WrapSteps(resource, r.retry))
	}
	return wrapped, nil
}
