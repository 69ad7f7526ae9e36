package operator_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// gardener is an operator. Several of them run in one namespace, and differ only in their names:
// the framework of each is called "beds", and its resource "plants". For each config map with the
// label "bed" a gardener makes those that the keys of the data name, if their value is its name or
// "both".
type gardener struct {
	faults *operatortest.Faults
	owned  *informer.Kubernetes
	looks  atomic.Int64
	stop   func() error
}

func newGardener(t *testing.T, instance *operatortest.Instance, namespace, name string, former ...string) *gardener {
	t.Helper()
	g := &gardener{faults: operatortest.NewFaults()}
	d, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: name, FormerNames: former, RESTConfig: g.faults.Wrap(instance.RESTConfig()), Scheme: clientgoscheme.Scheme,
		Logger: logTo(t, io.Discard), Namespaces: []string{namespace},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	beds, err := d.NewSource(&corev1.ConfigMap{}, operator.WithLabels(labels.SelectorFromSet(labels.Set{"bed": "yes"})))
	if err != nil {
		t.Fatal(err)
	}
	if g.owned, err = d.NewOwnedSource(&corev1.ConfigMap{}); err != nil {
		t.Fatal(err)
	}
	own, err := d.Own(&corev1.ConfigMap{}, &corev1.ConfigMap{})
	if err != nil || own.Stores[0] != objectresource.Store(g.owned) || own.Watches[0].Source != informer.Source(g.owned) {
		t.Fatalf("asked again it gave another source: %v", err)
	}
	plants, err := objectresource.New(objectresource.Config[*corev1.ConfigMap]{
		Name: "plants", Client: d.Client, Logger: d.Logger, Stores: []objectresource.Store{g.owned},
		Desired: func(_ context.Context, bed *corev1.ConfigMap) (plants []client.Object, err error) {
			g.looks.Add(1)
			for plant, whose := range bed.Data {
				if whose == name || whose == "both" || slices.Contains(former, whose) {
					plants = append(plants, configMap(namespace, plant))
				}
			}
			return plants, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.NewFramework(framework.Config{
		Name: "beds", Source: beds, ResourceRouter: routerOf(t, plants), Watches: own.Watches,
	})
	if err != nil {
		t.Fatal(err)
	}
	g.stop = run(t, newOperator(t, operator.Config{Name: name, FormerNames: former, Frameworks: []*framework.Framework{f}, Registry: d.Registry})).stop
	return g
}

// wrote are the names of what the operator wrote, each once.
func (g *gardener) wrote() (names []string) {
	for _, w := range g.faults.Writes() {
		if w.Resource == "configmaps" {
			names = append(names, w.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// bed is a primary.
func bed(namespace, name string, data map[string]string) *corev1.ConfigMap {
	cm := configMap(namespace, name)
	cm.Labels, cm.Data = map[string]string{"bed": "yes"}, data
	return cm
}

func TestR16TwoOperatorsWithTheSameNamesOnOnePrimaryLeaveEachOthersObjectsAlone(t *testing.T) {
	instance := operatortest.Start(t)
	namespace := instance.Namespace(t)
	user := operatortest.NewClient(t, instance.RESTConfig(), nil)
	exists := func(name string) func() bool {
		return func() bool {
			return user.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &corev1.ConfigMap{}) == nil
		}
	}
	first, second := newGardener(t, instance, namespace, "first"), newGardener(t, instance, namespace, "second")
	if err := user.Create(t.Context(), bed(namespace, "home", map[string]string{"rose": "first", "tulip": "second"})); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "each has its own", func() bool { return exists("rose")() && exists("tulip")() })

	// What happens to the one's object wakes the one and not the other.
	operatortest.Eventually(t, "both are done with the bed", func() bool {
		return first.looks.Load() > 0 && second.looks.Load() > 0 && slices.Equal(first.wrote(), []string{"home", "rose"}) &&
			slices.Equal(second.wrote(), []string{"home", "tulip"})
	})
	looks := second.looks.Load()
	for n := range 3 {
		before := first.looks.Load()
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"n":"%d"}}`, n))
		if err := user.Patch(t.Context(), configMap(namespace, "rose"), patch); err != nil {
			t.Fatal(err)
		}
		operatortest.Eventually(t, "the first looks at it", func() bool { return first.looks.Load() > before })
	}
	if n := second.looks.Load() - looks; n > 1 { // the first's finalizer may have been one more event of the primary
		t.Errorf("the second looked at the primary %d times", n)
	}
	for name, g := range map[string]*gardener{"rose": first, "tulip": second} {
		if keys := g.owned.Keys(); len(keys) != 1 || keys[0].Name != name {
			t.Errorf("the source of what is owned holds %v, want %s alone", keys, name)
		}
	}

	// An object that both want belongs to one of them, and the other reports the owner.
	if err := user.Create(t.Context(), bed(namespace, "common", map[string]string{"oak": "both"})); err != nil {
		t.Fatal(err)
	}
	var refused string
	operatortest.Eventually(t, "the other says whose it is", func() bool {
		var events corev1.EventList
		if err := user.List(t.Context(), &events, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		for _, e := range events.Items {
			if e.InvolvedObject.Name == "common" && e.Reason == framework.ReasonReconciliationFailed {
				refused = e.Source.Component + ": " + e.Message
			}
		}
		return refused != ""
	})
	loser, winner := "second", "first"
	if strings.HasPrefix(refused, "first/") {
		loser, winner = winner, loser
	}
	want := fmt.Sprintf(`it is of resource "plants" of framework "beds" of operator %q, for ConfigMap/%s/common`, winner, namespace)
	if !strings.HasPrefix(refused, loser+"/beds: ") || !strings.Contains(refused, want) {
		t.Errorf("%s was told, want %q", refused, want)
	}
	var oak corev1.ConfigMap
	if err := user.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "oak"}, &oak); err != nil {
		t.Fatal(err)
	}
	if len(oak.ManagedFields) != 1 || !strings.Contains(oak.ManagedFields[0].Manager, "_"+winner+"_") {
		t.Errorf("it was written by %v", oak.ManagedFields)
	}

	// A deletion removes the objects of both.
	if err := user.Delete(t.Context(), bed(namespace, "home", nil)); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "all of the bed is gone", func() bool { return !exists("home")() && !exists("rose")() && !exists("tulip")() })
	got := map[string]bool{"first wrote tulip": slices.Contains(first.wrote(), "tulip"), "second wrote rose": slices.Contains(second.wrote(), "rose")}
	if diff := cmp.Diff(map[string]bool{"first wrote tulip": false, "second wrote rose": false}, got); diff != "" {
		t.Error(diff)
	}
}

func TestR16OperatorUnderAnotherNameTakesOverWhatItMade(t *testing.T) {
	instance := operatortest.Start(t)
	namespace := instance.Namespace(t)
	user := operatortest.NewClient(t, instance.RESTConfig(), nil)
	old := newGardener(t, instance, namespace, "old")
	if err := user.Create(t.Context(), bed(namespace, "home", map[string]string{"rose": "old", "weed": "old"})); err != nil {
		t.Fatal(err)
	}
	get := func(name string) *corev1.ConfigMap {
		cm := &corev1.ConfigMap{}
		if err := user.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, cm); err != nil {
			return nil
		}
		return cm
	}
	operatortest.Eventually(t, "it has made them", func() bool { return get("rose") != nil && get("weed") != nil })
	if err := old.stop(); err != nil {
		t.Fatal(err)
	}
	rose := get("rose")
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"weed":null}}`))
	if err := user.Patch(t.Context(), configMap(namespace, "home"), patch); err != nil {
		t.Fatal(err)
	}

	newGardener(t, instance, namespace, "new", "old")
	operatortest.Eventually(t, "it has taken over", func() bool {
		now := get("rose")
		return now != nil && now.Annotations[objectresource.OperatorAnnotation] == "new" && get("weed") == nil
	})
	if now := get("rose"); now.UID != rose.UID {
		t.Error("it was made anew")
	}
}

func TestAnOperatorThatForgetsToWatchWhatItOwnsIsRefused(t *testing.T) {
	d := newDependencies(t, operator.DependenciesConfig{RESTConfig: &rest.Config{Host: "http://127.0.0.1:1"}})
	beds, err := d.NewSource(&corev1.ConfigMap{})
	if err != nil {
		t.Fatal(err)
	}
	owned, err := d.Own(&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Service{})
	if err != nil {
		t.Fatal(err)
	}
	if len(owned.Stores) != 2 || len(owned.Watches) != 2 {
		t.Fatalf("there are %d stores and %d watches of 2 kinds", len(owned.Stores), len(owned.Watches))
	}
	for name, tc := range map[string]struct {
		watches []framework.Watch
		sources []informer.Source
		want    []string
	}{
		"all":                   {watches: owned.Watches},
		"none":                  {want: []string{"owned Secret", "owned Service"}},
		"one":                   {watches: owned.Watches[:1], want: []string{"owned Service"}},
		"one and one that runs": {watches: owned.Watches[:1], sources: []informer.Source{owned.Watches[1].Source}},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := d.NewFramework(framework.Config{Name: name, Source: beds, Watches: tc.watches, Resources: []framework.Resource{&resource{}}})
			if err != nil {
				t.Fatal(err)
			}
			err = d.CheckWatched(operator.Config{Frameworks: []*framework.Framework{f}, Sources: tc.sources})
			if framework.IsInvalidConfig(err) != (len(tc.want) > 0) {
				t.Fatalf("got %v", err)
			}
			for _, source := range tc.want {
				if !strings.Contains(err.Error(), fmt.Sprintf("no framework watches the source %q", source)) {
					t.Errorf("%q is not in %v", source, err)
				}
			}
		})
	}
}
