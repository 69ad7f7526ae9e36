package metricsresource

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// collectors are the metrics of all lists that were wrapped with one registerer.
type collectors struct {
	seconds *prometheus.HistogramVec
	errors  *prometheus.CounterVec
}

// newCollectors registers the collectors, or returns those that are registered already.
func newCollectors(config Config) (*collectors, error) {
	namespace, subsystem, buckets := config.Namespace, config.Subsystem, config.Buckets
	if namespace == "" {
		namespace = DefaultNamespace
	}
	if subsystem == "" {
		subsystem = DefaultSubsystem
	}
	if len(buckets) == 0 {
		buckets = prometheus.DefBuckets
	}
	labels := []string{"set", "resource", "step"}

	seconds, err := register(config.Registerer, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "step_duration_seconds",
		Help:    "How long the steps of resources took, in seconds, failed ones included.",
		Buckets: buckets,
	}, labels))
	if err != nil {
		return nil, err
	}
	errs, err := register(config.Registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "step_errors_total",
		Help: "How many steps of resources ended with an error.",
	}, labels))
	if err != nil {
		return nil, err
	}
	return &collectors{seconds: seconds, errors: errs}, nil
}

// register registers a collector, or returns the one of the same name and labels that is there.
func register[C prometheus.Collector](to prometheus.Registerer, c C) (C, error) {
	err := to.Register(c)
	if err == nil {
		return c, nil
	}
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing, nil
		}
	}
	return c, fmt.Errorf("register the metrics of resources: %w: choose another Namespace or Subsystem", err)
}
