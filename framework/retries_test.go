package framework_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

func TestEnqueueAfterHoldsWhateverComesOfTheObjectUntilThen(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(f *framework.Framework, ctx context.Context, n int) error
		want []string
	}{
		"asked during a success": {func(f *framework.Framework, _ context.Context, n int) error {
			if n == 1 {
				f.EnqueueAfter(keyOf("a"), 10*time.Second)
			}
			return nil
		}, []string{"0s", "10s"}},
		"asked during a failure, sooner than the backoff": {func(f *framework.Framework, _ context.Context, n int) error {
			if n == 1 {
				f.EnqueueAfter(keyOf("a"), 10*time.Second)
				return errBoom
			}
			return nil
		}, []string{"0s", "10s"}},
		"asked during a failure, later than the backoff": {func(f *framework.Framework, _ context.Context, n int) error {
			if n == 1 {
				f.EnqueueAfter(keyOf("a"), 10*time.Minute)
				return errBoom
			}
			return nil
		}, []string{"0s", "1m0s", "10m0s"}},
		"asked sooner by a resource": {func(f *framework.Framework, ctx context.Context, n int) error {
			if n == 1 {
				f.EnqueueAfter(keyOf("a"), 10*time.Minute)
				requeuecontext.SetAfter(ctx, time.Second)
			}
			return nil
		}, []string{"0s", "1s"}},
		"asked by a resource that then succeeds": {func(f *framework.Framework, ctx context.Context, n int) error {
			if n == 1 {
				requeuecontext.SetAfter(ctx, 10*time.Minute)
				f.Enqueue(keyOf("a"))
			}
			return nil
		}, []string{"0s", "0s", "10m0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, at, start := informer.NewPush("objects"), &journal{}, time.Now()
				var f *framework.Framework
				f = newFramework(t, framework.Config{Source: source, Workers: 1, BackOffFactory: everyMinute}, &resource{name: "r", created: func(ctx context.Context, _ any) error {
					at.add(time.Since(start).String())
					return tc.do(f, ctx, len(at.all()))
				}})
				defer running(t, f)()
				put(t, source, configMap("a"))
				time.Sleep(time.Hour)
				if diff := cmp.Diff(tc.want, at.all()); diff != "" {
					t.Errorf("reconciliations (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func conflict() error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("the object has been modified"))
}

func TestConflictsAreToldFromTheFifthInARowOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, log, recorder, observed, reg := informer.NewPush("objects"), &strings.Builder{}, &events{}, &records{}, prometheus.NewRegistry()
		conflicts := 4
		f := newFramework(t, framework.Config{Name: "f", Source: source, BackOffFactory: everyMinute, Logger: logTo(t, log), Recorder: recorder, Observer: observed, Registerer: reg},
			&resource{name: "r", created: func(context.Context, any) error {
				if conflicts--; conflicts >= 0 {
					return fmt.Errorf("update a: %w", conflict())
				}
				return nil
			}})
		stop := running(t, f)
		put(t, source, configMap("a"))
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := len(recorder.all()); strings.Contains(log.String(), "failed") || got > 0 || conflicts != -1 {
			t.Errorf("four conflicts, of which %d were left, are told by %d events and the log:\n%s", conflicts, got, log)
		}
		conflicts = 101
		put(t, source, configMap("a", "again", "yes"))
		time.Sleep(2 * time.Hour)
		stop()

		if got := strings.Count(log.String(), "reconciliation failed"); got != 97 {
			t.Errorf("%d of 101 conflicts in a row are in the log, want all from the fifth on:\n%s", got, log)
		}
		if got := recorder.all(); len(got) != 1 || !strings.Contains(got[0], "the object has been modified (5 times in a row or more: ") {
			t.Errorf("events are %q, want one", got)
		}
		failed := 0
		for _, record := range observed.taken() {
			if strings.Contains(record.Error, "the object has been modified") {
				failed++
			}
		}
		for metric, want := range map[string]float64{"conflicts_total": 105, "errors_total": 0, "retries_total": 0, "failing_objects": 0} {
			if got, _ := value(t, reg, "operatorkit_framework_"+metric+`{framework="f"}`); got != want {
				t.Errorf("%s is %v, want %v", metric, got, want)
			}
		}
		if failed != 105 {
			t.Errorf("%d records have the error, want all of 105", failed)
		}
	})
}

// refusing is a source that is asked for an error before it puts a finalizer on.
type refusing struct {
	*holding
	refuse func() error
}

func (r *refusing) AddFinalizer(ctx context.Context, obj any, finalizer string) (any, error) {
	if err := r.refuse(); err != nil {
		return nil, fmt.Errorf("add finalizer %s: %w", finalizer, err)
	}
	return r.holding.AddFinalizer(ctx, obj, finalizer)
}

func TestAConflictAboutTheFinalizerIsTriedAgainAndNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, conflicts, ran := &strings.Builder{}, 2, 0
		source := &refusing{holding: &holding{Push: informer.NewPush("objects")}}
		source.refuse = func() error {
			if conflicts--; conflicts >= 0 {
				return conflict()
			}
			return nil
		}
		f := newFramework(t, framework.Config{Source: source, Finalizer: finalizer, BackOffFactory: everyMinute, Logger: logTo(t, log)},
			&resource{name: "r", created: func(context.Context, any) error { ran++; return nil }})
		stop := running(t, f)
		put(t, source.Push, configMap("a"))
		time.Sleep(time.Hour)
		stop()

		if ran == 0 {
			t.Error("the resource has not run after an hour")
		}
		if strings.Contains(log.String(), "failed") {
			t.Errorf("two conflicts are told:\n%s", log)
		}
	})
}

func TestPlanModeTriesAgainWhatItWouldReconcile(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want int
	}{
		"a permanent error":                        {fmt.Errorf("no use: %w", framework.Permanent(errBoom)), 1},
		"a passing error":                          {errBoom, 11},
		"a permanent error of some things of many": {framework.Partial(framework.Permanent(errBoom)), 1},
		"a passing error of some things of many":   {framework.Partial(errBoom), 11},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, tries, recorder := informer.NewPush("objects"), 0, &events{}
				crud, err := framework.NewCRUDResource(framework.CRUDResourceConfig{Logger: quiet(t), Ops: &failingOps{func() error { tries++; return tc.err }}})
				if err != nil {
					t.Fatal(err)
				}
				f := newFramework(t, framework.Config{Source: source, PlanOnly: true, BackOffFactory: everyMinute, Recorder: recorder}, crud)
				defer running(t, f)()
				put(t, source, configMap("a"))
				time.Sleep(10*time.Minute + time.Second)
				synctest.Wait()
				if tries != tc.want {
					t.Errorf("planned %d times, want %d", tries, tc.want)
				}
				if told := strings.Join(recorder.all(), "\n"); !strings.Contains(told, errBoom.Error()) {
					t.Errorf("the events don't say why: %s", told)
				}
			})
		})
	}
}

// failingOps can't get the current state.
type failingOps struct{ fail func() error }

func (*failingOps) Name() string                                        { return "fails" }
func (o *failingOps) GetCurrentState(context.Context, any) (any, error) { return nil, o.fail() }
func (*failingOps) GetDesiredState(context.Context, any) (any, error)   { return nil, nil }
func (*failingOps) ApplyCreateChange(context.Context, any, any) error   { return nil }
func (*failingOps) ApplyUpdateChange(context.Context, any, any) error   { return nil }
func (*failingOps) ApplyDeleteChange(context.Context, any, any) error   { return nil }
func (*failingOps) NewUpdatePatch(context.Context, any, any, any) (*framework.Patch, error) {
	return nil, nil
}
func (*failingOps) NewDeletePatch(context.Context, any, any, any) (*framework.Patch, error) {
	return nil, nil
}

func TestMetricsTellWhatFailsAndSinceWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, reg, gate := informer.NewPush("objects"), prometheus.NewRegistry(), make(chan struct{})
		f := newFramework(t, framework.Config{Name: "f", Source: source, Registerer: reg, Workers: 1, BackOffFactory: everyMinute},
			&resource{name: "r", created: func(ctx context.Context, obj any) error {
				cm := obj.(*corev1.ConfigMap)
				switch {
				case cm.Data["good"] != "":
				case cm.Name == "fails":
					return errBoom
				case cm.Name == "permanent":
					return framework.Permanent(errBoom)
				case cm.Name == "conflict":
					return conflict()
				case cm.Name == "asks":
					requeuecontext.SetAfter(ctx, 24*time.Hour)
				case cm.Name == "holds":
					<-gate
				}
				return nil
			}})
		defer running(t, f)()
		expect := func(when string, want map[string]float64) {
			t.Helper()
			synctest.Wait()
			for metric, want := range want {
				if got, ok := value(t, reg, "operatorkit_framework_"+metric+`{framework="f"}`); !ok || got != want {
					t.Errorf("%s: %s is %v (there: %v), want %v", when, metric, got, ok, want)
				}
			}
		}
		expect("at first", map[string]float64{"failing_objects": 0, "failing_since_timestamp_seconds": 0, "queue_retrying": 0, "queue_asked": 0, "queue_wait_seconds": 0})
		put(t, source, configMap("permanent"))
		first := float64(time.Now().Unix())
		time.Sleep(10 * time.Second)
		for _, name := range []string{"fails", "conflict", "asks", "good"} {
			put(t, source, configMap(name))
		}
		expect("when some fail", map[string]float64{"failing_objects": 2, "failing_since_timestamp_seconds": first, "queue_retrying": 2, "queue_asked": 1, "queue_wait_seconds": 5})
		put(t, source, configMap("permanent", "good", "yes"))
		expect("when the first was mended", map[string]float64{"failing_objects": 1, "failing_since_timestamp_seconds": first + 10, "queue_retrying": 2})
		time.Sleep(5 * time.Minute)
		expect("when the conflict came again and again", map[string]float64{"failing_objects": 2, "failing_since_timestamp_seconds": first + 10, "queue_retrying": 2})
		for _, name := range []string{"fails", "conflict"} {
			put(t, source, configMap(name, "good", "yes"))
		}
		expect("when all were mended", map[string]float64{"failing_objects": 0, "failing_since_timestamp_seconds": 0, "queue_retrying": 0, "queue_asked": 1})

		put(t, source, configMap("holds"))
		synctest.Wait()
		put(t, source, configMap("good", "changed", "yes"))
		time.Sleep(20 * time.Second)
		close(gate)
		synctest.Wait()
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() == "operatorkit_framework_queue_wait_seconds" {
				if got := family.GetMetric()[0].GetHistogram().GetSampleSum(); got != 20 {
					t.Errorf("keys waited for %v s together, want the 20 of the last one", got)
				}
			}
		}
	})
}
