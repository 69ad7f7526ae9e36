package metricsresource_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/giantswarm/micrologger"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/metricsresource"
	"github.com/operatorkit/operatorkit/resource/retryresource"
)

type plain struct {
	name   string
	ensure func() error
}

func (p *plain) Name() string                             { return p.name }
func (p *plain) EnsureCreated(context.Context, any) error { return p.ensure() }
func (p *plain) EnsureDeleted(context.Context, any) error { return p.ensure() }

// pages is a CRUD resource whose patch has an update part that fails.
type pages struct{}

func (pages) Name() string                                            { return "pages" }
func (pages) GetCurrentState(context.Context, string) (string, error) { return "", nil }
func (pages) GetDesiredState(context.Context, string) (string, error) { return "", nil }
func (pages) NewUpdatePatch(context.Context, string, string, string) (*framework.TypedPatch[string], error) {
	patch := framework.NewTypedPatch[string]()
	patch.SetUpdateChange("update")
	return patch, nil
}
func (pages) NewDeletePatch(context.Context, string, string, string) (*framework.TypedPatch[string], error) {
	return nil, nil
}
func (pages) ApplyCreateChange(context.Context, string, string) error { return nil }
func (pages) ApplyUpdateChange(context.Context, string, string) error { return errors.New("refused") }
func (pages) ApplyDeleteChange(context.Context, string, string) error { return nil }

func crud(t *testing.T) framework.Resource {
	t.Helper()
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	r, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[string, string]{Logger: logger, Ops: pages{}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func wrap(t *testing.T, config metricsresource.Config, resources ...framework.Resource) []framework.Resource {
	t.Helper()
	wrapped, err := metricsresource.Wrap(resources, config)
	if err != nil {
		t.Fatal(err)
	}
	return wrapped
}

// counts returns the number of observations of each series of the histogram, and the values of the counter.
func counts(t *testing.T, g prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			value := m.GetCounter().GetValue()
			if h := m.GetHistogram(); h != nil {
				value = float64(h.GetSampleCount())
			}
			got[fmt.Sprintf("%s{%s}", f.GetName(), strings.Join(labels, ","))] = value
		}
	}
	return got
}

func TestWrapNamesWhatIsWrong(t *testing.T) {
	_, err := metricsresource.Wrap([]framework.Resource{nil, (*framework.CRUDResource)(nil)}, metricsresource.Config{})
	want := "invalid config: metricsresource.Config: Registerer must not be nil; resources[0] must not be nil; resources[1] must not be nil"
	if !framework.IsInvalidConfig(err) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestEveryStepIsMeasured(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	resources := wrap(t, metricsresource.Config{Registerer: registry, Name: "v1"}, crud(t))
	for range 2 {
		if err := framework.ProcessUpdate(t.Context(), "x", resources); err == nil {
			t.Fatal("the error of the step is gone")
		}
	}
	want := map[string]float64{}
	for _, step := range []string{"get_current_state", "get_desired_state", "new_update_patch", "apply_update_change"} {
		want[fmt.Sprintf("operatorkit_resource_step_duration_seconds{resource=pages,set=v1,step=%s}", step)] = 2
		want[fmt.Sprintf("operatorkit_resource_step_errors_total{resource=pages,set=v1,step=%s}", step)] = 0
	}
	want["operatorkit_resource_step_errors_total{resource=pages,set=v1,step=apply_update_change}"] = 2
	if diff := cmp.Diff(want, counts(t, registry)); diff != "" {
		t.Error(diff)
	}
}

func TestAPanicCountsAsAnError(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	resources := wrap(t, metricsresource.Config{Registerer: registry}, &plain{name: "a", ensure: func() error { panic("broken") }})
	_ = framework.ProcessDelete(t.Context(), "x", resources)
	want := map[string]float64{
		"operatorkit_resource_step_duration_seconds{resource=a,set=,step=ensure_deleted}": 1,
		"operatorkit_resource_step_errors_total{resource=a,set=,step=ensure_deleted}":     1,
	}
	if diff := cmp.Diff(want, counts(t, registry)); diff != "" {
		t.Error(diff)
	}
}

func TestWrappingTwiceSharesTheCollectors(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	config := metricsresource.Config{Registerer: registry, Name: "v1"}
	ok := func() error { return nil }
	first := wrap(t, config, &plain{name: "a", ensure: ok})
	second := wrap(t, config, &plain{name: "a", ensure: ok})
	for _, resources := range [][]framework.Resource{first, second} {
		if err := framework.ProcessUpdate(t.Context(), "x", resources); err != nil {
			t.Fatal(err)
		}
	}
	if got := counts(t, registry)["operatorkit_resource_step_duration_seconds{resource=a,set=v1,step=ensure_created}"]; got != 2 {
		t.Errorf("both lists together were measured %v times, want 2", got)
	}
}

func TestAForeignCollectorOfTheSameNameIsAnError(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "operatorkit_resource_step_errors_total", Help: "x"}))
	_, err := metricsresource.Wrap(nil, metricsresource.Config{Registerer: registry})
	if err == nil || !strings.Contains(err.Error(), "choose another Namespace or Subsystem") {
		t.Errorf("got %v, want an error that says how to mend it", err)
	}
}

// fickle has another name each time it is asked, and steps of its own making.
type fickle struct {
	plain
	names int
}

func (f *fickle) Name() string { f.names++; return fmt.Sprintf("object-%d", f.names) }
func (f *fickle) WrapSteps(m framework.Middleware) framework.Resource {
	return &plain{name: "fickle", ensure: func() error {
		f.names++
		info := framework.StepInfo{Resource: f.Name(), Step: framework.Step(fmt.Sprintf("step-%d", f.names))}
		return m(context.Background(), info, func(context.Context) error { return nil })
	}}
}

func TestTheNumberOfSeriesIsBounded(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	resources := wrap(t, metricsresource.Config{Registerer: registry}, &fickle{})
	for i := range 100 {
		if err := framework.ProcessUpdate(t.Context(), i, resources); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]float64{
		"operatorkit_resource_step_duration_seconds{resource=object-1,set=,step=other}": 100,
		"operatorkit_resource_step_errors_total{resource=object-1,set=,step=other}":     0,
	}
	if diff := cmp.Diff(want, counts(t, registry)); diff != "" {
		t.Error(diff)
	}
}

func TestMetricsFollowTheConventions(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	resources := wrap(t, metricsresource.Config{Registerer: registry, Name: "v1"}, crud(t))
	_ = framework.ProcessUpdate(t.Context(), "x", resources)
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
}

func TestAttemptsAreCountedInsideOfRetries(t *testing.T) {
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	flaky := &plain{name: "a", ensure: func() error {
		if calls++; calls == 1 {
			return errors.New("flaky")
		}
		return nil
	}}
	registry := prometheus.NewPedanticRegistry()
	inside := wrap(t, metricsresource.Config{Registerer: registry, Name: "inside"}, flaky)
	retried, err := retryresource.Wrap(inside, retryresource.Config{Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	outside := wrap(t, metricsresource.Config{Registerer: registry, Name: "outside"}, retried...)
	if err := framework.ProcessUpdate(t.Context(), "x", outside); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"operatorkit_resource_step_duration_seconds{resource=a,set=inside,step=ensure_created}":  2,
		"operatorkit_resource_step_duration_seconds{resource=a,set=outside,step=ensure_created}": 1,
		"operatorkit_resource_step_errors_total{resource=a,set=inside,step=ensure_created}":      1,
		"operatorkit_resource_step_errors_total{resource=a,set=outside,step=ensure_created}":     0,
	}
	if diff := cmp.Diff(want, counts(t, registry)); diff != "" {
		t.Error(diff)
	}
}
