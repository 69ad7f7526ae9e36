package metricsresource_test

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/metricsresource"
)

// The resources of a set are measured under its name.
func ExampleWrap() {
	registry := prometheus.NewRegistry()
	resources := []framework.Resource{&plain{name: "pages", ensure: func() error { return nil }}}

	resources, err := metricsresource.Wrap(resources, metricsresource.Config{Name: "websites-v1", Registerer: registry})
	if err != nil {
		panic(err)
	}
	if err := framework.ProcessUpdate(context.Background(), "an object", resources); err != nil {
		panic(err)
	}
	families, err := registry.Gather()
	if err != nil {
		panic(err)
	}
	for _, f := range families {
		fmt.Println(f.GetName())
	}
	// Output:
	// operatorkit_resource_step_duration_seconds
	// operatorkit_resource_step_errors_total
}
