package oncall_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/operatorkit/operatorkit/operator/oncall"
)

func TestDefinitionsAreDescribedWhetherTheyHaveSeriesOrNot(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "operatorkit_errors_total", Help: `Errors, "bad" ones.`, ConstLabels: prometheus.Labels{"operator": "a,b"},
		}, []string{"step", "resource"}),
		prometheus.NewHistogram(prometheus.HistogramOpts{Name: "operatorkit_step_duration_seconds", Help: "Duration."}),
		prometheus.NewGauge(prometheus.GaugeOpts{Name: "operatorkit_depth", Help: "Depth."}),
		prometheus.NewGauge(prometheus.GaugeOpts{Name: "other_depth", Help: "Of others."}),
	)
	got, err := oncall.Describe(registry)
	if err != nil {
		t.Fatal(err)
	}
	want := []oncall.Metric{
		{Name: "operatorkit_depth", Help: "Depth.", Type: oncall.Gauge},
		{Name: "operatorkit_errors_total", Help: `Errors, "bad" ones.`, Type: oncall.Counter, Labels: []string{"operator", "resource", "step"}},
		{Name: "operatorkit_step_duration_seconds", Help: "Duration.", Type: oncall.Histogram},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRulesOfAnOperatorAreAboutItsJobOnly(t *testing.T) {
	rules := oncall.Rules("shop")["groups"].([]any)[0].(map[string]any)["rules"].([]any)
	for i, rule := range rules {
		query := rule.(map[string]any)["expr"].(string)
		metrics, selectors := 0, strings.Count(query, `{job="shop"`)
		for _, name := range oncall.Named(oncall.Alerts[i].Query) {
			metrics += strings.Count(oncall.Alerts[i].Query, name)
		}
		if metrics == 0 || metrics != selectors {
			t.Errorf("%d metrics and %d selectors of the job in: %s", metrics, selectors, query)
		}
	}
}

func TestAnAlertAboutAMetricThatThereIsNotIsAnError(t *testing.T) {
	_, err := oncall.Runbooks([]oncall.Metric{{Name: "operatorkit_operator_leading"}})
	if err == nil || !strings.Contains(err.Error(), "OperatorkitLeaseIsHardToKeep is about operatorkit_operator_lease_renewals_total") {
		t.Errorf("got %v, want that a metric is missing", err)
	}
}
