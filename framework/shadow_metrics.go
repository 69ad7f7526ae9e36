package framework

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/operatorkit/operatorkit/framework/internal/shadows"
	"github.com/operatorkit/operatorkit/framework/plan"
)

// shadowMetrics measures the comparisons with shadow resource sets. The label shadow is the name of a set, from the
// configuration.
type shadowMetrics struct {
	framework   string
	comparisons *prometheus.CounterVec
	seconds     *prometheus.HistogramVec
}

func newShadowMetrics(f *Framework, reg *registry) *shadowMetrics {
	reg.register(newShadowState(f))
	return &shadowMetrics{
		framework:   f.Name(),
		comparisons: reg.counter("shadow_comparisons_total", "Objects compared with a shadow resource set after a reconciliation, by result.", "shadow", "result"),
		seconds:     reg.histogram("shadow_duration_seconds", "Duration of a comparison with a shadow resource set.", "shadow"),
	}
}

func (m *shadowMetrics) compared(set string, v plan.Verdict) {
	m.comparisons.WithLabelValues(m.framework, set, string(v)).Inc()
}

func (m *shadowMetrics) took(set string, d time.Duration) {
	m.seconds.WithLabelValues(m.framework, set).Observe(d.Seconds())
}

// shadowState collects what is read off the shadows of a framework when its metrics are asked for.
type shadowState struct {
	shadows                 *shadows.Comparisons
	objects, depth, dropped *prometheus.Desc
}

func newShadowState(f *Framework) *shadowState {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(PrometheusNamespace, PrometheusSubsystem, name), help, labels,
			prometheus.Labels{"framework": f.Name()})
	}
	return &shadowState{
		shadows: f.shadows,
		objects: desc("shadow_objects", "Objects by the result of their last comparison with a shadow resource set.", "shadow", "result"),
		depth:   desc("shadow_queue_depth", "Objects that wait for being compared with shadow resource sets."),
		dropped: desc("shadow_dropped_total", "Objects that were not compared because too many waited."),
	}
}

// Describe implements prometheus.Collector.
func (s *shadowState) Describe(ch chan<- *prometheus.Desc) {
	ch <- s.objects
	ch <- s.depth
	ch <- s.dropped
}

// Collect implements prometheus.Collector.
func (s *shadowState) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	counts := s.shadows.Counts()
	for _, c := range counts {
		gauge(s.objects, c.Objects-c.Differing-c.Failed, c.Shadow, string(plan.Agrees))
		gauge(s.objects, c.Differing, c.Shadow, string(plan.Differs))
		gauge(s.objects, c.Failed, c.Shadow, string(plan.NotComparable))
	}
	gauge(s.depth, counts[0].Waiting)
	ch <- prometheus.MustNewConstMetric(s.dropped, prometheus.CounterValue, float64(counts[0].Dropped))
}
