package framework_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/giantswarm/micrologger"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

// events is an EventRecorder that writes down what it is given.
type events struct{ journal }

func (e *events) Event(object runtime.Object, eventtype, reason, message string) {
	e.add(fmt.Sprintf("%s %s %s %s", object.(metav1.Object).GetName(), eventtype, reason, message))
}

// anyEvents also takes objects that are no Kubernetes objects.
type anyEvents struct{ events }

func (e *anyEvents) EventOn(object any, eventtype, reason, message string) {
	e.add(fmt.Sprintf("on %v %s %s %s", object, eventtype, reason, message))
}

func TestEventOnWhatIsNoKubernetesObjectGoesToARecorderThatTakesAny(t *testing.T) {
	named := informer.WithKeyFunc(func(obj any) (informer.Key, error) {
		if name, ok := obj.(string); ok {
			return informer.Key{Name: name}, nil
		}
		return keyOf(obj.(*corev1.ConfigMap).Name), nil
	})
	fails := &resource{name: "r", created: func(context.Context, any) error { return framework.Permanent(errBoom) }}
	words := " Warning ReconciliationFailed update of %s: resource \"r\": ensure created: boom"
	for name, test := range map[string]struct {
		recorder interface {
			framework.EventRecorder
			all() []string
		}
		want []string
	}{
		"for Kubernetes objects only": {&events{}, []string{"a" + fmt.Sprintf(words, "ConfigMap default/a")}},
		"for anything":                {&anyEvents{}, []string{"a" + fmt.Sprintf(words, "ConfigMap default/a"), "on s" + fmt.Sprintf(words, "string s")}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := informer.NewPush("objects", named)
				defer running(t, newFramework(t, framework.Config{Source: source, Recorder: test.recorder}, fails))()
				put(t, source, configMap("a"))
				synctest.Wait()
				put(t, source, "s")
				synctest.Wait()

				if diff := cmp.Diff(test.want, test.recorder.all()); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestEventIsWrittenOncePerCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, recorder := informer.NewPush("objects"), &events{}
		var mu sync.Mutex
		cause := errors.New("disk full")
		f := newFramework(t, framework.Config{Source: source, Recorder: recorder, BackOffFactory: everyMinute},
			&resource{name: "pages", created: func(context.Context, any) error {
				mu.Lock()
				defer mu.Unlock()
				return cause
			}})
		defer running(t, f)()
		change := func(err error) {
			mu.Lock()
			cause = err
			mu.Unlock()
			time.Sleep(10 * time.Minute)
		}
		put(t, source, configMap("a"))
		time.Sleep(10 * time.Minute)
		change(errors.New("disk broken"))
		change(nil)
		change(errors.New("disk broken"))
		put(t, source, configMap("a", "changed", "yes"))
		time.Sleep(10 * time.Minute)

		failed := "a Warning ReconciliationFailed update of ConfigMap default/a: resource \"pages\": ensure created: "
		want := []string{failed + "disk full", failed + "disk broken", failed + "disk broken"}
		if diff := cmp.Diff(want, recorder.all()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestEventMessageFitsTheAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, recorder := informer.NewPush("objects"), &events{}
		f := newFramework(t, framework.Config{Source: source, Recorder: recorder}, &resource{name: "r", created: func(context.Context, any) error {
			return framework.Permanent(errors.New(strings.Repeat("ä", 2000)))
		}})
		defer running(t, f)()
		put(t, source, configMap("a"))
		synctest.Wait()

		message := strings.SplitN(recorder.all()[0], " ", 4)[3]
		if len(message) > 1024 || !strings.HasSuffix(message, "…") || strings.ContainsRune(message, '\uFFFD') {
			t.Errorf("message of %d bytes ends with %q", len(message), message[len(message)-8:])
		}
	})
}

func TestR6ObjectWithoutSetIsLeftAloneAndSeveralSetsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, recorder, reg := informer.NewPush("objects"), &events{}, prometheus.NewRegistry()
		calls := &journal{}
		run := &resource{name: "r", created: func(_ context.Context, obj any) error {
			calls.add(obj.(*corev1.ConfigMap).Name)
			return nil
		}}
		named := func(names string) framework.ResourceSetConfig {
			return framework.ResourceSetConfig{Resources: []framework.Resource{run},
				Handles: func(obj any) bool { return strings.Contains(names, obj.(*corev1.ConfigMap).Name) }}
		}
		f := newFramework(t, framework.Config{Name: "test", Source: source, Recorder: recorder, Registerer: reg, BackOffFactory: everyMinute,
			ResourceRouter: routerOf(t, named("one both"), named("both"))})
		defer running(t, f)()
		for _, name := range []string{"none", "one", "both"} {
			put(t, source, configMap(name))
		}
		synctest.Wait()

		if diff := cmp.Diff([]string{"one"}, calls.all()); diff != "" {
			t.Errorf("reconciled (-want +got):\n%s", diff)
		}
		// Different objects are reconciled at the same time: which event comes first is open.
		got := slices.Sorted(slices.Values(recorder.all()))
		if len(got) != 2 || !strings.HasPrefix(got[0], "both Warning SeveralResourceSets update of ConfigMap default/both") ||
			!strings.HasPrefix(got[1], "none Normal NoResourceSet no resource set of framework \"test\"") {
			t.Errorf("events: %v, want one on the object that no set handles, and one on that which two handle", got)
		}
		if n := testutil.ToFloat64(gathered{reg, "operatorkit_framework_errors_total"}); n != 1 {
			t.Errorf("errors_total is %v, want 1", n)
		}
	})
}

// gathered collects one metric family of a registry.
type gathered struct {
	*prometheus.Registry
	name string
}

// Collect implements prometheus.Collector.
func (g gathered) Collect(ch chan<- prometheus.Metric) {
	families, _ := g.Gather()
	for _, f := range families {
		if f.GetName() != g.name {
			continue
		}
		for _, m := range f.GetMetric() {
			ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(g.name, f.GetHelp(), nil, nil), prometheus.UntypedValue,
				m.GetCounter().GetValue()+m.GetGauge().GetValue())
		}
	}
}

// gathering is a registry that is gathered from whenever something is registered.
type gathering struct {
	*prometheus.Registry

	err error
}

func (g *gathering) Register(c prometheus.Collector) error {
	err := g.Registry.Register(c)
	if _, gathered := g.Gather(); gathered != nil {
		g.err = gathered
	}
	return err
}

func TestMetricsCanBeGatheredWhileAFrameworkIsMade(t *testing.T) {
	registry := &gathering{Registry: prometheus.NewRegistry()}
	newFramework(t, framework.Config{Source: informer.NewPush("objects"), Registerer: registry}, &resource{name: "r"})
	if registry.err != nil {
		t.Error(registry.err)
	}
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, watched, reg := informer.NewPush("objects"), informer.NewPush("watched"), prometheus.NewRegistry()
		config := framework.Config{Source: source, Registerer: reg, BackOffFactory: everyMinute, Watches: []framework.Watch{
			{Source: watched, Map: func(context.Context, any) []informer.Key { return nil }}}}
		config.Name = "one"
		one := newFramework(t, config, &resource{name: "r", created: func(_ context.Context, obj any) error {
			switch obj.(*corev1.ConfigMap).Name {
			case "bad":
				return errBoom
			case "panics":
				panic("oh")
			}
			return nil
		}})
		config.Name = "two"
		newFramework(t, config, &resource{name: "r"})
		defer running(t, one)()
		for _, name := range []string{"good", "bad", "panics"} {
			put(t, source, configMap(name))
		}
		put(t, watched, configMap("w"))
		put(t, source, configMap("brief"))
		synctest.Wait()
		remove(t, source, configMap("brief"))
		synctest.Wait()

		for metric, want := range map[string]float64{
			`operatorkit_framework_events_total{framework="one",kind="added",source="objects"}`:                      4,
			`operatorkit_framework_events_total{framework="one",kind="deleted",source="objects"}`:                    1,
			`operatorkit_framework_reconciliation_duration_seconds{event="delete",framework="one",result="success"}`: 1,
			`operatorkit_framework_events_total{framework="one",kind="added",source="watched"}`:                      1,
			`operatorkit_framework_reconciliation_duration_seconds{event="update",framework="one",result="success"}`: 2,
			`operatorkit_framework_reconciliation_duration_seconds{event="update",framework="one",result="error"}`:   2,
			`operatorkit_framework_step_duration_seconds{framework="one",resource="r",step="ensure_created"}`:        4,
			`operatorkit_framework_step_errors_total{framework="one",resource="r",step="ensure_created"}`:            2,
			`operatorkit_framework_errors_total{framework="one"}`:                                                    2,
			`operatorkit_framework_retries_total{framework="one"}`:                                                   2,
			`operatorkit_framework_panics_total{framework="one"}`:                                                    1,
			`operatorkit_framework_queue_depth{framework="one",lane="fresh"}`:                                        0,
			`operatorkit_framework_queue_retrying{framework="one"}`:                                                  2,
			`operatorkit_framework_source_synced{framework="one",source="objects"}`:                                  1,
			`operatorkit_framework_source_objects{framework="one",source="objects"}`:                                 3,
			`operatorkit_framework_source_synced{framework="two",source="objects"}`:                                  1,
			`operatorkit_framework_last_success_timestamp_seconds{framework="one"}`:                                  float64(time.Now().Unix()),
		} {
			if got, ok := value(t, reg, metric); !ok || got != want {
				t.Errorf("%s is %v (there: %v), want %v", metric, got, ok, want)
			}
		}
		problems, err := testutil.GatherAndLint(reg)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]promlint.Problem(nil), problems); diff != "" {
			t.Errorf("promlint (-want +got):\n%s", diff)
		}
	})
}

func TestR14NoLabelHoldsTheNameOfAnObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, reg := informer.NewPush("objects"), prometheus.NewRegistry()
		f := newFramework(t, framework.Config{Source: source, Registerer: reg}, &resource{name: "r", created: func(context.Context, any) error { return errBoom }})
		defer running(t, f)()
		put(t, source, configMap("unmistakable"))
		synctest.Wait()

		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if strings.Contains(f.String(), "unmistakable") {
				t.Errorf("the name of an object is in %s", f)
			}
		}
	})
}

// value returns what a registry says of a metric, given as name{label="value",…} in the order of the labels: the value
// of counters and gauges, the count of histograms.
func value(t testing.TB, reg *prometheus.Registry, metric string) (float64, bool) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			if f.GetName()+"{"+strings.Join(labels, ",")+"}" == metric {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount()), true
			}
		}
	}
	return 0, false
}

func TestR14DataOfASecretReachesNoLogEventOrMetric(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const value = "hunter2-in-the-clear"
		source, recorder, reg, log := informer.NewPush("secrets"), &events{}, prometheus.NewRegistry(), &strings.Builder{}
		logger := logTo(t, log)
		apply := crudOfAny(t, logger, func(obj any) *framework.Patch {
			p := framework.NewPatch()
			p.SetCreateChange(obj)
			return p
		})
		fail := &resource{name: "fails", created: func(context.Context, any) error { return errBoom }}
		panics := &resource{name: "panics", created: func(_ context.Context, obj any) error { panic(obj) }}
		for _, resources := range [][]framework.Resource{{apply, fail}, {apply, panics}} {
			f := newFramework(t, framework.Config{Name: resources[1].Name(), Source: source, Recorder: recorder, Registerer: reg, Logger: logger}, resources...)
			defer running(t, f)()
		}
		put(t, source, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Data: map[string][]byte{"k": []byte(value)}, StringData: map[string]string{"k": value}})
		synctest.Wait()

		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(log.String(), "apply_create_change") || len(recorder.all()) != 2 {
			t.Fatalf("nothing was logged or no events were written:\n%s\n%v", log, recorder.all())
		}
		said := log.String() + strings.Join(recorder.all(), "\n") + fmt.Sprint(families)
		for _, form := range []string{value, base64.StdEncoding.EncodeToString([]byte(value)), fmt.Sprintf("%d", []byte(value))} {
			if strings.Contains(said, strings.Trim(form, "[]")) {
				t.Errorf("the value is told as %q", form)
			}
		}
	})
}

// anyOps computes a patch and applies nothing.
type anyOps struct {
	patch func(obj any) *framework.Patch
}

func crudOfAny(t testing.TB, logger micrologger.Logger, patch func(obj any) *framework.Patch) framework.Resource {
	t.Helper()
	r, err := framework.NewCRUDResource(framework.CRUDResourceConfig{Logger: logger, Ops: &anyOps{patch}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (*anyOps) Name() string { return "any" }

func (*anyOps) GetCurrentState(_ context.Context, obj any) (any, error) { return obj, nil }

func (*anyOps) GetDesiredState(_ context.Context, obj any) (any, error) { return obj, nil }

func (o *anyOps) NewUpdatePatch(_ context.Context, obj, _, _ any) (*framework.Patch, error) {
	return o.patch(obj), nil
}

func (o *anyOps) NewDeletePatch(_ context.Context, obj, _, _ any) (*framework.Patch, error) {
	return o.patch(obj), nil
}

func (*anyOps) ApplyCreateChange(context.Context, any, any) error { return nil }

func (*anyOps) ApplyUpdateChange(context.Context, any, any) error { return nil }

func (*anyOps) ApplyDeleteChange(context.Context, any, any) error { return nil }
