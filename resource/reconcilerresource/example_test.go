package reconcilerresource_test

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/reconcilerresource"
)

// A reconciler written for controller-runtime runs as one resource among others.
func ExampleNew() {
	legacy, err := reconcilerresource.New(reconcilerresource.Config{
		Name: "legacy",
		Reconciler: reconcile.Func(func(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
			fmt.Println("reconcile", req)
			return reconcile.Result{}, nil
		}),
	})
	if err != nil {
		panic(err)
	}
	if err := framework.ProcessUpdate(context.Background(), object, []framework.Resource{legacy}); err != nil {
		panic(err)
	}
	// Output: reconcile default/home
}
