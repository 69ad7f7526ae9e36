package machines

import (
	"errors"
	"fmt"
	"testing"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment"
)

// R14: why a plan failed is told in the status by later reconciliations, which have not read what this one has.
func TestR14WhatIsRememberedOfAFailureHasNoSecretValues(t *testing.T) {
	const value = "hunter2-and-more"
	ctx := secretscontext.NewContext(t.Context())
	secretscontext.Add(ctx, value)
	svc, version, f := &v1alpha1.MachineService{}, v1alpha1.Version{}, failures{}
	f.note(ctx, svc, version, errors.New("use "+value))
	if text := f.last(svc); text != "use (sensitive)" {
		t.Errorf("it tells %q", text)
	}
	f.note(ctx, svc, version, fmt.Errorf("%w: use %s", deployment.ErrPaused, value))
	if given, want := f.givenUp(svc, version), deployment.ErrPaused.Error()+": use (sensitive)"; given == nil || given.Message != want {
		t.Errorf("it tells %+v, want %q", given, want)
	}
}
