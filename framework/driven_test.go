package framework_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/access"
)

// leaving is an object that is marked for deletion.
func leaving(name string) *corev1.ConfigMap {
	cm := configMap(name)
	cm.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	return cm
}

func TestDrivenFrameworkReconcilesWhatItIsGivenAndNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, observed, did := informer.NewPush("objects"), &records{}, &journal{}
		f := newFramework(t, framework.Config{Source: source, Driven: true, Observer: observed}, &resource{
			name:    "page",
			created: func(_ context.Context, obj any) error { did.add("created " + obj.(*corev1.ConfigMap).Name); return nil },
			deleted: func(_ context.Context, obj any) error { did.add("deleted " + obj.(*corev1.ConfigMap).Name); return nil },
		})
		defer running(t, f)()
		synctest.Wait()
		put(t, source, configMap("a"))
		synctest.Wait()
		put(t, source, configMap("a", "changed", "true"))
		synctest.Wait()
		remove(t, source, configMap("a"))
		f.Enqueue(keyOf("a"))
		f.EnqueueAfter(keyOf("a"), time.Second)
		time.Sleep(time.Hour) // virtual
		if got := did.all(); len(got) > 0 || len(observed.taken()) > 0 {
			t.Errorf("nobody asked for %q", got)
		}

		given := configMap("b")
		for _, obj := range []*corev1.ConfigMap{given, leaving("b")} {
			if got, err := f.ReconcileObject(t.Context(), obj); err != nil || got != (framework.Reconciled{Outcome: framework.Succeeded}) {
				t.Errorf("ReconcileObject = %+v, %v", got, err)
			}
		}
		if diff := cmp.Diff([]string{"created b", "deleted b"}, did.all()); diff != "" {
			t.Errorf("done (-want +got):\n%s", diff)
		}
		var events []plan.Event
		for _, r := range observed.taken() {
			events = append(events, r.Event)
		}
		if diff := cmp.Diff([]plan.Event{plan.UpdateEvent, plan.DeleteEvent}, events); diff != "" {
			t.Errorf("observed (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(configMap("b"), given); diff != "" {
			t.Errorf("the object of the caller was changed:\n%s", diff)
		}
	})
}

func TestProcessTellsHowItEnded(t *testing.T) {
	onlyPlanned := onlyPlan("a")
	paused := configMap("a")
	paused.Annotations = map[string]string{framework.PausedAnnotation: "true"}
	for name, tt := range map[string]struct {
		obj  *corev1.ConfigMap
		do   func(ctx context.Context, obj any) error
		want framework.Reconciled
		err  error
	}{
		"requeued": {configMap("a"), func(ctx context.Context, _ any) error { requeuecontext.SetAfter(ctx, time.Minute); return nil },
			framework.Reconciled{Outcome: framework.Succeeded, RequeueAfter: time.Minute}, nil},
		"canceled": {configMap("a"), func(ctx context.Context, _ any) error { reconciliationcanceledcontext.SetCanceled(ctx); return nil },
			framework.Reconciled{Outcome: framework.Canceled}, nil},
		"failed": {configMap("a"), func(context.Context, any) error { return errBoom },
			framework.Reconciled{Outcome: framework.Failed}, errBoom},
		"finalizer kept": {leaving("a"), func(ctx context.Context, _ any) error { finalizerskeptcontext.SetKept(ctx); return nil },
			framework.Reconciled{Outcome: framework.Waiting}, nil},
		"paused": {paused, func(context.Context, any) error { return errBoom },
			framework.Reconciled{Outcome: framework.Ignored, Reason: "it is paused by an annotation"}, nil},
		"only planned": {onlyPlanned, func(context.Context, any) error { return errBoom },
			framework.Reconciled{Outcome: framework.Planned}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFramework(t, framework.Config{Driven: true}, &resource{name: "page", created: tt.do, deleted: tt.do})
			got, err := f.ReconcileObject(t.Context(), tt.obj)
			if !errors.Is(err, tt.err) {
				t.Errorf("the error is %v, want %v", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Reconciled (-want +got):\n%s", diff)
			}
		})
	}
	none := newFramework(t, framework.Config{Driven: true, ResourceRouter: routerOf(t, framework.ResourceSetConfig{
		Handles: func(any) bool { return false }, Resources: []framework.Resource{settled()},
	})})
	if got, err := none.ReconcileObject(t.Context(), configMap("a")); err != nil || got.Outcome != framework.Ignored || got.Reason == "" {
		t.Errorf("without a resource set: %+v, %v", got, err)
	}
}

type clusterKey struct{}

// TestContextIsPreparedForReconciliationsPlansAndShadows: what all resources need is there whatever is done with them.
func TestContextIsPreparedForReconciliationsPlansAndShadows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, did := informer.NewPush("objects"), &journal{}
		tell := func(as string) *pages {
			p := pagesOf(func(ctx context.Context, _ *corev1.ConfigMap) (any, error) {
				did.add(as + " is planned in " + ctx.Value(clusterKey{}).(string))
				return nil, nil
			})
			p.created = func(ctx context.Context, _ any) error {
				did.add(as + " is done in " + ctx.Value(clusterKey{}).(string))
				return nil
			}
			return p
		}
		f := newFramework(t, framework.Config{
			Source: source, Driven: true, ResourceRouter: besides(t, tell("v1"), tell("v2")),
			InitCtx: func(ctx context.Context, obj any) (context.Context, error) {
				if obj.(*corev1.ConfigMap).Name == "nowhere" {
					return nil, errBoom
				}
				return context.WithValue(ctx, clusterKey{}, "the mcp"), nil
			},
		})
		defer running(t, f)()
		put(t, source, configMap("a"))
		synctest.Wait()
		if _, err := f.Plan(t.Context(), keyOf("a")); err != nil {
			t.Fatal(err)
		}
		if _, err := f.ReconcileObject(t.Context(), configMap("a")); err != nil {
			t.Fatal(err)
		}
		compared()
		want := []string{"v1 is planned in the mcp", "v1 is done in the mcp", "v1 is planned in the mcp", "v2 is planned in the mcp"}
		if diff := cmp.Diff(want, did.all()); diff != "" {
			t.Errorf("done (-want +got):\n%s", diff)
		}
		wantSentences(t, f, "v2 would change 0 of 1 object")

		if _, err := f.ReconcileObject(t.Context(), configMap("nowhere")); !errors.Is(err, errBoom) || !strings.Contains(err.Error(), "initialise context") {
			t.Errorf("the error is %v", err)
		}
		p, err := f.PlanObject(t.Context(), configMap("nowhere"))
		if err != nil || p.Outcome != plan.Failed || !strings.Contains(p.Reason, "boom") {
			t.Errorf("the plan is %+v, %v", p, err)
		}
	})
}

func TestADrivenFrameworkCountsConflictsInARow(t *testing.T) {
	f := newFramework(t, framework.Config{Driven: true, Source: informer.NewPush("objects")}, &resource{name: "page", created: func(context.Context, any) error { return conflict() }})
	for i := 1; i <= 5; i++ {
		if _, err := f.ReconcileObject(t.Context(), configMap("a")); !framework.IsConflict(err) {
			t.Fatalf("got %v, want a conflict", err)
		}
		if _, fails := access.EngineOf(f).FailingSince(keyOf("a")); fails != (i == 5) {
			t.Errorf("after %d conflicts in a row the object fails: %t", i, fails)
		}
	}
}
