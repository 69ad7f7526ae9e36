package servicesets_test

import (
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/logging"
	"github.com/operatorkit/operatorkit/operator/servicesets"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// New gives an operator its frameworks. Most operators call it in command.Config.New, which hands the dependencies over.
func ExampleNew() {
	logger, err := logging.New(logging.Config{Writer: io.Discard})
	if err != nil {
		panic(err)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	deps, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: "service-operator", RESTConfig: &rest.Config{Host: "https://localhost:6443"}, Scheme: scheme, Logger: logger,
	})
	if err != nil {
		panic(err)
	}
	defer deps.Close()
	frameworks, err := servicesets.New(deps, servicesets.Config{SystemNamespace: "platform-system"})
	if err != nil {
		panic(err)
	}
	for _, f := range frameworks {
		fmt.Println(f.Name())
	}
	// Output:
	// clusterdeployments.services.operatorkit.io
	// multiclusterservices.services.operatorkit.io
	// servicetemplatechains.services.operatorkit.io
}
