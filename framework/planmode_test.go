package framework_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// onlyPlan is an object with the annotation that has it only planned for.
func onlyPlan(name string, data ...string) *corev1.ConfigMap {
	cm := configMap(name, data...)
	cm.Annotations = map[string]string{framework.PlanAnnotation: "true"}
	return cm
}

// dataTeller plans to create, update or delete what the data of an object say, and must not be run for those that are
// only planned for.
type dataTeller struct{ ran journal }

func (*dataTeller) Name() string { return "data" }

func (r *dataTeller) EnsureCreated(_ context.Context, obj any) error {
	r.ran.add("created " + obj.(*corev1.ConfigMap).Name)
	return nil
}

func (r *dataTeller) EnsureDeleted(_ context.Context, obj any) error {
	r.ran.add("deleted " + obj.(*corev1.ConfigMap).Name)
	return nil
}

func (r *dataTeller) Plan(_ context.Context, event plan.Event, obj any) ([]plan.Change, error) {
	var changes []plan.Change
	data := obj.(*corev1.ConfigMap).Data
	if data["fail"] != "" {
		return nil, errors.New(data["fail"])
	}
	for _, action := range []plan.Action{plan.Create, plan.Update, plan.Delete} {
		if name := data[string(action)]; name != "" {
			changes = append(changes, plan.Change{Action: action, Object: plan.Object{Kind: "Page", Name: name, Version: data["seen"]},
				Fields: []plan.FieldChange{{Path: "spec.text", Old: "a secret thing", New: "another"}}})
		}
	}
	if event == plan.DeleteEvent {
		changes = append(changes, plan.Change{Action: plan.Delete, Object: plan.Object{Kind: "Page", Name: "all"}})
	}
	return changes, nil
}

func TestObjectsThatAreOnlyPlannedForAreToldOfAndLeftAlone(t *testing.T) {
	for name, config := range map[string]framework.Config{"by annotation": {}, "all of them": {PlanOnly: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				object := onlyPlan
				if config.PlanOnly {
					object = configMap
				}
				recorder, tells := &events{}, &dataTeller{}
				source := &holding{informer.NewPush("objects"), func(*corev1.ConfigMap) error { t.Error("a finalizer was removed"); return nil }}
				config.Source, config.Recorder, config.Finalizer = source, recorder, "example.com/f"
				f := newFramework(t, config, tells)
				if f.PlanOnly() != config.PlanOnly {
					t.Errorf("PlanOnly() = %t", f.PlanOnly())
				}
				defer running(t, f)()
				step := func(obj *corev1.ConfigMap) {
					put(t, source.Push, obj)
					synctest.Wait()
				}
				step(object("idle"))
				step(object("a", "create", "x", "update", "y"))
				step(object("a", "create", "x", "update", "y", "unrelated", "change"))
				step(object("a", "create", "x", "update", "y", "seen", "2"))
				step(object("a", "update", "y"))
				step(object("a"))
				ends := object("a")
				now := metav1.Now()
				ends.DeletionTimestamp, ends.Finalizers = &now, []string{"example.com/f"}
				step(ends)

				want := []string{
					"a Normal Planned 1 to create, 1 to update, 0 to delete: create Page x; update Page y (spec.text)",
					"a Normal Planned 0 to create, 1 to update, 0 to delete: update Page y (spec.text)",
					"a Normal Planned 0 to create, 0 to update, 0 to delete",
					"a Normal Planned 0 to create, 0 to update, 1 to delete: delete Page all",
				}
				if diff := cmp.Diff(want, recorder.all()); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				if did := tells.ran.all(); len(did) > 0 {
					t.Errorf("resources ran: %v", did)
				}
			})
		})
	}
}

func TestARecordOfAPlanHasNoTimesOfResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, observed := informer.NewPush("objects"), &records{}
		f := newFramework(t, framework.Config{Source: source, Observer: observed, PlanOnly: true}, &dataTeller{})
		defer running(t, f)()
		time.Sleep(time.Hour) // of the framework, not of the plan
		put(t, source, configMap("a", "create", "x"))
		synctest.Wait()
		record := observed.last(t)
		if record.Outcome != framework.Planned || len(record.Resources) != 1 || len(record.Resources[0].Changes) != 1 {
			t.Fatalf("the record is %+v, want a plan with one change", record)
		}
		if start := record.Resources[0].Start; start != 0 {
			t.Errorf("the resource starts %s after the plan, want 0", start)
		}
	})
}

func TestObjectIsReconciledWhenItIsNotOnlyPlannedForAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, tells, reg := informer.NewPush("objects"), &dataTeller{}, prometheus.NewRegistry()
		f := newFramework(t, framework.Config{Name: "test", Source: source, Registerer: reg}, tells)
		defer running(t, f)()
		put(t, source, onlyPlan("a", "create", "x"))
		synctest.Wait()
		if did := tells.ran.all(); len(did) > 0 {
			t.Fatalf("resources ran: %v", did)
		}
		put(t, source, configMap("a", "create", "x"))
		synctest.Wait()

		if diff := cmp.Diff([]string{"created a"}, tells.ran.all()); diff != "" {
			t.Errorf("resources (-want +got):\n%s", diff)
		}
		if n, _ := value(t, reg, `operatorkit_framework_planned_objects{action="create",framework="test"}`); n != 0 {
			t.Errorf("planned_objects is %v", n)
		}
	})
}

func TestDeletionThatIsOnlyPlannedForIsNotProcessedWhenTheObjectIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, tells, recorder := informer.NewPush("objects"), &dataTeller{}, &events{}
		f := newFramework(t, framework.Config{Source: source, Recorder: recorder}, tells)
		defer running(t, f)()
		put(t, source, onlyPlan("a"))
		synctest.Wait()
		remove(t, source, onlyPlan("a"))
		synctest.Wait()

		if did := tells.ran.all(); len(did) > 0 {
			t.Errorf("resources ran: %v", did)
		}
		if diff := cmp.Diff([]string{"a Normal Planned 0 to create, 0 to update, 1 to delete: delete Page all"}, recorder.all()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestMetricCountsObjectsThatAreOnlyPlannedForByWhatWouldBeDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, reg := informer.NewPush("objects"), prometheus.NewRegistry()
		f := newFramework(t, framework.Config{Name: "test", Source: source, Registerer: reg, PlanOnly: true}, &dataTeller{})
		defer running(t, f)()
		put(t, source, configMap("idle"))
		put(t, source, configMap("one", "create", "x"))
		put(t, source, configMap("two", "create", "x", "update", "y"))
		put(t, source, configMap("gone", "update", "x"))
		synctest.Wait()
		remove(t, source, configMap("gone"))
		synctest.Wait()

		got := map[string]float64{}
		for _, action := range []string{"create", "update", "delete", "none"} {
			got[action], _ = value(t, reg, fmt.Sprintf(`operatorkit_framework_planned_objects{action=%q,framework="test"}`, action))
		}
		if diff := cmp.Diff(map[string]float64{"create": 2, "update": 1, "delete": 0, "none": 1}, got); diff != "" {
			t.Errorf("planned_objects (-want +got):\n%s", diff)
		}
		planned, _ := value(t, reg, `operatorkit_framework_reconciliation_duration_seconds{event="update",framework="test",result="planned"}`)
		if planned != 4 {
			t.Errorf("%v reconciliations with the result planned, want 4", planned)
		}
	})
}

func TestPlanThatFailsIsReportedAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, recorder, reg := informer.NewPush("objects"), &events{}, prometheus.NewRegistry()
		f := newFramework(t, framework.Config{Name: "test", Source: source, Recorder: recorder, Registerer: reg, PlanOnly: true, BackOffFactory: everyMinute}, &dataTeller{})
		defer running(t, f)()
		put(t, source, configMap("a", "fail", "no route"))
		time.Sleep(150 * time.Second)

		want := []string{`a Warning ReconciliationFailed update of ConfigMap default/a: plan: resource "data": plan: no route`}
		if diff := cmp.Diff(want, recorder.all()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if n, _ := value(t, reg, `operatorkit_framework_errors_total{framework="test"}`); n != 3 {
			t.Errorf("%v errors, want 3", n)
		}
	})
}

func TestPlanReporterIsToldOnceForEachDifferentPlanUntilItSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		var mu sync.Mutex
		told, fails := &journal{}, true
		f := newFramework(t, framework.Config{Source: source, PlanOnly: true, BackOffFactory: everyMinute,
			PlanReporter: func(_ context.Context, obj any, p *plan.Plan) error {
				mu.Lock()
				defer mu.Unlock()
				told.add(obj.(*corev1.ConfigMap).Name + " " + p.Counts().String())
				obj.(*corev1.ConfigMap).Data["changed"] = "by its owner" // The object is the reporter's own.
				if fails {
					fails = false
					panic("not yet")
				}
				return nil
			}}, &dataTeller{})
		defer running(t, f)()
		put(t, source, configMap("a", "create", "x"))
		time.Sleep(10 * time.Minute)
		put(t, source, configMap("a", "create", "x", "other", "value"))
		put(t, source, configMap("a", "create", "x", "seen", "2"))
		put(t, source, configMap("a", "update", "x"))
		synctest.Wait()

		want := []string{"a 1 to create, 0 to update, 0 to delete", "a 1 to create, 0 to update, 0 to delete", "a 0 to create, 1 to update, 0 to delete"}
		if diff := cmp.Diff(want, told.all()); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	})
}

func TestR14EventsAboutPlansTellNoValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, recorder := informer.NewPush("objects"), &events{}
		f := newFramework(t, framework.Config{Source: source, Recorder: recorder, PlanOnly: true}, &dataTeller{})
		defer running(t, f)()
		put(t, source, configMap("a", "update", strings.Repeat("x", 2000)))
		synctest.Wait()

		got := recorder.all()
		if len(got) != 1 || strings.Contains(got[0], "a secret thing") || len(got[0]) > 1100 {
			t.Errorf("events: %v", got)
		}
	})
}
