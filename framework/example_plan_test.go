package framework_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// What would change is shown, and then done, if it is still the same.
func ExampleFramework_ApplyPlan() {
	ctx := context.Background()
	logger, _ := micrologger.New(micrologger.Config{IOWriter: os.Stderr})
	greet, _ := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[*corev1.ConfigMap, string]{
		Logger: logger, Ops: &greetings{said: map[string]string{}},
	})
	source := informer.NewPush("configmaps") // in an operator: informer.NewKubernetes, which runs and is synced
	f, _ := framework.New(framework.Config{Source: source, Resources: []framework.Resource{greet}, Logger: logger})
	object := func(who string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"who": who}}
	}

	_ = source.Update(object("world"))
	p, _ := f.Plan(ctx, informer.Key{Name: "a"})
	_ = plan.WriteText(os.Stdout, []*plan.Plan{p}, plan.TextOptions{})

	_ = source.Update(object("somebody else"))
	err := f.ApplyPlan(ctx, p)
	fmt.Println("refused:", errors.Is(err, framework.ErrPlanChanged))

	_ = source.Update(object("world"))
	fmt.Println("applied:", f.ApplyPlan(ctx, p))
	// Output:
	// ConfigMap a (update, framework configmaps)
	//   greetings
	//     + "hello world"
	//
	// 1 to create, 0 to update, 0 to delete
	// refused: true
	// create: hello world
	// applied: <nil>
}
