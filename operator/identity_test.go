package operator_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// frameworkOf makes a framework of one resource that holds its objects.
func frameworkOf(t testing.TB, config framework.Config) *framework.Framework {
	t.Helper()
	config.Logger, config.Resources = quiet(t), []framework.Resource{&resource{}}
	f, err := framework.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// holding is a source of a test that can hold its objects.
type holding struct {
	*informer.Push
	informer.FinalizerStore
}

func TestR16FrameworksThatWouldTakeWhatIsTheOthersAreRefused(t *testing.T) {
	source := func(name string) informer.Source { return holding{Push: informer.NewPush(name)} }
	for want, frameworks := range map[string][2]framework.Config{
		`Frameworks[1] must not have the name "one" of an earlier one`: {
			{Name: "one", Source: source("a")}, {Name: "one", Source: source("b")},
		},
		`Frameworks[1], "two", must not have the finalizer "example.com/own" of the framework "one": each would take off what holds objects for the other`: {
			{Name: "one", Source: source("a"), Finalizer: "example.com/own"}, {Name: "two", Source: source("b"), Finalizer: "example.com/own"},
		},
		`Frameworks[0], "two", must not have the former name "one", which another framework has: it would take over what is that one's`: {
			{Name: "two", Source: source("a"), FormerNames: []string{"one"}}, {Name: "one", Source: source("b")},
		},
		`Frameworks[0]: invalid config: framework "one" is of the operator "other" by its Config.Operator, and not of "test": leave Operator empty`: {
			{Name: "one", Source: source("a"), Operator: "other"}, {Name: "two", Source: source("b")},
		},
	} {
		config := operator.Config{Name: "test", Logger: quiet(t), Frameworks: []*framework.Framework{frameworkOf(t, frameworks[0]), frameworkOf(t, frameworks[1])}}
		if _, err := operator.New(config); !framework.IsInvalidConfig(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestR16FrameworkThatNamesNoOperatorIsOfTheOneThatRunsIt(t *testing.T) {
	f := frameworkOf(t, framework.Config{Name: "things", Source: holding{Push: informer.NewPush("objects")}, FormerNames: []string{"objects"}})
	if got := f.Identity().Operator; got != identity.Program() {
		t.Errorf("without an operator it is of %q", got)
	}
	newOperator(t, operator.Config{Name: "gardener", FormerNames: []string{"farmer"}, Frameworks: []*framework.Framework{f}})
	want := identity.Identity{Operator: "gardener", Framework: "things", FormerOperators: []string{"farmer"}, FormerFrameworks: []string{"objects"}}
	if diff := cmp.Diff(want, f.Identity()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("operatorkit.io/v1_gardener_things", f.Finalizer()); diff != "" {
		t.Error(diff)
	}
}

// finalizersOf returns the finalizers of a ConfigMap, and "gone" without one.
func finalizersOf(t testing.TB, c client.Client, namespace, name string) string {
	t.Helper()
	var cm corev1.ConfigMap
	err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &cm)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err != nil {
		return "gone"
	}
	return strings.Join(cm.Finalizers, " ")
}

func TestR16WhatAnOperatorHeldUnderAFormerNameItHoldsUnderTheNewOne(t *testing.T) {
	instance := operatortest.Start(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	dependent := func(t *testing.T, namespace string, config operator.DependenciesConfig) *framework.Framework {
		config.RESTConfig, config.Namespaces = instance.RESTConfig(), []string{namespace}
		deps := newDependencies(t, config)
		source, err := deps.NewSource(&corev1.ConfigMap{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := deps.NewFramework(framework.Config{Source: source, Resources: []framework.Resource{&resource{}}})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for name, start := range map[string]func(t *testing.T, namespace, name string, former ...string) *running{
		"of operator.Config": func(t *testing.T, namespace, name string, former ...string) *running {
			f := frameworkOf(t, framework.Config{Source: configMaps(t, c, namespace)})
			return run(t, newOperator(t, operator.Config{Name: name, FormerNames: former, Frameworks: []*framework.Framework{f}}))
		},
		"of DependenciesConfig": func(t *testing.T, namespace, name string, former ...string) *running {
			f := dependent(t, namespace, operator.DependenciesConfig{Name: name, FormerNames: former})
			return run(t, newOperator(t, operator.Config{Name: name, Frameworks: []*framework.Framework{f}}))
		},
		"of operator.Config, with a framework of Dependencies": func(t *testing.T, namespace, name string, former ...string) *running {
			f := dependent(t, namespace, operator.DependenciesConfig{Name: name})
			return run(t, newOperator(t, operator.Config{Name: name, FormerNames: former, Frameworks: []*framework.Framework{f}}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := instance.Namespace(t)
			if err := c.Create(t.Context(), configMap(namespace, "a")); err != nil {
				t.Fatal(err)
			}
			before := start(t, namespace, "farmer")
			operatortest.Eventually(t, "it is held", func() bool {
				return finalizersOf(t, c, namespace, "a") == "operatorkit.io/v1_farmer_configmaps"
			})
			if err := before.stop(); err != nil {
				t.Fatal(err)
			}
			start(t, namespace, "gardener", "farmer")
			operatortest.Eventually(t, "it is held under the new name", func() bool {
				return finalizersOf(t, c, namespace, "a") == "operatorkit.io/v1_gardener_configmaps"
			})
		})
	}
}

func TestOneQuestionIsOneSourceWhichIsNamedAfterIt(t *testing.T) {
	deps := newDependencies(t, operator.DependenciesConfig{RESTConfig: operatortest.Start(t).RESTConfig(), Namespaces: []string{"home"}})
	untyped := &unstructured.Unstructured{}
	untyped.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(untyped.GroupVersionKind())
	selected := func(text string) labels.Selector {
		selector, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return selector
	}
	byName := operator.WithFields(fields.OneTermEqualSelector("a", "b"))
	// Twice, the second time the other way round: neither the order nor what else is there has a say.
	questions := []struct {
		want    string
		object  client.Object
		options []operator.SourceOption
	}{
		{"configmaps", &corev1.ConfigMap{}, nil},
		{"configmaps as unstructured", untyped, nil},
		{"configmaps as metadata", metadata, nil},
		{"configmaps in home", &corev1.ConfigMap{}, []operator.SourceOption{operator.InNamespaces("home")}},
		{"configmaps in a,b", &corev1.ConfigMap{}, []operator.SourceOption{operator.InNamespaces("b", "a", "b")}},
		{"configmaps in all namespaces", &corev1.ConfigMap{}, []operator.SourceOption{operator.InNamespaces()}},
		{"configmaps with labels a=b,c=d", &corev1.ConfigMap{}, []operator.SourceOption{operator.WithLabels(selected("c=d,a=b"))}},
		{"configmaps with fields a=b", &corev1.ConfigMap{}, []operator.SourceOption{byName}},
		{"configmaps as metadata in a with fields a=b", metadata, []operator.SourceOption{byName, operator.InNamespaces("a")}},
		{"secrets", &corev1.Secret{}, nil},
	}
	made := map[string]*informer.Kubernetes{}
	for _, q := range questions {
		source, err := deps.NewSource(q.object, q.options...)
		if err != nil {
			t.Fatal(err)
		}
		if source.Name() != q.want {
			t.Errorf("it is called %q, want %q", source.Name(), q.want)
		}
		made[q.want] = source
	}
	for _, q := range questions {
		if again, err := deps.NewSource(q.object, q.options...); err != nil || again != made[q.want] {
			t.Errorf("%s: another source, %v", q.want, err)
		}
	}
	for want, option := range map[string]operator.SourceOption{
		"configmaps":  operator.WithResync(time.Hour),
		"maps of all": operator.Named("maps of all"),
	} {
		own, err := deps.NewSource(&corev1.ConfigMap{}, option)
		if err != nil || own == made["configmaps"] || own.Name() != want {
			t.Errorf("one of its own: %v, %v, want the name %q", own, err, want)
		}
	}
	indexed, err := deps.NewSource(&corev1.ConfigMap{}, operator.WithTransform(informer.TransformNothing),
		operator.WithIndexers(map[string]informer.IndexFunc{"all": func(any) []string { return []string{""} }}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := indexed.ByIndex("all", ""); err != nil {
		t.Errorf("it lacks its index: %v", err)
	}
	owned, err := deps.NewOwnedSource(&corev1.ConfigMap{})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := deps.NewOwnedSource(&corev1.ConfigMap{}); err != nil || again != owned || owned == made["configmaps"] {
		t.Errorf("owned objects: another source, or that of all: %v", err)
	}
}

func TestR16FrameworksOfOneOperatorShareASourceAndHoldItsObjectsForThemselves(t *testing.T) {
	instance := operatortest.Start(t)
	namespace := instance.Namespace(t)
	deps := newDependencies(t, operator.DependenciesConfig{RESTConfig: instance.RESTConfig(), Namespaces: []string{namespace}})
	var frameworks []*framework.Framework
	for _, name := range []string{"one", "two"} {
		source, err := deps.NewSource(&corev1.ConfigMap{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := deps.NewFramework(framework.Config{Name: name, Source: source, Resources: []framework.Resource{&resource{
			func(context.Context, any) error { return errBroken },
		}}})
		if err != nil {
			t.Fatal(err)
		}
		frameworks = append(frameworks, f)
	}
	run(t, newOperator(t, operator.Config{Name: deps.Name, Frameworks: frameworks, Registry: deps.Registry}))
	if err := deps.Client.Create(t.Context(), configMap(namespace, "a")); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "both hold it", func() bool {
		held := finalizersOf(t, deps.Client, namespace, "a")
		return strings.Contains(held, "_dependent_one") && strings.Contains(held, "_dependent_two")
	})
	operatortest.Eventually(t, "the events of both say whose they are", func() bool {
		var events corev1.EventList
		if err := deps.Client.List(t.Context(), &events, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		from := map[string]bool{}
		for _, e := range events.Items {
			from[e.Source.Component] = true
		}
		return from["dependent/one"] && from["dependent/two"]
	})
	if err := deps.Client.Delete(t.Context(), configMap(namespace, "a")); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "it is gone", func() bool { return finalizersOf(t, deps.Client, namespace, "a") == "gone" })
}

func TestR16OperatorOfAnyNameRunsAndLeavesMarksThatSayWhose(t *testing.T) {
	instance := operatortest.Start(t)
	namespace := instance.Namespace(t)
	name := "https://example.com/" + strings.Repeat("operators/", 30) + "Gärtner_*"
	deps := newDependencies(t, operator.DependenciesConfig{Name: name, RESTConfig: instance.RESTConfig(), Namespaces: []string{namespace}})
	source, err := deps.NewSource(&corev1.ConfigMap{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := deps.NewFramework(framework.Config{Name: name, Source: source, Resources: []framework.Resource{&resource{
		func(context.Context, any) error { return errBroken },
	}}})
	if err != nil {
		t.Fatal(err)
	}
	o := newOperator(t, operator.Config{
		Name: name, RESTConfig: deps.RESTConfig, Frameworks: []*framework.Framework{f}, Registry: deps.Registry, ListenAddress: "127.0.0.1:0",
		LeaderElection: operator.LeaderElectionConfig{Enabled: true, Namespace: namespace, Identity: "a"},
	})
	run(t, o)
	if err := operatortest.NewClient(t, instance.RESTConfig(), nil).Create(t.Context(), configMap(namespace, "a")); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "it is held", func() bool { return finalizersOf(t, deps.Client, namespace, "a") == f.Finalizer() })
	var leases coordinationv1.LeaseList
	if err := deps.Client.List(t.Context(), &leases, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	if len(leases.Items) != 1 || leases.Items[0].Name != identity.LeaseName(name) {
		t.Errorf("leases %v, want %s", leases.Items, identity.LeaseName(name))
	}
	var events corev1.EventList
	operatortest.Eventually(t, "an event", func() bool {
		if err := deps.Client.List(t.Context(), &events, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		return len(events.Items) > 0
	})
	if got := events.Items[0]; got.Source.Component != f.Identity().Component() || got.ReportingController != f.Identity().Component() {
		t.Errorf("the event is of %q and %q", got.Source.Component, got.ReportingController)
	}
	if _, metrics := get(t, o, "/metrics"); !strings.Contains(metrics, fmt.Sprintf("operatorkit_operator_leading{operator=%q} 1", name)) {
		t.Error("no metric tells that it leads")
	}
}
