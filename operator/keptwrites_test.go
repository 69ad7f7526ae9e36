package operator_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/context/ownwritescontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// writer returns dependencies of an operator of a namespace.
func writer(t *testing.T, instance *operatortest.Instance, namespace string) *operator.Dependencies {
	t.Helper()
	d, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: "writer", RESTConfig: instance.RESTConfig(), Scheme: clientgoscheme.Scheme, Logger: quiet(t), Namespaces: []string{namespace},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// sourceOf returns a source of the ConfigMaps with a label.
func sourceOf(t *testing.T, d *operator.Dependencies, label string) *informer.Kubernetes {
	t.Helper()
	source, err := d.NewSource(&corev1.ConfigMap{}, operator.WithLabels(labels.SelectorFromSet(labels.Set{"of": label})))
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func labelled(namespace, name, label string) *corev1.ConfigMap {
	cm := configMap(namespace, name)
	cm.Labels = map[string]string{"of": label}
	return cm
}

// Each framework writes once, at its first look: to its object, or to another one that it watches.
func TestR11OwnWritesAreAReasonWhereThatIsAskedFor(t *testing.T) {
	instance := operatortest.Start(t)
	namespace := instance.Namespace(t)
	user := operatortest.NewClient(t, instance.RESTConfig(), nil)
	d := writer(t, instance, namespace)
	children := sourceOf(t, d, "child")
	toPrimary := func(name string) informer.MapFunc {
		return func(_ context.Context, child any) []informer.Key {
			if child.(*corev1.ConfigMap).Name != "child-of-"+name {
				return nil
			}
			return []informer.Key{{Namespace: namespace, Name: name}}
		}
	}
	type framed struct {
		config framework.Config
		writes string
		keeps  bool
		looks  atomic.Int64
	}
	all := map[string]*framed{
		"plain":   {writes: "plain"},
		"primary": {writes: "primary", config: framework.Config{OwnWrites: true}},
		"signal":  {writes: "signal", keeps: true},
		"watched": {writes: "child-of-watched", config: framework.Config{Watches: []framework.Watch{{Source: children, Map: toPrimary("watched")}}}},
		"kept":    {writes: "child-of-kept", config: framework.Config{Watches: []framework.Watch{{Source: children, Map: toPrimary("kept"), OwnWrites: true}}}},
	}
	var frameworks []*framework.Framework
	for name, of := range all {
		config := of.config
		config.Name, config.Source, config.DisableFinalizer = name, sourceOf(t, d, name), true
		config.Resources = []framework.Resource{&resource{func(ctx context.Context, _ any) error {
			if of.looks.Add(1) > 1 {
				return nil
			}
			if of.keeps {
				ownwritescontext.SetKept(ctx)
			}
			written := configMap(namespace, of.writes)
			if err := d.Client.Get(ctx, client.ObjectKeyFromObject(written), written); err != nil {
				return err
			}
			written.Data = map[string]string{"noted": "yes"}
			// The write has a version, so another client can't have changed the object meanwhile.
			return d.Client.Update(ctx, written)
		}}}
		f, err := d.NewFramework(config)
		if err != nil {
			t.Fatal(err)
		}
		frameworks = append(frameworks, f)
	}
	for _, child := range []string{"child-of-watched", "child-of-kept"} {
		must(t, user.Create(t.Context(), labelled(namespace, child, "child")))
	}
	for name := range all {
		must(t, user.Create(t.Context(), labelled(namespace, name, name)))
	}
	run(t, newOperator(t, operator.Config{Name: "writer", Frameworks: frameworks, Registry: d.Registry}))
	looked := func(looks map[string]int64) {
		t.Helper()
		operatortest.Eventually(t, fmt.Sprint("there were the looks ", looks), func() error {
			for name, want := range looks {
				if got := all[name].looks.Load(); got != want {
					return fmt.Errorf("%d of %s", got, name)
				}
			}
			return nil
		})
	}
	looked(map[string]int64{"plain": 1, "watched": 1, "primary": 2, "signal": 2, "kept": 2})
	// A change by another client arrives later by the same way.
	for _, name := range []string{"plain", "child-of-watched"} {
		must(t, user.Patch(t.Context(), configMap(namespace, name), client.RawPatch("application/merge-patch+json", []byte(`{"data":{"theirs":"yes"}}`))))
	}
	looked(map[string]int64{"plain": 2, "watched": 2, "primary": 2, "signal": 2, "kept": 2})
}

func TestR11WhatAnOwnWriteTakesOutOfASelectionIsGoneAtOnce(t *testing.T) {
	instance := operatortest.Start(t)
	namespace := instance.Namespace(t)
	d := writer(t, instance, namespace)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(stop)
	here, there := sourceOf(t, d, "here"), sourceOf(t, d, "there")
	for _, source := range []*informer.Kubernetes{here, there} {
		ended := make(chan error, 1)
		go func() { ended <- source.Run(ctx) }()
		t.Cleanup(func() {
			stop()
			must(t, <-ended)
		})
		must(t, source.WaitForSync(t.Context()))
	}
	obj := labelled(namespace, "x", "here")
	must(t, d.Client.Create(t.Context(), obj))
	for n := range 20 {
		in, out := here, there
		if n%2 == 1 {
			in, out = there, here
		}
		key := informer.Key{Namespace: namespace, Name: "x"}
		if _, exists, err := in.Get(key); err != nil || !exists {
			t.Fatalf("after %d moves it is not in the selection that it was moved to: %v", n, err)
		}
		if _, exists, err := out.Get(key); err != nil || exists {
			t.Fatalf("after %d moves it is still in the selection that it was moved from: %v", n, err)
		}
		to := map[bool]string{true: "here", false: "there"}[n%2 == 1]
		must(t, d.Client.Patch(t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"of":"`+to+`"}}}`))))
	}
}

func TestR11AnOwnDeletionIsSeenAtOnceAndTheLaterEndOfWhatOthersHeldWakes(t *testing.T) {
	instance := operatortest.Start(t)
	namespace := instance.Namespace(t)
	user := operatortest.NewClient(t, instance.RESTConfig(), nil)
	g := newGardener(t, instance, namespace, "gardener")
	must(t, user.Create(t.Context(), bed(namespace, "bed", map[string]string{"free": "gardener", "held": "gardener"})))
	at := func(name string) *corev1.ConfigMap {
		found, exists, err := g.owned.Get(informer.Key{Namespace: namespace, Name: name})
		if err != nil {
			t.Error(err)
		}
		if !exists {
			return nil
		}
		return found.(*corev1.ConfigMap)
	}
	operatortest.Eventually(t, "both plants are there", func() bool { return at("free") != nil && at("held") != nil })
	finalizer := func(list string) client.Patch {
		return client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":`+list+`}}`))
	}
	must(t, user.Patch(t.Context(), configMap(namespace, "held"), finalizer(`["example.com/theirs"]`)))
	operatortest.Eventually(t, "the change of another is looked at", func() bool { return g.looks.Load() == 2 })

	must(t, user.Patch(t.Context(), configMap(namespace, "bed"), client.RawPatch("application/merge-patch+json", []byte(`{"data":null}`))))
	operatortest.Eventually(t, "both are deleted", func() bool { return at("free") == nil && at("held").GetDeletionTimestamp() != nil })
	operatortest.Eventually(t, "there was a look for it", func() bool { return g.looks.Load() == 3 })
	must(t, user.Patch(t.Context(), configMap(namespace, "held"), finalizer("null")))
	operatortest.Eventually(t, "the end of what another held is looked at", func() bool { return at("held") == nil && g.looks.Load() >= 4 })
	if looks := g.looks.Load(); looks != 4 {
		t.Errorf("%d looks at a creation, and at three changes of others", looks)
	}
}
