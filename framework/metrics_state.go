package framework

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/operatorkit/operatorkit/framework/internal/keyed"
	"github.com/operatorkit/operatorkit/framework/internal/shadows"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// state reads the queue, the sources and the ages of the objects of a framework when its metrics
// are collected.
type state struct {
	framework *Framework
	metrics   *metrics

	depth, age, retrying, asked, failing, since, active, lastRun, lastGood *prometheus.Desc
	staleness, synced, objects, created, deletion, planned, unmatched      *prometheus.Desc
	fights                                                                 *prometheus.Desc
}

func newState(f *Framework, m *metrics) *state {
	return &state{
		framework: f,
		metrics:   m,
		depth:     f.desc("queue_depth", "Keys that wait for a worker, by lane.", "lane"),
		age:       f.desc("queue_age_seconds", "How long the key that waits longest has been waiting."),
		retrying: f.desc("queue_retrying",
			"Objects that failed when they were reconciled last and are tried again, conflicts included."),
		asked: f.desc("queue_asked", "Keys that wait for the time of a look that was asked for."),
		failing: f.desc("failing_objects",
			"Objects that failed when they were reconciled last, those included that wait for their next change. "+
				"Conflicts count from the fifth in a row on."),
		since: f.desc("failing_since_timestamp_seconds",
			"Since when the object has been failing that has for longest; 0 without any."),
		active:   f.desc("active_workers", "Reconciliations under way."),
		lastRun:  f.desc("last_reconciled_timestamp_seconds", "When a reconciliation ended last; 0 for never."),
		lastGood: f.desc("last_success_timestamp_seconds", "When a reconciliation succeeded last; 0 for never."),
		staleness: f.desc("source_staleness_seconds",
			"Time since the last contact of a source with where it reads from.", "source"),
		synced:  f.desc("source_synced", "1 once the first listing of a source is complete.", "source"),
		objects: f.desc("source_objects", "Objects in the store of a source.", "source"),
		created: f.desc("newest_creation_timestamp_seconds", "When the newest primary object was created."),
		deletion: f.desc("oldest_deletion_timestamp_seconds",
			"When the deletion was asked for that has been pending longest; 0 without any."),
		planned: f.desc("planned_objects",
			"Objects that are only planned for, by what would be done; "+
				"one for which several things would be counts for each.", "action"),
		unmatched: f.desc("unmatched_objects",
			"Objects that no resource set handles, by whether they have a finalizer of the framework: held or free.",
			"finalizer"),
		fights: f.desc("fights",
			"Changes that were applied and found undone again and again. They are tried again after growing pauses."),
	}
}

// desc describes a metric of the framework.
func (f *Framework) desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(PrometheusNamespace, PrometheusSubsystem, name), help, labels,
		prometheus.Labels{"framework": f.Name()})
}

// info is a metric that exists while the framework runs.
func (f *Framework) info() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace:   PrometheusNamespace,
		Subsystem:   PrometheusSubsystem,
		Name:        "info",
		Help:        "1 while the framework runs.",
		ConstLabels: prometheus.Labels{"framework": f.Name(), "operator": f.scope.Operator},
	}, func() float64 { return 1 })
}

// Describe implements prometheus.Collector.
func (s *state) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		s.depth, s.age, s.retrying, s.asked, s.failing, s.since, s.active, s.lastRun, s.lastGood,
		s.staleness, s.synced, s.objects, s.created, s.deletion, s.planned, s.unmatched, s.fights,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (s *state) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	now := s.framework.Status()
	gauge(s.depth, float64(now.Fresh), "fresh")
	gauge(s.depth, float64(now.Backlog), "backlog")
	gauge(s.age, now.OldestWait.Seconds())
	gauge(s.retrying, float64(now.Retrying))
	gauge(s.asked, float64(now.Asked))
	gauge(s.failing, float64(now.Failing))
	since := 0.0
	if now.Failing > 0 {
		since = float64(now.FailingSince.UnixNano()) / 1e9
	}
	gauge(s.since, since)
	gauge(s.active, float64(now.Active))
	m := s.metrics
	gauge(s.lastRun, float64(m.lastRun.Load())/1e9)
	gauge(s.lastGood, float64(m.lastGood.Load())/1e9)
	for _, source := range s.framework.Sources() {
		status := source.Status()
		if !status.LastContact.IsZero() {
			gauge(s.staleness, time.Since(status.LastContact).Seconds(), source.Name())
		}
		synced := 0.0
		if status.Synced {
			synced = 1
		}
		gauge(s.synced, synced, source.Name())
		gauge(s.objects, float64(status.Objects), source.Name())
	}
	newest, oldest := m.ages.read()
	gauge(s.created, newest)
	gauge(s.deletion, oldest)
	planned, nothing := s.framework.reportedPlans.count()
	gauge(s.planned, float64(planned.Create), string(plan.Create))
	gauge(s.planned, float64(planned.Update), string(plan.Update))
	gauge(s.planned, float64(planned.Delete), string(plan.Delete))
	gauge(s.planned, float64(nothing), "none")
	gauge(s.unmatched, float64(now.UnmatchedHeld), "held")
	gauge(s.unmatched, float64(now.Unmatched-now.UnmatchedHeld), "free")
	gauge(s.fights, float64(now.Fights))
}

// ages remembers the creation of the newest object, and the pending deletions with their times.
type ages struct {
	// newest is in seconds of Unix time.
	newest   atomic.Int64
	deletion keyed.Map[time.Time]
}

// track records an event. The events of one source come one at a time.
func (a *ages) track(e informer.Event) {
	m, ok := metaOf(e.Object)
	if !ok {
		return
	}
	if created := m.GetCreationTimestamp(); !created.IsZero() {
		a.newest.Store(max(a.newest.Load(), created.Unix()))
	}
	if deletion := m.GetDeletionTimestamp(); deletion != nil && e.Type != informer.Deleted {
		a.deletion.Set(e.Key, deletion.Time)
	} else {
		a.deletion.Delete(e.Key)
	}
}

// read returns the newest creation and the oldest pending deletion in seconds of Unix time, 0
// without any.
func (a *ages) read() (newest, oldest float64) {
	for t := range a.deletion.Values {
		if at := float64(t.Unix()); oldest == 0 || at < oldest {
			oldest = at
		}
	}
	return float64(a.newest.Load()), oldest
}

// shadowMetrics measures the comparisons with shadow resource sets. The label shadow is the name of
// a set, from the configuration.
type shadowMetrics struct {
	framework   string
	comparisons *prometheus.CounterVec
	seconds     *prometheus.HistogramVec
}

func newShadowMetrics(f *Framework, reg *registry) *shadowMetrics {
	register(reg, newShadowState(f))
	return &shadowMetrics{
		framework: f.Name(),
		comparisons: reg.counter("shadow_comparisons_total",
			"Objects compared with a shadow resource set after a reconciliation, by result.", "shadow", "result"),
		seconds: reg.histogram("shadow_duration_seconds",
			"Duration of a comparison with a shadow resource set.", "shadow"),
	}
}

func (m *shadowMetrics) compared(set string, v plan.Verdict) {
	m.comparisons.WithLabelValues(m.framework, set, string(v)).Inc()
}

func (m *shadowMetrics) took(set string, d time.Duration) {
	m.seconds.WithLabelValues(m.framework, set).Observe(d.Seconds())
}

// shadowState reads the shadows of a framework when its metrics are collected.
type shadowState struct {
	shadows        *shadows.Comparisons
	objects, depth *prometheus.Desc
}

func newShadowState(f *Framework) *shadowState {
	return &shadowState{
		shadows: f.shadows,
		objects: f.desc("shadow_objects",
			"Objects by the result of their last comparison with a shadow resource set.", "shadow", "result"),
		depth: f.desc("shadow_queue_depth", "Objects that wait for being compared with shadow resource sets."),
	}
}

// Describe implements prometheus.Collector.
func (s *shadowState) Describe(ch chan<- *prometheus.Desc) {
	ch <- s.objects
	ch <- s.depth
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
}
