package framework_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

func TestPlanShadowsComparesOneObjectOnDemand(t *testing.T) {
	source := informer.NewPush("objects")
	shadow := changing()
	f := newFramework(t, framework.Config{Name: "websites", Source: source, ResourceRouter: besides(t, settled(), shadow)})
	put(t, source, configMap("a", "v2", "new"))
	put(t, source, configMap("same"))

	verdicts := func(comparisons []*plan.Comparison, err error) []plan.Verdict {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		var all []plan.Verdict
		for _, c := range comparisons {
			if c.Framework != "websites" || c.Active != "v1" || c.Shadow != "v2" || c.Object.Namespace != "default" {
				t.Errorf("comparison of something else: %+v", c)
			}
			all = append(all, c.Verdict())
		}
		return all
	}
	if diff := cmp.Diff([]plan.Verdict{plan.Differs}, verdicts(f.PlanShadows(t.Context(), keyOf("a")))); diff != "" {
		t.Errorf("an object that differs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]plan.Verdict{plan.Agrees}, verdicts(f.PlanShadows(t.Context(), keyOf("same")))); diff != "" {
		t.Errorf("an object that is the same (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]plan.Verdict{plan.Differs}, verdicts(f.PlanObjectShadows(t.Context(), configMap("b", "v2", "new")))); diff != "" {
		t.Errorf("an object that is not there yet (-want +got):\n%s", diff)
	}
	paused := configMap("b", "v2", "new")
	paused.Annotations = map[string]string{framework.PausedAnnotation: "true"}
	if got := verdicts(f.PlanObjectShadows(t.Context(), paused)); got != nil {
		t.Errorf("a paused object has comparisons: %v", got)
	}
	if _, err := f.PlanShadows(t.Context(), keyOf("none")); !apierrors.IsNotFound(err) {
		t.Errorf("got %v for an object that does not exist, want not found", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.PlanShadows(ended, keyOf("a")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the error of the context", err)
	}
	wantSentences(t, f, "v2 would change 0 of 0 objects")
}

func TestPlanShadowsOfADeletionComparesTheDeletions(t *testing.T) {
	source := informer.NewPush("objects")
	events := &journal{}
	noting := &pages{resource: resource{name: "pages"}, plan: func(_ context.Context, e plan.Event, _ *corev1.ConfigMap) (any, error) {
		events.add(string(e))
		return nil, nil
	}}
	f := newFramework(t, framework.Config{Source: source, DisableFinalizer: true, ResourceRouter: besides(t, settled(), noting)})
	deleted := configMap("a")
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	put(t, source, deleted)

	comparisons, err := f.PlanShadows(t.Context(), keyOf("a"))
	if err != nil || len(comparisons) != 1 || comparisons[0].Event != plan.DeleteEvent {
		t.Errorf("got %v and %v, want a comparison of the deletion", comparisons, err)
	}
	if diff := cmp.Diff([]string{"delete"}, events.all()); diff != "" {
		t.Errorf("planned events (-want +got):\n%s", diff)
	}
}

func TestWithoutShadowsThereIsNothingToTell(t *testing.T) {
	f := newFramework(t, framework.Config{}, settled())
	put, err := f.PlanObjectShadows(t.Context(), configMap("a"))
	if f.Shadows() != nil || f.ShadowObjects("v2") != nil || f.ShadowsOf(keyOf("a")) != nil || put != nil || err != nil {
		t.Error("a framework without shadows tells of some")
	}
}
