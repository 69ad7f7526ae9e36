package operator_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/logging"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func newDependencies(t *testing.T, config operator.DependenciesConfig) *operator.Dependencies {
	t.Helper()
	if config.Name == "" {
		config.Name = "dependent"
	}
	config.Scheme, config.Logger = clientgoscheme.Scheme, logTo(t, io.Discard)
	deps, err := operator.NewDependencies(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(deps.Close)
	return deps
}

func TestDependenciesMakeAWorkingFrameworkWhoseErrorsAreEvents(t *testing.T) {
	instance := operatortest.Start(t)
	namespace := instance.Namespace(t)
	deps := newDependencies(t, operator.DependenciesConfig{RESTConfig: instance.RESTConfig(), Namespaces: []string{namespace}})
	source, err := deps.NewSource(&corev1.ConfigMap{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := deps.NewFramework(framework.Config{
		Source:         source,
		ResourceRouter: routerOf(t, &resource{func(context.Context, any) error { return errBroken }}),
	})
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, newOperator(t, operator.Config{Name: deps.Name, Frameworks: []*framework.Framework{f}, Registry: deps.Registry}))
	if err := deps.Client.Create(t.Context(), configMap(namespace, "a")); err != nil {
		t.Fatal(err)
	}
	var events corev1.EventList
	operatortest.Eventually(t, "an event", func() bool {
		if err := deps.Client.List(t.Context(), &events, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		return len(events.Items) > 0
	})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	e := events.Items[0]
	got := []string{e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Type, e.Reason, e.Source.Component}
	if diff := cmp.Diff([]string{"ConfigMap", "a", "Warning", framework.ReasonReconciliationFailed, "dependent/configmaps"}, got); diff != "" {
		t.Error(diff)
	}

	families, err := deps.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range families {
		names[f.GetName()] = true
	}
	for _, want := range []string{"go_goroutines", "process_start_time_seconds", "operatorkit_operator_leading"} {
		if !names[want] {
			t.Errorf("metric %s is not there", want)
		}
	}
}

func TestClosedRecorderDropsEventsAndIsClosedAgainWithoutHarm(t *testing.T) {
	instance := operatortest.Start(t)
	namespace := instance.Namespace(t)
	deps := newDependencies(t, operator.DependenciesConfig{RESTConfig: instance.RESTConfig()})
	deps.Close()
	deps.Recorder.Event(configMap(namespace, "a"), corev1.EventTypeNormal, "Late", "too late")
	deps.Close()
	var events corev1.EventList
	if err := operatortest.NewClient(t, instance.RESTConfig(), nil).List(t.Context(), &events, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	if len(events.Items) != 0 {
		t.Errorf("%d events, want none", len(events.Items))
	}
}

func TestBadDependenciesNameEveryFault(t *testing.T) {
	_, err := operator.NewDependencies(operator.DependenciesConfig{Workers: -1})
	if !framework.IsInvalidConfig(err) {
		t.Fatalf("IsInvalidConfig(%v) = false", err)
	}
	want := "invalid config: operator.DependenciesConfig: Name must not be empty; RESTConfig must not be nil; " +
		"Scheme must not be nil; Logger must not be nil; Workers must not be negative, is -1"
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
}

func TestFrameworkRunsInAControllerRuntimeManager(t *testing.T) {
	instance := operatortest.Start(t)
	namespace := instance.Namespace(t)
	manager, err := ctrl.NewManager(instance.RESTConfig(), ctrl.Options{
		Logger:         logging.Logr(quiet(t)),
		Metrics:        metricsserver.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "manager", LeaderElectionNamespace: namespace, LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	var work journal
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	f := newFramework(t, "configmaps", configMaps(t, c, namespace), func(_ context.Context, obj any) error {
		select {
		case <-manager.Elected():
			work.add(fmt.Sprintf("%T %s", obj, obj.(client.Object).GetName()))
		default:
			work.add("before the election")
		}
		return nil
	})
	if err := manager.Add(f); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	if err := c.Create(t.Context(), configMap(namespace, "a")); err != nil {
		t.Error(err)
	}
	operatortest.Eventually(t, "a reconciliation", func() bool { return len(work.all()) > 0 })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff("*v1.ConfigMap a", work.all()[0]); diff != "" {
		t.Error(diff)
	}
}
