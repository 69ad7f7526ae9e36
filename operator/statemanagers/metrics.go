package statemanagers

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native"
)

// PrometheusSubsystem is the part of the names of all metrics after framework.PrometheusNamespace.
const PrometheusSubsystem = "statemanagers"

// Results of operations, as they stand in the metrics.
const (
	resultSuccess = "success"
	resultFailure = "failure"
)

// states are those of services, in the order in which they are lived through.
var states = []v1alpha1.ServicePhase{
	v1alpha1.ServiceStatePending, v1alpha1.ServiceStateProvisioning, v1alpha1.ServiceStateDeployed, v1alpha1.ServiceStateFailed,
	v1alpha1.ServiceStateDeleting, v1alpha1.ServiceStateDeleted,
}

// metrics measure what the frameworks do, and read the rest off the sources when they are asked for.
type metrics struct {
	sources    *sources
	providers  []string
	operations *prometheus.CounterVec
	durations  *prometheus.HistogramVec

	sets, services, drifted *prometheus.Desc
}

func newMetrics(s *sources, providers []string) *metrics {
	name := func(name string) string {
		return prometheus.BuildFQName(framework.PrometheusNamespace, PrometheusSubsystem, name)
	}
	m := &metrics{
		sources: s, providers: providers,
		operations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: name("operations_total"), Help: "Operations on services that were carried out, by result.",
		}, []string{"provider", "result"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: name("operation_duration_seconds"), Help: "How long operations on services take.", Buckets: prometheus.ExponentialBuckets(0.01, 4, 8),
		}, []string{"provider"}),
		sets:     prometheus.NewDesc(name("sets"), "ServiceSets of a provider.", []string{"provider"}, nil),
		services: prometheus.NewDesc(name("services"), "Services of a provider, by state.", []string{"provider", "state"}, nil),
		drifted:  prometheus.NewDesc(name("drifted_services"), "Services of a provider that somebody else has changed on their cluster.", []string{"provider"}, nil),
	}
	for _, provider := range providers {
		for _, result := range []string{resultSuccess, resultFailure} {
			m.operations.WithLabelValues(provider, result)
		}
	}
	return m
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	m.operations.Describe(ch)
	m.durations.Describe(ch)
	ch <- m.sets
	ch <- m.services
	ch <- m.drifted
}

// Collect implements prometheus.Collector. What the source does not know yet is left out.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	m.operations.Collect(ch)
	m.durations.Collect(ch)
	for _, provider := range m.providers {
		sets, err := m.sources.setsIn(context.Background(), "", func(set *v1alpha1.ServiceSet) bool { return providerOf(set) == provider })
		if err != nil {
			continue
		}
		counts, drifted := map[v1alpha1.ServicePhase]int{}, 0
		for _, set := range sets {
			for i := range set.Status.Services {
				counts[set.Status.Services[i].State]++
				if meta.IsStatusConditionTrue(set.Status.Services[i].Conditions, native.ConditionDrifted) {
					drifted++
				}
			}
		}
		gauge := func(d *prometheus.Desc, value int, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), append([]string{provider}, labels...)...)
		}
		gauge(m.sets, len(sets))
		gauge(m.drifted, drifted)
		for _, state := range states {
			gauge(m.services, counts[state], string(state))
		}
	}
}

// measured is a state manager whose operations are measured.
type measured struct {
	statemanager.StateManager
	provider string
	metrics  *metrics
}

// Rights implements framework.RightsLister.
func (m *measured) Rights() []framework.Right { return framework.RightsOf(m.StateManager) }

// CarryOut implements statemanager.StateManager.
func (m *measured) CarryOut(ctx context.Context, set *statemanager.Set, operation *statemanager.Operation) error {
	result, start := resultFailure, time.Now()
	defer func() {
		m.metrics.operations.WithLabelValues(m.provider, result).Inc()
		m.metrics.durations.WithLabelValues(m.provider).Observe(time.Since(start).Seconds())
	}()
	err := m.StateManager.CarryOut(ctx, set, operation)
	if err == nil {
		result = resultSuccess
	}
	return err
}
