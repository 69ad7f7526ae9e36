package commandtest

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// Scenario returns what a scenario has of the whole operator of a configuration, whose definitions are on the test's control plane then. The
// story is the author's:
//
//	s := commandtest.Scenario(t, website.Config)
//	s.Phases = []operatortest.Phase{
//		{Do: operatortest.Create(site), Until: operatortest.Ready(site)},
//		{Do: operatortest.Delete(site), Until: operatortest.Gone(site)},
//	}
//	s.Objects = []client.Object{&v1alpha1.Website{}, &corev1.ConfigMap{}}
//	operatortest.BreakAtEveryWrite(t, s)
//
// args are more flags of "run", see Start. For operatortest.Rights the operator is the one of its manifests, with these flags.
func Scenario(t testing.TB, config command.Config, args ...string) operatortest.Scenario {
	t.Helper()
	return ScenarioOn(t, operatortest.Start(t), config, args...)
}

// ScenarioOn is Scenario for a control plane that the test has started, such as one with the controllers of workloads:
//
//	kube := operatortest.Start(t, operatortest.WithConfig(operatortest.Config{Controllers: operatortest.WorkloadControllers()}))
//	s := commandtest.ScenarioOn(t, kube, website.Config)
func ScenarioOn(t testing.TB, kube *operatortest.Instance, config command.Config, args ...string) operatortest.Scenario {
	t.Helper()
	install(t, kube, config)
	return operatortest.Scenario{
		Name: config.Name, Scheme: schemeOf(t, config), Config: kube.RESTConfig(), Start: Start(config, args...), Normalize: objectresource.Normalize,
		Deployed: deployed(config, args),
	}
}

// Running is an operator that runs in a namespace of a control plane until the end of its test.
type Running struct {
	// Instance is the control plane, on which the definitions of the operator are, and Namespace what the operator looks at.
	Instance  *operatortest.Instance
	Namespace string
	// User is a client for the user's part. It knows the types of the operator.
	User client.WithWatch
}

// Operator runs the whole operator of a configuration, as Start does, in a namespace of the test's. The test fails if it ends before its
// time, or with an error. args are more flags of "run".
func Operator(t testing.TB, config command.Config, args ...string) *Running {
	t.Helper()
	kube := operatortest.Start(t)
	install(t, kube, config)
	r := &Running{Instance: kube, Namespace: kube.Namespace(t), User: operatortest.NewClient(t, kube.RESTConfig(), schemeOf(t, config))}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := Start(config, args...)(ctx, kube.RESTConfig(), r.Namespace)
		if err != nil || ctx.Err() == nil {
			t.Errorf("the operator %s has ended: %v", config.Name, err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return r
}

// install puts the definitions of the operator onto a control plane.
func install(t testing.TB, kube *operatortest.Instance, config command.Config) {
	t.Helper()
	crds := config.CRDs
	if config.CRDFiles != nil {
		read, err := operator.ReadCRDs(config.CRDFiles)
		if err != nil {
			t.Fatal(err)
		}
		crds = append(crds[:len(crds):len(crds)], read...)
	}
	kube.InstallCRDs(t, crds...)
}

// schemeOf knows the types of Kubernetes and of the operator.
func schemeOf(t testing.TB, config command.Config) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{clientgoscheme.AddToScheme}, config.AddToScheme...) {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}
