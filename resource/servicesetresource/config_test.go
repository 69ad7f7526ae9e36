package servicesetresource_test

import (
	"context"
	"testing"

	"github.com/giantswarm/micrologger/microloggertest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/servicesetresource"
)

func TestNewNamesEveryFaultyField(t *testing.T) {
	_, err := servicesetresource.New(servicesetresource.Config[any]{})
	want := "invalid config: servicesetresource.Config: Client must not be nil; Logger must not be nil; Compute must not be nil"
	if !framework.IsInvalidConfig(err) || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
	_, err = servicesetresource.NewCheck(servicesetresource.CheckConfig[any]{})
	want = "invalid config: servicesetresource.CheckConfig: Compute must not be nil"
	if !framework.IsInvalidConfig(err) || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

func TestResourcesHaveNames(t *testing.T) {
	compute := func(context.Context, any) ([]serviceset.OwnerOperation, error) { return nil, nil }
	for name, want := range map[string][2]string{
		"":     {servicesetresource.DefaultName, servicesetresource.DefaultCheckName},
		"mine": {"mine", "mine"},
	} {
		sets, err := servicesetresource.New(servicesetresource.Config[any]{
			Name: name, Client: struct{ client.Client }{}, Logger: microloggertest.New(), Compute: compute,
		})
		if err != nil {
			t.Fatal(err)
		}
		check, err := servicesetresource.NewCheck(servicesetresource.CheckConfig[any]{Name: name, Compute: compute})
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]string{sets.Name(), check.Name()}; got != want {
			t.Errorf("the resources of the name %q are called %q, want %q", name, got, want)
		}
	}
}

func TestCheckRefusesAnotherType(t *testing.T) {
	check, err := servicesetresource.NewCheck(servicesetresource.CheckConfig[*v1alpha1.ClusterDeployment]{
		Compute: func(context.Context, *v1alpha1.ClusterDeployment) ([]serviceset.OwnerOperation, error) {
			t.Error("computed for another type")
			return nil, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := check.EnsureCreated(t.Context(), &v1alpha1.MultiClusterService{}); !framework.IsPermanent(err) {
		t.Errorf("error = %v, want a permanent one", err)
	}
}
