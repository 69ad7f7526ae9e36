package target

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	metricsNamespace = "operatorkit"
	metricsSubsystem = "target"
)

// metrics are those of all clusters together. No label holds the name of a cluster.
type metrics struct {
	clusters *Clusters

	byState, watches *prometheus.Desc
	requests         *prometheus.CounterVec
	probes           *prometheus.CounterVec
	changes          *prometheus.CounterVec
	wait             prometheus.Histogram
}

func newMetrics(clusters *Clusters) *metrics {
	counter := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: name, Help: help,
		}, []string{label})
	}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, metricsSubsystem, name), help, labels, nil)
	}
	return &metrics{
		clusters: clusters,
		byState:  desc("clusters", "Clusters that are in use, by state.", "state"),
		watches:  desc("watches", "Kinds that are watched, of all clusters together."),
		requests: counter("requests_total",
			"Requests to clusters by result: 2xx to 5xx for answers, broken without one, refused when the cluster was known to be unreachable.", "result"),
		probes:  counter("probes_total", "Probes of clusters, by the state that they showed.", "state"),
		changes: counter("state_changes_total", "Changes of the state of clusters, by the new state.", "state"),
		wait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: "rate_limiter_wait_seconds",
			Help:    "How long requests waited for the rate limit of their cluster.",
			Buckets: []float64{0.001, 0.01, 0.1, 0.5, 1, 5, 15, 60},
		}),
	}
}

func (m *metrics) parts() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.probes, m.changes, m.wait}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.byState
	ch <- m.watches
	for _, part := range m.parts() {
		part.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	states, watches := map[State]int{}, 0
	for _, cluster := range m.clusters.all() {
		health := cluster.Health()
		states[health.State]++
		watches += health.Watches
	}
	for _, state := range States() {
		ch <- prometheus.MustNewConstMetric(m.byState, prometheus.GaugeValue, float64(states[state]), string(state))
	}
	ch <- prometheus.MustNewConstMetric(m.watches, prometheus.GaugeValue, float64(watches))
	for _, part := range m.parts() {
		part.Collect(ch)
	}
}

func (m *metrics) answered(o outcome) {
	result := "broken"
	if o.code != 0 {
		result = fmt.Sprintf("%dxx", o.code/100)
	}
	m.requests.WithLabelValues(result).Inc()
}

func (m *metrics) refused() { m.requests.WithLabelValues("refused").Inc() }

func (m *metrics) probed(state State) { m.probes.WithLabelValues(string(state)).Inc() }

func (m *metrics) changed(state State) { m.changes.WithLabelValues(string(state)).Inc() }

func (m *metrics) waited(d time.Duration) { m.wait.Observe(d.Seconds()) }
