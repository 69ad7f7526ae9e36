package statusresource_test

import (
	"context"
	"fmt"

	"github.com/giantswarm/micrologger"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/statusresource"
)

// The last resource of a set. A website is ready when everything before it succeeded, and it has an address.
func ExampleNew() {
	newStatus := func(c client.Client, logger micrologger.Logger) (framework.Resource, error) {
		return statusresource.New(statusresource.Config[*unstructured.Unstructured]{
			Client: c, Logger: logger,
			Set: func(_ context.Context, site *unstructured.Unstructured, report *statusresource.Report) error {
				if address, _, _ := unstructured.NestedString(site.Object, "spec", "address"); address == "" {
					report.Reconciling("NoAddress", "an address is given to it by the network team")
				}
				return nil
			},
		})
	}

	_, err := newStatus(nil, nil)
	fmt.Println(err)
	// Output: invalid config: statusresource.Config: Client must not be nil; Logger must not be nil
}
