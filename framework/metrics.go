package framework

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/operatorkit/operatorkit/informer"
)

// The first parts of the names of all metrics of a framework.
const (
	PrometheusNamespace = "operatorkit"
	PrometheusSubsystem = "framework"
)

// metrics measures one framework. Labels are taken from the configuration only (framework, source, resource, step) and
// from fixed lists, never from objects, so that their number is bounded.
type metrics struct {
	framework string
	events    *prometheus.CounterVec
	seconds   map[event]map[outcome]prometheus.Observer
	steps     *prometheus.HistogramVec
	stepErrs  *prometheus.CounterVec
	errors    prometheus.Counter
	retries   prometheus.Counter
	conflicts prometheus.Counter
	panics    prometheus.Counter
	active    prometheus.Gauge
	lastRun   prometheus.Gauge
	lastGood  prometheus.Gauge
	ages      *ages

	mu       sync.RWMutex
	byStep   map[StepInfo]stepMetrics
	bySource map[eventKind]prometheus.Counter
}

type stepMetrics struct {
	seconds prometheus.Observer
	errors  prometheus.Counter
}

type eventKind struct {
	source string
	kind   informer.EventType
}

// buckets are the upper bounds of all histograms, in seconds: from a hit in memory to a slow cloud API.
var buckets = []float64{.0001, .001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

func newMetrics(f *Framework) (*metrics, error) {
	reg := &registry{registerer: f.config.Registerer}
	m := &metrics{
		framework: f.Name(),
		byStep:    map[StepInfo]stepMetrics{},
		bySource:  map[eventKind]prometheus.Counter{},
		ages:      newAges(),
		events:    reg.counter("events_total", "Events received from sources, by kind.", "source", "kind"),
		steps:     reg.histogram("step_duration_seconds", "Duration of a step of a resource, retries included.", "resource", "step"),
		stepErrs:  reg.counter("step_errors_total", "Steps of resources that failed.", "resource", "step"),
	}
	seconds := reg.histogram("reconciliation_duration_seconds", "Duration of a reconciliation, by kind of event and result.", "event", "result")
	label := prometheus.Labels{"framework": m.framework}
	m.errors = reg.counter("errors_total", "Reconciliations that failed, conflicts not counted.").With(label)
	m.retries = reg.counter("retries_total", "Retries that were scheduled because a reconciliation failed.").With(label)
	m.conflicts = reg.counter("conflicts_total", "Reconciliations that are retried because an object changed meanwhile.").With(label)
	m.panics = reg.counter("panics_total", "Panics that were turned into errors.").With(label)
	m.active = reg.gauge("active_workers", "Reconciliations under way.").With(label)
	m.lastRun = reg.gauge("last_reconciled_timestamp_seconds", "When a reconciliation ended last.").With(label)
	m.lastGood = reg.gauge("last_success_timestamp_seconds", "When a reconciliation succeeded last.").With(label)
	reg.register(newState(f))
	if reg.err != nil {
		return nil, reg.err
	}
	m.seconds = map[event]map[outcome]prometheus.Observer{}
	for _, e := range []event{updateEvent, deleteEvent} {
		m.seconds[e] = map[outcome]prometheus.Observer{}
		for _, o := range []outcome{succeeded, failed, canceled, waiting, ignored} {
			m.seconds[e][o] = seconds.WithLabelValues(m.framework, string(e), string(o))
		}
	}
	return m, nil
}

// reconciled counts a reconciliation that ends now. What had no object to reconcile is not one.
func (m *metrics) reconciled(res result, start time.Time) {
	if res.err != nil && res.reconciliation == nil {
		m.errors.Inc()
		return
	}
	if res.reconciliation == nil {
		return
	}
	end := time.Now()
	m.seconds[res.reconciliation.event][res.outcome].Observe(end.Sub(start).Seconds())
	now := float64(end.UnixNano()) / 1e9
	m.lastRun.Set(now)
	switch res.outcome {
	case succeeded:
		m.lastGood.Set(now)
	case failed:
		m.errors.Inc()
	}
}

func (m *metrics) panicked() { m.panics.Inc() }

func (m *metrics) received(source informer.Source, e informer.Event) {
	kind := eventKind{source.Name(), e.Type}
	m.mu.RLock()
	c := m.bySource[kind]
	m.mu.RUnlock()
	if c == nil {
		c = m.events.WithLabelValues(m.framework, kind.source, kind.kind.String())
		m.mu.Lock()
		m.bySource[kind] = c
		m.mu.Unlock()
	}
	c.Inc()
}

// observe measures one step of a resource.
func (m *metrics) observe(info StepInfo, took time.Duration, err error) {
	m.mu.RLock()
	s, ok := m.byStep[info]
	m.mu.RUnlock()
	if !ok {
		s = stepMetrics{
			seconds: m.steps.WithLabelValues(m.framework, info.Resource, string(info.Step)),
			errors:  m.stepErrs.WithLabelValues(m.framework, info.Resource, string(info.Step)),
		}
		m.mu.Lock()
		m.byStep[info] = s
		m.mu.Unlock()
	}
	s.seconds.Observe(took.Seconds())
	if err != nil {
		s.errors.Inc()
	}
}

// registry makes metrics with a framework label and registers them. A metric that another framework has registered
// already is shared. The first error is kept.
type registry struct {
	registerer prometheus.Registerer
	err        error
}

func (r *registry) register(c prometheus.Collector) prometheus.Collector {
	if r.registerer == nil {
		return c
	}
	err := r.registerer.Register(c)
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		return already.ExistingCollector
	}
	if err != nil && r.err == nil {
		r.err = err
	}
	return c
}

func (r *registry) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: PrometheusNamespace, Subsystem: PrometheusSubsystem, Name: name, Help: help},
		append([]string{"framework"}, labels...))
	if existing, ok := r.register(c).(*prometheus.CounterVec); ok {
		return existing
	}
	return c
}

func (r *registry) gauge(name, help string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: PrometheusNamespace, Subsystem: PrometheusSubsystem, Name: name, Help: help},
		[]string{"framework"})
	if existing, ok := r.register(g).(*prometheus.GaugeVec); ok {
		return existing
	}
	return g
}

func (r *registry) histogram(name, help string, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: PrometheusNamespace, Subsystem: PrometheusSubsystem, Name: name, Help: help, Buckets: buckets},
		append([]string{"framework"}, labels...))
	if existing, ok := r.register(h).(*prometheus.HistogramVec); ok {
		return existing
	}
	return h
}
