package framework_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/context/updatenecessarycontext"
	"github.com/operatorkit/operatorkit/framework"
)

func TestR7ResourcesRunInTheOrderGivenUntilTheFirstError(t *testing.T) {
	calls := &journal{}
	say := func(name string, err error) framework.Resource {
		return &resource{name: name,
			created: func(context.Context, any) error { calls.add("created " + name); return err },
			deleted: func(context.Context, any) error { calls.add("deleted " + name); return err }}
	}
	resources := []framework.Resource{say("a", nil), say("b", errBoom), say("c", nil)}

	if err := framework.ProcessUpdate(t.Context(), configMap("x"), resources); !errors.Is(err, errBoom) {
		t.Errorf("update: got %v, want boom", err)
	}
	if err := framework.ProcessDelete(t.Context(), configMap("x"), resources); !errors.Is(err, errBoom) {
		t.Errorf("delete: got %v, want boom", err)
	}
	if diff := cmp.Diff([]string{"created a", "created b", "deleted a", "deleted b"}, calls.all()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestR10EveryResourceHasAnObjectOfItsOwn(t *testing.T) {
	spoil := func(name string) framework.Resource {
		return &resource{name: name, created: func(_ context.Context, obj any) error {
			cm := obj.(*corev1.ConfigMap)
			if cm.Data["key"] != "value" {
				t.Errorf("resource %s sees what another one changed: %v", name, cm.Data)
			}
			cm.Data["key"] = "spoilt by " + name
			return nil
		}}
	}
	given := configMap("x", "key", "value")

	err := framework.ProcessUpdate(t.Context(), given, []framework.Resource{spoil("a"), spoil("b"), spoil("c")})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(configMap("x", "key", "value"), given); diff != "" {
		t.Errorf("the caller's object was changed (-want +got):\n%s", diff)
	}
}

func TestProcessingWithoutResourcesFails(t *testing.T) {
	err := framework.ProcessUpdate(t.Context(), configMap("x"), nil)
	if !framework.IsExecutionFailed(err) {
		t.Errorf("got %v, want an execution failed error", err)
	}
}

func TestSignalsOfAReconciliationReachTheCaller(t *testing.T) {
	r := &resource{name: "r", deleted: func(ctx context.Context, _ any) error {
		finalizerskeptcontext.SetKept(ctx)
		requeuecontext.SetAfter(ctx, time.Minute)
		requeuecontext.SetAfter(ctx, time.Hour)
		return nil
	}}
	ctx := requeuecontext.NewContext(finalizerskeptcontext.NewContext(t.Context()))

	if err := framework.ProcessDelete(ctx, configMap("x"), []framework.Resource{r}); err != nil {
		t.Fatal(err)
	}
	if !finalizerskeptcontext.IsKept(ctx) {
		t.Error("the kept finalizer is lost")
	}
	if after, ok := requeuecontext.After(ctx); !ok || after != time.Minute {
		t.Errorf("got %v, want the shortest requeue, 1m", after)
	}
}

func TestUpdateNecessaryReachesLaterResources(t *testing.T) {
	var seen []bool
	look := func(ctx context.Context, _ any) error {
		seen = append(seen, updatenecessarycontext.IsUpdateNecessary(ctx))
		return nil
	}
	resources := []framework.Resource{
		&resource{name: "before", created: look},
		&resource{name: "setter", created: func(ctx context.Context, _ any) error { updatenecessarycontext.SetUpdateNecessary(ctx); return nil }},
		&resource{name: "after", created: look},
	}
	for range 2 {
		if err := framework.ProcessUpdate(t.Context(), configMap("x"), resources); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]bool{false, true, false, true}, seen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
