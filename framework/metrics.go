package framework

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/collector"
)

// PrometheusNamespace and PrometheusSubsystem are the first parts of the names of all metrics of a
// framework.
const (
	PrometheusNamespace = "operatorkit"
	PrometheusSubsystem = "framework"
)

// metrics measures one framework. Labels come only from the configuration (framework, source,
// resource, step) and from fixed lists, never from objects, so their number is bounded.
type metrics struct {
	unobserved
	framework string
	events    *prometheus.CounterVec
	seconds   [deleteEvent + 1]map[Outcome]prometheus.Observer
	waits     prometheus.Observer
	steps     *prometheus.HistogramVec
	stepErrs  *prometheus.CounterVec
	errors    prometheus.Counter
	retries   prometheus.Counter
	conflicts prometheus.Counter
	panics    prometheus.Counter
	ages      ages
	shadows   *shadowMetrics

	// epoch is the base of relative times: reading only the monotonic clock is cheaper.
	epoch time.Time
	// lastRun and lastGood are the times of the last reconciliation and of the last successful one,
	// in nanoseconds of Unix time; 0 is never.
	lastRun, lastGood atomic.Int64

	byStep sync.Map // StepInfo to *stepMetrics
}

type stepMetrics struct {
	seconds prometheus.Observer
	errors  prometheus.Counter
}

// eventCounters count the events of one source by kind.
type eventCounters [informer.Deleted + 1]prometheus.Counter

// buckets are the upper bounds of all histograms, in seconds: from a hit in memory to a slow cloud
// API.
var buckets = []float64{.0001, .001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

func newMetrics(f *Framework) (*metrics, error) {
	reg := &registry{registerer: f.config.Registerer}
	m := &metrics{
		framework: f.Name(),
		epoch:     time.Now(),
		events:    reg.counter("events_total", "Events received from sources, by kind.", "source", "kind"),
		steps: reg.histogram("step_duration_seconds", "Duration of a step of a resource, retries included.",
			"resource", "step"),
		stepErrs: reg.counter("step_errors_total", "Steps of resources that failed.", "resource", "step"),
	}
	seconds := reg.histogram("reconciliation_duration_seconds",
		"Duration of a reconciliation, by kind of event and result.", "event", "result")
	label := prometheus.Labels{"framework": m.framework}
	m.waits = reg.histogram("queue_wait_seconds",
		"How long a key waited for a worker, from when it was due.").With(label)
	m.errors = reg.counter("errors_total", "Reconciliations that failed, conflicts not counted.").With(label)
	m.retries = reg.counter("retries_total", "Retries that were scheduled because a reconciliation failed.").With(label)
	m.conflicts = reg.counter("conflicts_total",
		"Reconciliations that ended because an object had changed meanwhile, and are tried again. "+
			"They are no errors; conflicts of server-side apply over fields are.").With(label)
	m.panics = reg.counter("panics_total", "Panics that were turned into errors.").With(label)
	register(reg, newState(f, m))
	if f.shadows != nil {
		m.shadows = newShadowMetrics(f, reg)
	}
	if reg.err != nil {
		return nil, reg.err
	}
	for e := range event(len(m.seconds)) {
		m.seconds[e] = map[Outcome]prometheus.Observer{}
		for _, o := range []Outcome{Succeeded, Failed, Canceled, Waiting, Planned, Ignored} {
			m.seconds[e][o] = seconds.WithLabelValues(m.framework, e.String(), string(o))
		}
	}
	return m, nil
}

// wallTime returns a moment by the present clock. It differs from the recorded wall time if the
// clock was set since then, or ran on while the machine was suspended.
func wallTime(at time.Time) time.Time { return time.Now().Add(-time.Since(at)) }

// now returns the time since the epoch.
func (m *metrics) now() time.Duration { return time.Since(m.epoch) }

// ended implements observer.
func (m *metrics) ended(e ended) {
	if e.count.errors {
		m.errors.Inc()
	}
	if e.count.conflicts {
		m.conflicts.Inc()
	}
	if e.count.retries {
		m.retries.Inc()
	}
	if e.count.panics {
		m.panics.Inc()
	}
	r := e.reconciliation
	if r == nil {
		return
	}
	observe(m.seconds[r.event][e.outcome], m.now()-r.started, r.traceID())
	clock := time.Now().UnixNano()
	m.lastRun.Store(clock)
	if e.outcome == Succeeded {
		m.lastGood.Store(clock)
	}
}

func (m *metrics) panicked() { m.panics.Inc() }

// eventsOf returns the counters for the events of a source.
func (m *metrics) eventsOf(source informer.Source) *eventCounters {
	counters := &eventCounters{}
	for kind := informer.Added; kind <= informer.Deleted; kind++ {
		counters[kind] = m.events.WithLabelValues(m.framework, source.Name(), kind.String())
	}
	return counters
}

// observe records a duration, with its trace as the exemplar if there is one.
func observe(in prometheus.Observer, took time.Duration, traceID string) {
	if exemplars, ok := in.(prometheus.ExemplarObserver); ok && traceID != "" {
		exemplars.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": traceID})
		return
	}
	in.Observe(took.Seconds())
}

// stepEnded implements observer.
func (m *metrics) stepEnded(s *scope, e endedStep) {
	found, ok := m.byStep.Load(e.StepInfo)
	if !ok {
		found, _ = m.byStep.LoadOrStore(e.StepInfo, &stepMetrics{
			seconds: m.steps.WithLabelValues(m.framework, e.Resource, string(e.Step)),
			errors:  m.stepErrs.WithLabelValues(m.framework, e.Resource, string(e.Step)),
		})
	}
	of := found.(*stepMetrics)
	observe(of.seconds, e.took, s.reconciliation.traceID())
	if e.err != nil {
		of.errors.Inc()
	}
}

// registry makes metrics with a framework label and registers them. A metric that another framework
// has registered already is shared. The first error is kept.
type registry struct {
	registerer prometheus.Registerer
	err        error
}

// register registers a collector, or returns the existing one of another framework.
func register[C prometheus.Collector](r *registry, c C) C {
	c, err := collector.Register(r.registerer, c)
	if err != nil && r.err == nil {
		r.err = err
	}
	return c
}

func (r *registry) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: PrometheusNamespace,
		Subsystem: PrometheusSubsystem,
		Name:      name,
		Help:      help,
	}, append([]string{"framework"}, labels...)))
}

func (r *registry) histogram(name, help string, labels ...string) *prometheus.HistogramVec {
	return register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: PrometheusNamespace,
		Subsystem: PrometheusSubsystem,
		Name:      name,
		Help:      help,
		Buckets:   buckets,
	}, append([]string{"framework"}, labels...)))
}
