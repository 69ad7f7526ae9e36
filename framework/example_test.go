package framework_test

import (
	"context"
	"fmt"
	"os"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

// greetings keeps a greeting for each ConfigMap in a map, which stands for any system that an operator manages.
type greetings struct{ said map[string]string }

func (*greetings) Name() string { return "greetings" }

func (g *greetings) GetCurrentState(_ context.Context, cm *corev1.ConfigMap) (string, error) {
	return g.said[cm.Name], nil
}

func (*greetings) GetDesiredState(_ context.Context, cm *corev1.ConfigMap) (string, error) {
	return "hello " + cm.Data["who"], nil
}

func (*greetings) NewUpdatePatch(_ context.Context, _ *corev1.ConfigMap, current, desired string) (*framework.TypedPatch[string], error) {
	patch := framework.NewTypedPatch[string]()
	switch current {
	case desired:
		return nil, nil
	case "":
		patch.SetCreateChange(desired)
	default:
		patch.SetUpdateChange(desired)
	}
	return patch, nil
}

func (*greetings) NewDeletePatch(_ context.Context, _ *corev1.ConfigMap, current, _ string) (*framework.TypedPatch[string], error) {
	patch := framework.NewTypedPatch[string]()
	patch.SetDeleteChange(current)
	return patch, nil
}

func (g *greetings) ApplyCreateChange(_ context.Context, cm *corev1.ConfigMap, change string) error {
	g.said[cm.Name] = change
	fmt.Println("create:", change)
	return nil
}

func (g *greetings) ApplyUpdateChange(_ context.Context, cm *corev1.ConfigMap, change string) error {
	g.said[cm.Name] = change
	fmt.Println("update:", change)
	return nil
}

func (g *greetings) ApplyDeleteChange(_ context.Context, cm *corev1.ConfigMap, change string) error {
	delete(g.said, cm.Name)
	fmt.Println("delete:", change)
	return nil
}

func ExampleProcessUpdate() {
	logger, _ := micrologger.New(micrologger.Config{IOWriter: os.Stderr})
	resource, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[*corev1.ConfigMap, string]{
		Logger: logger,
		Ops:    &greetings{said: map[string]string{}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	resources := []framework.Resource{resource}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"who": "world"}}

	_ = framework.ProcessUpdate(context.Background(), cm, resources) // creates
	_ = framework.ProcessUpdate(context.Background(), cm, resources) // nothing to do
	cm.Data["who"] = "again"
	_ = framework.ProcessUpdate(context.Background(), cm, resources) // updates
	_ = framework.ProcessDelete(context.Background(), cm, resources) // deletes
	// Output:
	// create: hello world
	// update: hello again
	// delete: hello again
}

func ExampleFramework() {
	logger, _ := micrologger.New(micrologger.Config{IOWriter: os.Stderr})
	ctx, stop := context.WithCancel(context.Background())
	done := &resource{name: "done", created: func(context.Context, any) error { stop(); return nil }}
	greet, _ := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[*corev1.ConfigMap, string]{
		Logger: logger, Ops: &greetings{said: map[string]string{}},
	})
	set, _ := framework.NewResourceSet(framework.ResourceSetConfig{
		Handles:   framework.HandlesType[*corev1.ConfigMap],
		Resources: []framework.Resource{greet, done},
	})
	router, _ := framework.NewResourceRouter(framework.ResourceRouterConfig{Logger: logger, ResourceSets: []*framework.ResourceSet{set}})
	source := informer.NewPush("configmaps") // in an operator: informer.NewKubernetes
	f, err := framework.New(framework.Config{Source: source, ResourceRouter: router, Logger: logger})
	if err != nil {
		fmt.Println(err)
		return
	}

	_ = source.Update(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"who": "world"}})
	err = f.Run(ctx)
	fmt.Println("ended:", err)
	// Output:
	// create: hello world
	// ended: <nil>
}

func ExampleNew_invalidConfig() {
	_, err := framework.New(framework.Config{Workers: -1})
	fmt.Println(framework.IsInvalidConfig(err))
	fmt.Println(err)
	// Output:
	// true
	// invalid config: Config: Logger must not be nil; ResourceRouter must not be nil, or ResourceSets or Resources not be empty; Workers must not be negative, is -1
}
