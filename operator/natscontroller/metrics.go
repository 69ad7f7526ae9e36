package natscontroller

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/operatorkit/operatorkit/framework"
)

// metrics measures what is beside the framework.
type metrics struct {
	collected *prometheus.CounterVec
	written   prometheus.Counter
	dropped   prometheus.Counter
}

func newMetrics(controller string) *metrics {
	options := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{
			Namespace: framework.PrometheusNamespace, Subsystem: "natscontroller", Name: name, Help: help, ConstLabels: prometheus.Labels{"controller": controller},
		}
	}
	return &metrics{
		collected: prometheus.NewCounterVec(options("garbage_collected_total", "Secondaries that were removed because their primary does not exist."), []string{"source"}),
		written:   prometheus.NewCounter(options("events_written_total", "Events that were written to the bucket for events, repeated ones included.")),
		dropped:   prometheus.NewCounter(options("events_dropped_total", "Events on entities that were dropped because they came too fast or could not be written.")),
	}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	m.collected.Describe(ch)
	m.written.Describe(ch)
	m.dropped.Describe(ch)
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	m.collected.Collect(ch)
	m.written.Collect(ch)
	m.dropped.Collect(ch)
}
