package machines

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment"
)

// PrometheusSubsystem is the part of the names of all metrics after framework.PrometheusNamespace.
const PrometheusSubsystem = "machines"

// Results of operations, as they stand in the metrics.
const (
	resultSuccess = "success"
	resultFailure = "failure"
	resultUndone  = "undone"
)

// kinds are those of operations, as they stand in the metrics.
var kinds = []string{"pull", "create-volume", "pre-deploy", "job", "run", "start", "stop", "update", "replace", "remove"}

// conditionStatuses are the values of conditions.
var conditionStatuses = []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}

// metrics measure the operations of plans, and read the rest off the sources when they are asked for.
type metrics struct {
	reader     client.Reader
	operations *prometheus.CounterVec
	durations  *prometheus.HistogramVec

	machines, services, containers, working, upToDate *prometheus.Desc

	mu sync.Mutex
	// begun are the operations under way.
	begun map[deployment.Operation]time.Time
}

func newMetrics(reader client.Reader) *metrics {
	name := func(name string) string {
		return prometheus.BuildFQName(framework.PrometheusNamespace, PrometheusSubsystem, name)
	}
	service := []string{"namespace", "service"}
	m := &metrics{
		reader: reader, begun: map[deployment.Operation]time.Time{},
		operations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: name("operations_total"), Help: "Operations of plans that were carried out, by kind and result. One that was undone counts as a success, too.",
		}, []string{"kind", "result"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: name("operation_duration_seconds"), Help: "How long operations of plans take, by kind.", Buckets: prometheus.ExponentialBuckets(0.1, 3, 8),
		}, []string{"kind"}),
		machines:   prometheus.NewDesc(name("machines"), "Machines, by the status of their condition Ready.", []string{"ready"}, nil),
		services:   prometheus.NewDesc(name("services"), "MachineServices, by the status of each condition.", []string{"condition", "status"}, nil),
		containers: prometheus.NewDesc(name("service_containers"), "Containers of a MachineService that are seen.", service, nil),
		working:    prometheus.NewDesc(name("service_working_containers"), "Containers of a MachineService that work.", service, nil),
		upToDate:   prometheus.NewDesc(name("service_up_to_date_containers"), "Containers of a MachineService that work and are as its spec says.", service, nil),
	}
	for _, kind := range kinds {
		for _, result := range []string{resultSuccess, resultFailure, resultUndone} {
			m.operations.WithLabelValues(kind, result)
		}
		m.durations.WithLabelValues(kind)
	}
	return m
}

// register makes the metrics be served.
func (m *metrics) register(registry prometheus.Registerer) error {
	if err := registry.Register(m); err != nil {
		return fmt.Errorf("register the metrics of machines (New is called once for each Dependencies): %w", err)
	}
	return nil
}

// event measures an operation.
func (m *metrics) event(e deployment.ProgressEvent) {
	kind := e.Operation.Describe().Operation
	m.mu.Lock()
	defer m.mu.Unlock()
	switch e.Status {
	case deployment.ProgressStarted:
		m.begun[e.Operation] = time.Now()
	case deployment.ProgressDone, deployment.ProgressFailed:
		result := resultSuccess
		if e.Status == deployment.ProgressFailed {
			result = resultFailure
		}
		m.operations.WithLabelValues(kind, result).Inc()
		if begin, ok := m.begun[e.Operation]; ok {
			m.durations.WithLabelValues(kind).Observe(time.Since(begin).Seconds())
			delete(m.begun, e.Operation)
		}
	case deployment.ProgressReverted:
		m.operations.WithLabelValues(kind, resultUndone).Inc()
	}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	m.operations.Describe(ch)
	m.durations.Describe(ch)
	for _, d := range []*prometheus.Desc{m.machines, m.services, m.containers, m.working, m.upToDate} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. What the sources do not know yet is left out.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	m.operations.Collect(ch)
	m.durations.Collect(ch)
	gauge := func(d *prometheus.Desc, value int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	var machines v1alpha1.MachineList
	if m.reader.List(context.Background(), &machines, client.UnsafeDisableDeepCopy) == nil {
		ready := tally{}
		for i := range machines.Items {
			ready.add(machines.Items[i].Status.Conditions, ConditionReady)
		}
		for _, status := range conditionStatuses {
			gauge(m.machines, ready[condition{ConditionReady, status}], string(status))
		}
	}
	var services v1alpha1.MachineServiceList
	if m.reader.List(context.Background(), &services, client.UnsafeDisableDeepCopy) != nil {
		return
	}
	kinds, count := []string{ConditionReady, ConditionProgressing, ConditionBlocked}, tally{}
	for i := range services.Items {
		svc := &services.Items[i]
		for _, kind := range kinds {
			count.add(svc.Status.Conditions, kind)
		}
		gauge(m.containers, int(svc.Status.Containers), svc.Namespace, svc.Name)
		gauge(m.working, int(svc.Status.Working), svc.Namespace, svc.Name)
		gauge(m.upToDate, int(svc.Status.UpToDate), svc.Namespace, svc.Name)
	}
	for _, kind := range kinds {
		for _, status := range conditionStatuses {
			gauge(m.services, count[condition{kind, status}], kind, string(status))
		}
	}
}

// condition is a type of conditions and a value.
type condition struct {
	kind   string
	status metav1.ConditionStatus
}

// tally counts objects by their conditions.
type tally map[condition]int

// add counts an object by one of its conditions. One that is not there yet is Unknown.
func (t tally) add(conditions []metav1.Condition, kind string) {
	c := condition{kind, statuses.Find(conditions, kind).Status}
	if c.status == "" {
		c.status = metav1.ConditionUnknown
	}
	t[c]++
}
