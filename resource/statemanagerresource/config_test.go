package statemanagerresource_test

import (
	"context"
	"testing"

	"github.com/giantswarm/micrologger/microloggertest"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanagerresource"
)

func TestNewNamesEveryFaultyField(t *testing.T) {
	_, err := statemanagerresource.New(statemanagerresource.Config[any]{})
	want := "invalid config: statemanagerresource.Config: Manager must not be nil; Logger must not be nil; Compute must not be nil"
	if !framework.IsInvalidConfig(err) || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
	_, err = statemanagerresource.NewCheck(statemanagerresource.CheckConfig[any]{})
	want = "invalid config: statemanagerresource.CheckConfig: Compute must not be nil"
	if !framework.IsInvalidConfig(err) || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

func TestResourcesHaveNames(t *testing.T) {
	compute := func(context.Context, any) (*statemanager.Set, *statemanager.Work, error) { return nil, nil, nil }
	for name, want := range map[string][2]string{
		"":     {statemanagerresource.DefaultName, statemanagerresource.DefaultCheckName},
		"mine": {"mine", "mine"},
	} {
		services, err := statemanagerresource.New(statemanagerresource.Config[any]{
			Name: name, Manager: &desk{}, Logger: microloggertest.New(), Compute: compute,
		})
		if err != nil {
			t.Fatal(err)
		}
		check, err := statemanagerresource.NewCheck(statemanagerresource.CheckConfig[any]{Name: name, Compute: compute})
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]string{services.Name(), check.Name()}; got != want {
			t.Errorf("the resources of the name %q are called %q, want %q", name, got, want)
		}
	}
}

func TestAnObjectOfAnotherTypeIsRefused(t *testing.T) {
	k := newKit(t, creates("web"))
	for _, r := range k.resources {
		for event, ensure := range map[string]func(context.Context, any) error{"update": r.EnsureCreated, "delete": r.EnsureDeleted} {
			if err := ensure(t.Context(), &statemanager.Set{}); !framework.IsPermanent(err) {
				t.Errorf("%s of %s: error = %v, want a permanent one", event, r.Name(), err)
			}
		}
	}
	k.wantDone()
}
