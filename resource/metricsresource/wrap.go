package metricsresource

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/faults"
)

// The defaults of Config.
const (
	DefaultNamespace = "operatorkit"
	DefaultSubsystem = "resource"
)

// Config configures Wrap.
type Config struct {
	// Registerer takes the collectors. Required.
	Registerer prometheus.Registerer
	// Name is the value of the label "set": it tells lists of resources apart, for example by framework and version.
	// It must not depend on an object. Default: empty.
	Name string
	// Namespace is the first part of the metrics' names. Default: DefaultNamespace.
	Namespace string
	// Subsystem is the second part of the metrics' names. Default: DefaultSubsystem.
	Subsystem string
	// Buckets are the upper bounds of the histogram's buckets, in seconds. When collectors are shared, those of the
	// first registration hold. Default: prometheus.DefBuckets.
	Buckets []float64
}

// Wrap returns resources like the given ones whose every step is measured. The given slice and resources stay as they
// are. It returns an error for which framework.IsInvalidConfig holds when the config lacks something or a resource is
// nil, and an error of the registerer when it holds something else under the same name.
func Wrap(resources []framework.Resource, config Config) ([]framework.Resource, error) {
	var wrong faults.List
	wrong.If(config.Registerer == nil, "Registerer must not be nil")
	for i, r := range resources {
		wrong.If(faults.IsNil(r), "resources[%d] must not be nil", i)
	}
	if err := wrong.Of("metricsresource.Config"); err != nil {
		return nil, err
	}

	c, err := newCollectors(config)
	if err != nil {
		return nil, err
	}
	wrapped := make([]framework.Resource, 0, len(resources))
	for _, r := range resources {
		wrapped = append(wrapped, framework.WrapSteps(r, c.measure(config.Name, r.Name())))
	}
	return wrapped, nil
}

// measure returns the middleware for one resource. The resource's name is asked for once, so that it can't multiply
// the series.
func (c *collectors) measure(set, resource string) framework.Middleware {
	return func(ctx context.Context, info framework.StepInfo, next func(context.Context) error) error {
		step := stepLabel(info.Step)
		start := time.Now()
		err := next(ctx)
		c.seconds.WithLabelValues(set, resource, step).Observe(time.Since(start).Seconds())
		// The series of a step that never failed is there too, at zero: a rate needs it to see the first error.
		errors := c.errors.WithLabelValues(set, resource, step)
		if err != nil {
			errors.Inc()
		}
		return err
	}
}

// stepLabel bounds the label: steps that a resource made up count as one.
func stepLabel(s framework.Step) string {
	switch s {
	case framework.StepEnsureCreated, framework.StepEnsureDeleted,
		framework.StepGetCurrentState, framework.StepGetDesiredState,
		framework.StepNewUpdatePatch, framework.StepNewDeletePatch,
		framework.StepApplyCreateChange, framework.StepApplyUpdateChange, framework.StepApplyDeleteChange:
		return string(s)
	}
	return "other"
}
