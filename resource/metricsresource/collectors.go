package metricsresource

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/operatorkit/operatorkit/internal/collector"
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

// register adds to an error of the registerer what can be done.
func register[C prometheus.Collector](to prometheus.Registerer, c C) (C, error) {
	c, err := collector.Register(to, c)
	if err != nil {
		return c, fmt.Errorf("register the metrics of resources: %w: choose another Namespace or Subsystem", err)
	}
	return c, nil
}
