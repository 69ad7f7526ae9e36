package operator_test

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/logging"
)

// An operator runs its frameworks until the context ends. In this example it needs no API server,
// because its objects are pushed.
func Example() {
	logger, err := logging.New(logging.Config{Writer: io.Discard})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	set, err := framework.NewResourceSet(framework.ResourceSetConfig{
		Handles: framework.HandlesType[*corev1.ConfigMap],
		Resources: []framework.Resource{&resource{created: func(_ context.Context, obj any) error {
			fmt.Println("reconciled", obj.(*corev1.ConfigMap).Name)
			cancel()
			return nil
		}}},
	})
	if err != nil {
		panic(err)
	}
	router, err := framework.NewResourceRouter(framework.ResourceRouterConfig{Logger: logger, ResourceSets: []*framework.ResourceSet{set}})
	if err != nil {
		panic(err)
	}
	source := informer.NewPush("configmaps")
	f, err := framework.New(framework.Config{Source: source, ResourceRouter: router, Logger: logger})
	if err != nil {
		panic(err)
	}
	o, err := operator.New(operator.Config{
		Name: "example", Logger: logger, Frameworks: []*framework.Framework{f}, ListenAddress: "127.0.0.1:0",
	})
	if err != nil {
		panic(err)
	}
	if err := source.Update(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "home"}}); err != nil {
		panic(err)
	}
	fmt.Println("stopped:", o.Run(ctx))
	// Output:
	// reconciled home
	// stopped: <nil>
}
