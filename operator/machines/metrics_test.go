package machines_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// values returns the metrics of machines that are not 0, as "name{labels} value"; of histograms the count.
func (w *world) values() []string {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for _, family := range families {
		name, ours := strings.CutPrefix(family.GetName(), "operatorkit_machines_")
		if !ours {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := make([]string, len(m.GetLabel()))
			for i, l := range m.GetLabel() {
				labels[i] = strings.Replace(l.GetValue(), w.namespace, "NAMESPACE", 1)
			}
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			if value != 0 {
				all = append(all, fmt.Sprintf("%s{%s} %v", name, strings.Join(labels, ","), value))
			}
		}
	}
	slices.Sort(all)
	return all
}

// wantMetrics waits until the metrics are these, and no others.
func (w *world) wantMetrics(want ...string) {
	w.t.Helper()
	slices.Sort(want)
	operatortest.Eventually(w.t, "the metrics are as they should be", func() error {
		if got := w.values(); !slices.Equal(got, want) {
			return fmt.Errorf("they are\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		return nil
	})
}

func TestMetricsCountMachinesServicesContainersAndOperations(t *testing.T) {
	w := newWorld(t, 2)
	w.start()
	web := service("web", "app:1", 2)
	w.create(web)
	w.want(web, "Ready=True")
	w.wantMetrics("machines{True} 2",
		"services{Ready,True} 1", "services{Progressing,False} 1", "services{Blocked,False} 1",
		"service_containers{NAMESPACE,web} 2", "service_working_containers{NAMESPACE,web} 2", "service_up_to_date_containers{NAMESPACE,web} 2",
		"operations_total{run,success} 2", "operation_duration_seconds{run} 2")

	change(w, web, func(s *v1alpha1.MachineService) {
		s.Spec.Container.Image, s.Spec.Update.FailureAction = "app:2", "rollback"
	})
	w.want(web, "Ready=True")
	change(w, web, func(s *v1alpha1.MachineService) { s.Spec.Container.Image, s.Spec.Replicas = "app:bad", new(int32(1)) })
	w.want(web, "Blocked=True RolledBack")
	if err := w.engines[1].Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.want(w.machine(1), "Ready=Unknown")
	w.want(web, "Blocked=True RolledBack")
	w.wantMetrics("machines{True} 1", "machines{Unknown} 1",
		"services{Ready,False} 1", "services{Progressing,False} 1", "services{Blocked,True} 1",
		"service_containers{NAMESPACE,web} 1", "service_working_containers{NAMESPACE,web} 1",
		"operations_total{run,success} 2", "operations_total{replace,success} 2", "operations_total{replace,failure} 1",
		"operation_duration_seconds{run} 2", "operation_duration_seconds{replace} 3")

	problems, err := testutil.GatherAndLint(w.registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("got %v, %v", problems, err)
	}
}
