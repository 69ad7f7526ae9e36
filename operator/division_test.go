package operator_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// planter is a replica of an operator that makes a ConfigMap for each of a crew's.
type planter struct {
	*running
	faults           *operatortest.Faults
	primaries, owned *informer.Kubernetes
	// looked are the namespaces in which it has reconciled.
	looked *journal
	// slow is held while lists and watches of what is owned are not answered.
	slow *sync.RWMutex
}

// roundTripper is a function that sends requests.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// plant starts a replica. change may change what it is made of.
func (c *crew) plant(identity string, change func(*objectresource.Config[*corev1.ConfigMap])) *planter {
	c.t.Helper()
	p := &planter{faults: operatortest.NewFaults(), looked: &journal{}, slow: &sync.RWMutex{}}
	restConfig := p.faults.Wrap(c.instance.RESTConfig())
	restConfig.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet && strings.Contains(r.URL.Query().Get("labelSelector"), objectresource.OperatorLabel) {
				p.slow.RLock()
				defer p.slow.RUnlock()
			}
			return next.RoundTrip(r)
		})
	})
	d, err := operator.NewDependencies(operator.DependenciesConfig{Name: c.namespace, RESTConfig: restConfig, Scheme: scheme.Scheme, Logger: c.logger})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(d.Close)
	p.primaries, err = d.NewSource(&corev1.ConfigMap{}, operator.WithLabels(labels.SelectorFromSet(labels.Set{crewLabel: c.namespace})))
	if err != nil {
		c.t.Fatal(err)
	}
	if p.owned, err = d.NewOwnedSource(&corev1.ConfigMap{}); err != nil {
		c.t.Fatal(err)
	}
	own, err := d.Own(&corev1.ConfigMap{}, &corev1.ConfigMap{})
	if err != nil {
		c.t.Fatal(err)
	}
	config := objectresource.Config[*corev1.ConfigMap]{
		Name: "plants", Client: d.Client, Logger: d.Logger, Stores: own.Stores,
		Desired: func(_ context.Context, obj *corev1.ConfigMap) ([]client.Object, error) {
			p.looked.add(obj.Namespace)
			return []client.Object{configMap(obj.Namespace, "plant")}, nil
		},
	}
	if change != nil {
		change(&config)
	}
	plants, err := objectresource.New(config)
	if err != nil {
		c.t.Fatal(err)
	}
	f, err := d.NewFramework(framework.Config{Name: "beds", Source: p.primaries, ResourceRouter: routerOf(c.t, plants), Watches: own.Watches, DisableFinalizer: true})
	if err != nil {
		c.t.Fatal(err)
	}
	p.running = run(c.t, newOperator(c.t, operator.Config{
		Name: c.namespace, RESTConfig: d.RESTConfig, Frameworks: []*framework.Framework{f}, Registry: d.Registry,
		LeaderElection: c.election(identity, nil), Sharding: operator.ShardingConfig{Enabled: true},
	}))
	return p
}

// planted waits until each namespace has its plant.
func (c *crew) planted() {
	c.t.Helper()
	operatortest.Eventually(c.t, "each namespace has its plant", func() error {
		for _, namespace := range c.namespaces {
			if err := c.client.Get(c.t.Context(), client.ObjectKey{Namespace: namespace, Name: "plant"}, &corev1.ConfigMap{}); err != nil {
				return fmt.Errorf("namespace %s: %w", namespace, err)
			}
		}
		return nil
	})
}

// weed deletes all plants, which come back only if somebody is told.
func (c *crew) weed() {
	c.t.Helper()
	for _, namespace := range c.namespaces {
		if err := c.client.Delete(c.t.Context(), configMap(namespace, "plant")); err != nil {
			c.t.Fatal(err)
		}
	}
}

// namespacesOf are the namespaces in which a source holds objects.
func namespacesOf(source *informer.Kubernetes) (namespaces []string) {
	for _, key := range source.Keys() {
		namespaces = append(namespaces, key.Namespace)
	}
	return slices.Compact(slices.Sorted(slices.Values(namespaces)))
}

// divided waits until each namespace is held by exactly one of these replicas, with what it owns, and each replica holds some.
func (c *crew) divided(replicas ...*planter) {
	c.t.Helper()
	operatortest.Eventually(c.t, fmt.Sprintf("%d replicas hold a part each", len(replicas)), func() error {
		var all []string
		for i, p := range replicas {
			primaries, owned := namespacesOf(p.primaries), namespacesOf(p.owned)
			if len(primaries) == 0 || !slices.Equal(primaries, owned) {
				return fmt.Errorf("replica %d holds primaries in %q and what is owned in %q", i, primaries, owned)
			}
			all = append(all, primaries...)
		}
		slices.Sort(all)
		if want := slices.Sorted(slices.Values(c.namespaces)); !slices.Equal(all, want) {
			return fmt.Errorf("they hold %q, want %q", all, want)
		}
		return nil
	})
}

func TestEachReplicaHoldsTheObjectsOfItsNamespacesAndWhatTheyOwn(t *testing.T) {
	c := newCrew(t, 10)
	a := c.plant("a", nil)
	c.planted()
	c.divided(a)
	b := c.plant("b", nil)
	c.divided(a, b)
	c.weed()
	c.planted()

	// Who takes over knows what there is before it begins: there is nothing to be written.
	before := len(b.faults.Writes())
	if err := a.stop(); err != nil {
		t.Error(err)
	}
	c.divided(b)
	c.weed()
	c.planted()
	for _, w := range b.faults.Writes()[before:] {
		if w.Resource == "configmaps" && w.Status != 201 {
			t.Errorf("unneeded: %s of %s/%s, answered with %d", w.Verb, w.Namespace, w.Name, w.Status)
		}
	}
}

func TestNothingIsBegunInASlotBeforeAllThatBelongsToItIsListed(t *testing.T) {
	c := newCrew(t, 10)
	a := c.plant("a", nil)
	c.planted()
	b := c.plant("b", nil)
	c.divided(a, b)
	gained := namespacesOf(a.primaries)
	before := len(b.looked.all()) // It has perhaps had some of them for a moment.
	looked := func(namespace string) bool { return slices.Contains(b.looked.all()[before:], namespace) }
	b.slow.Lock()
	if err := a.stop(); err != nil {
		t.Error(err)
	}
	operatortest.Eventually(t, "b holds everything", func() error {
		if holders, _ := c.slots(); slices.ContainsFunc(holders, func(name string) bool { return name != "b" }) {
			return errors.New("others hold slots")
		}
		return nil
	})
	for _, namespace := range gained {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"changed":"yes"}}`))
		if err := c.client.Patch(t.Context(), configMap(namespace, "object"), patch); err != nil {
			t.Fatal(err)
		}
		operatortest.Eventually(t, "b knows of the change", func() bool {
			obj, exists, err := b.primaries.Get(informer.Key{Namespace: namespace, Name: "object"})
			return err == nil && exists && obj.(*corev1.ConfigMap).Data["changed"] == "yes"
		})
		if looked(namespace) {
			t.Errorf("b has reconciled in namespace %s, and knows nothing of what is owned there", namespace)
		}
	}
	b.slow.Unlock()
	operatortest.Eventually(t, "b reconciles what it has got", func() bool {
		return !slices.ContainsFunc(gained, func(namespace string) bool { return !looked(namespace) })
	})
}

func TestAReplicaRefusesToLookForObjectsWhereItsStoreMayNotHoldThem(t *testing.T) {
	c := newCrew(t, 2)
	anywhere := func(config *objectresource.Config[*corev1.ConfigMap]) {
		config.Namespaces = func(*corev1.ConfigMap) []string { return c.namespaces }
	}
	c.plant("a", anywhere)
	c.planted()
	log := &journal{}
	c.logger = logTo(t, log)
	c.plant("b", anywhere)
	operatortest.Eventually(t, "b says how to mend it", func() bool { return log.contains("Dependencies.Own(…).InAllNamespaces()") })
}
