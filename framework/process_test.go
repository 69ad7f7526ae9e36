package framework_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/context/updateallowedcontext"
	"github.com/operatorkit/operatorkit/context/updatenecessarycontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
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

func TestR8ACancelledReconciliationOfTheCallerRunsNothing(t *testing.T) {
	calls := &journal{}
	resources := []framework.Resource{noting(calls)}
	ctx := reconciliationcanceledcontext.NewContext(t.Context())
	reconciliationcanceledcontext.SetCanceled(ctx)
	for name, process := range map[string]func(context.Context, any, []framework.Resource) error{
		"ProcessUpdate": framework.ProcessUpdate, "ProcessDelete": framework.ProcessDelete,
	} {
		if err := process(ctx, configMap("x"), resources); err != nil {
			t.Errorf("%s: got error %v, want none", name, err)
		}
	}
	f := newFramework(t, framework.Config{Driven: true, Source: informer.NewPush("objects")}, resources...)
	res, err := f.ReconcileObject(ctx, configMap("x"))
	if err != nil || res.Outcome != framework.Canceled {
		t.Errorf("ReconcileObject: got %v and error %v, want that it was cancelled", res, err)
	}
	if got := calls.all(); len(got) > 0 {
		t.Errorf("got %v, want nothing", got)
	}
}

func TestR8AContextThatInitCtxMakesOfAnotherOneIsAnError(t *testing.T) {
	foreign := func(context.Context, any) (context.Context, error) { return context.Background(), nil }
	child := func(ctx context.Context, _ any) (context.Context, error) {
		ctx, cancel := context.WithCancel(updateallowedcontext.NewContext(ctx))
		context.AfterFunc(ctx, cancel)
		return ctx, nil
	}
	for name, test := range map[string]struct {
		config, set func(context.Context, any) (context.Context, error)
		foreign     bool
	}{
		"of the configuration": {config: foreign, foreign: true},
		"of the set":           {set: foreign, foreign: true},
		"of the set, after":    {config: child, set: foreign, foreign: true},
		"both children":        {config: child, set: child},
	} {
		t.Run(name, func(t *testing.T) {
			calls := &journal{}
			f := newFramework(t, framework.Config{Driven: true, Source: informer.NewPush("objects"), InitCtx: test.config,
				ResourceRouter: routerOf(t, framework.ResourceSetConfig{InitCtx: test.set, Resources: []framework.Resource{noting(calls)}})})
			_, err := f.ReconcileObject(t.Context(), configMap("x"))
			if !test.foreign {
				if err != nil || len(calls.all()) != 1 {
					t.Errorf("got calls %v and error %v", calls.all(), err)
				}
				return
			}
			if !framework.IsExecutionFailed(err) || !strings.Contains(err.Error(), "make it from that one") || len(calls.all()) > 0 {
				t.Errorf("got calls %v and error %v, want none and an error that says what to do", calls.all(), err)
			}
		})
	}
}
