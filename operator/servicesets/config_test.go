package servicesets_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/logging"
	"github.com/operatorkit/operatorkit/operator/servicesets"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

func dependencies(t *testing.T, addToScheme ...func(*runtime.Scheme) error) *operator.Dependencies {
	t.Helper()
	logger, err := logging.New(logging.Config{Writer: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range addToScheme {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	deps, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: "test", RESTConfig: &rest.Config{Host: "https://localhost:6443"}, Scheme: scheme, Logger: logger,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(deps.Close)
	return deps
}

func TestFaultsOfTheConfigurationAreTold(t *testing.T) {
	_, err := servicesets.New(dependencies(t, v1alpha1.AddToScheme), servicesets.Config{SystemNamespace: "No Namespace"})
	if !framework.IsInvalidConfig(err) || !strings.Contains(err.Error(), `SystemNamespace "No Namespace"`) {
		t.Errorf("a bad namespace: %v", err)
	}
	if _, err := servicesets.New(dependencies(t), servicesets.Config{}); !framework.IsInvalidConfig(err) {
		t.Errorf("a scheme without the types: %v", err)
	}
	deps := dependencies(t, v1alpha1.AddToScheme)
	if _, err := servicesets.New(deps, servicesets.Config{}); err != nil {
		t.Fatal(err)
	}
	if _, err := servicesets.New(deps, servicesets.Config{}); err == nil || !strings.Contains(err.Error(), "New is called once") {
		t.Errorf("a second call: %v", err)
	}
}
