package quickstart_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/operatorkit/operatorkit/examples/quickstart"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command/commandtest"
	"github.com/operatorkit/operatorkit/operator/oncall"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// Alerts, runbooks and the dashboard are about metrics that a running operator has, and each of its metrics is on the dashboard.
func TestAlertsAndTheDashboardAreAboutMetricsOfARunningOperator(t *testing.T) {
	registered := make(chan *prometheus.Registry, 1)
	config := quickstart.Config
	config.New = func(ctx context.Context, d *operator.Dependencies) ([]*framework.Framework, error) {
		registered <- d.Registry
		return quickstart.Config.New(ctx, d)
	}
	lease := operatortest.Start(t).Namespace(t)
	o := commandtest.Operator(t, config, "--leader-elect", "--leader-election-namespace", lease, "--upgrade-budget=1")
	registry := <-registered
	home := site("home", "v1", "hello")
	if err := operatortest.Create(home)(t.Context(), o.User, o.Namespace); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the site is there", func() error { return ready("home")(t.Context(), o.User, o.Namespace) })

	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]dto.MetricType{}
	for _, f := range families {
		types[f.GetName()] = f.GetType()
	}
	for _, a := range oncall.Alerts {
		for _, name := range oncall.Named(a.Query) {
			if _, there := types[name]; !there {
				t.Errorf("alert %s is about %s, of which the operator has no series", a.Name, name)
			}
		}
	}
	dashboard, err := os.ReadFile("../../docs/oncall/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := oncall.Describe(registry)
	if err != nil || len(metrics) < 20 {
		t.Fatalf("%v: %d metrics", err, len(metrics))
	}
	for _, m := range metrics {
		if !bytes.Contains(dashboard, []byte(m.Name)) && m.Name != "operatorkit_framework_info" {
			t.Errorf("%s is not on the dashboard", m.Name)
		}
		want := map[oncall.Type]dto.MetricType{
			oncall.Counter: dto.MetricType_COUNTER, oncall.Gauge: dto.MetricType_GAUGE, oncall.Histogram: dto.MetricType_HISTOGRAM,
		}[m.Type]
		if got, there := types[m.Name]; there && got != want {
			t.Errorf("%s is a %s, and the dashboard takes it for a %s", m.Name, strings.ToLower(got.String()), m.Type)
		}
	}
}
