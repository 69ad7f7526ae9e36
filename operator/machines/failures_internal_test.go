package machines

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// R14: why a plan failed is told in the status by later reconciliations, which have not read what this one has.
func TestR14WhatIsRememberedOfAFailureHasNoSecretValues(t *testing.T) {
	const value = "hunter2-and-more"
	ctx := secretscontext.NewContext(t.Context())
	secretscontext.Add(ctx, value)
	svc, version, plan, f := &v1alpha1.MachineService{}, v1alpha1.Version{}, &deployment.Plan{}, failures{}
	f.note(ctx, svc, version, plan, errors.New("use "+value))
	if text := f.last(svc); text != "use (sensitive)" {
		t.Errorf("it tells %q", text)
	}
	f.note(ctx, svc, version, plan, fmt.Errorf("%w: use %s", deployment.ErrPaused, value))
	if given, want := f.givenUp(svc, version), deployment.ErrPaused.Error()+": use (sensitive)"; given == nil || given.Message != want {
		t.Errorf("it tells %+v, want %q", given, want)
	}
}

func TestOnlyThePlanThatFailedForWantOfWhatContainersShareWaitsForAPause(t *testing.T) {
	planOf := func(machines ...string) *deployment.Plan {
		p := &deployment.Plan{}
		for _, m := range machines {
			p.Operations = append(p.Operations, &deployment.RunContainerOperation{MachineID: m, ContainerName: "web-1"})
		}
		return p
	}
	annotated := func(annotation string) *v1alpha1.MachineService {
		return &v1alpha1.MachineService{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotation: "1"}}}
	}
	synctest.Test(t, func(t *testing.T) {
		svc, version, plan, f := &v1alpha1.MachineService{}, v1alpha1.Version{Generation: 1}, planOf("m1", "m2"), failures{}
		want := func(what string, svc *v1alpha1.MachineService, version v1alpha1.Version, plan *deployment.Plan, want time.Duration) {
			t.Helper()
			if got := f.wait(svc, version, plan); got != want {
				t.Errorf("%s waits for %s, want %s", what, got, want)
			}
		}
		for _, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
			f.note(t.Context(), svc, version, plan, errors.Join(deployment.ErrRolledBack, api.ErrUnprepared))
			want("the plan that failed", svc, version, plan, pause)
			time.Sleep(pause)
			want("after the pause it", svc, version, plan, 0)
		}
		for range 10 {
			f.note(t.Context(), svc, version, plan, api.ErrUnprepared)
		}
		want("the plan that failed often", svc, version, plan, 5*time.Minute)
		want("another plan", svc, version, planOf("m1"), 0)
		want("another version", svc, v1alpha1.Version{Generation: 2}, plan, 0)
		want("one that is to be tried again", annotated(v1alpha1.RetryAnnotation), version, plan, 0)
		want("one that is to be made anew", annotated(v1alpha1.RecreateAnnotation), version, plan, 0)
		f.note(t.Context(), svc, version, plan, api.ErrUnhealthy)
		want("one that failed for another reason", svc, version, plan, 0)
	})
}
