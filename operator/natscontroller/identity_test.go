package natscontroller_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/natscontroller"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/natsresource"
)

// withRoutesCalled is withRoutes for a controller of an operator, whose routes are called after their hosts and the suffix.
func (w *world) withRoutesCalled(operator, suffix string, former ...string) natscontroller.Config[*Gateway] {
	w.t.Helper()
	source, err := natsinformer.NewSource(natsinformer.SourceConfig[*Route]{
		Bucket: w.routes, Indexers: natsresource.OwnerIndexers(), Logger: w.logger, ProbeInterval: time.Second,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	routes, err := natsresource.New(natsresource.Config[*Gateway, *Route]{
		Name: "routes", Kind: kind, Bucket: w.routes, Source: source, Logger: w.logger,
		Desired: func(_ context.Context, gateway *Gateway) ([]*Route, error) {
			var want []*Route
			for _, host := range gateway.Hosts {
				want = append(want, &Route{Meta: natsinformer.Meta{Name: host + suffix}, Host: host})
			}
			return want, nil
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	config := w.config()
	config.Operator, config.FormerOperators = operator, former
	config.Secondaries = []natscontroller.Secondary{natscontroller.Entities(source)}
	config.Resources = []framework.Resource{routes}
	return config
}

// wrote is how many messages the bucket of the routes has ever had.
func (w *world) wrote() uint64 {
	w.t.Helper()
	stream, err := w.js.Stream(w.t.Context(), "KV_routes")
	if err != nil {
		w.t.Fatal(err)
	}
	return stream.CachedInfo().State.LastSeq
}

// hasRoutes is a condition: these are the routes.
func (w *world) hasRoutes(want ...string) func() error {
	return func() error {
		if diff := cmp.Diff(want, w.keys("routes")); diff != "" {
			return errors.New(diff)
		}
		return nil
	}
}

func TestR16TwoOperatorsWithControllersOfOneNameOnOneBucket(t *testing.T) {
	w := newWorld(t)
	w.createGateway("a", "one", "two")
	for _, operator := range []string{"first", "second"} {
		config := w.withRoutesCalled(operator, "-"+operator)
		config.Garbage.Interval = searchesOften
		run(t, w.controller(config).Start)
	}
	operatortest.Eventually(t, "both have their routes", w.hasRoutes("one-first", "one-second", "two-first", "two-second"))
	if got := w.wrote(); got != 4 {
		t.Errorf("%d writes, want 4", got)
	}

	// Both say the same of the same: each in an entry of its own.
	gateway, err := w.gateways.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	for _, operator := range []string{"first", "second"} {
		config := w.config()
		config.Operator = operator
		c := w.controller(config)
		r := run(t, c.Start)
		c.Event(gateway, corev1.EventTypeNormal, "Same", "same")
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
	}
	var said []string
	for _, event := range w.allEvents() {
		if event.Reason == "Same" {
			said = append(said, event.Controller)
		}
	}
	if slices.Sort(said); !slices.Equal(said, []string{"first/gateway-controller", "second/gateway-controller"}) {
		t.Errorf("the event was said by %v", said)
	}

	if err := w.gateways.RequestDeletion(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "both have cleaned up", w.hasRoutes())
	if got := w.wrote(); got != 8 {
		t.Errorf("%d writes, want 8", got)
	}
}

func TestR16SecondariesOfAFormerOperatorAreTakenOver(t *testing.T) {
	w := newWorld(t)
	w.createGateway("a", "one", "two")
	r := run(t, w.controller(w.withRoutesCalled("old", "")).Start)
	operatortest.Eventually(t, "the routes", w.hasRoutes("one", "two"))
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	before, err := w.routes.Get(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	run(t, w.controller(w.withRoutesCalled("new", "", "old")).Start)
	madeBy := func(key string) string {
		route, err := w.routes.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if key == "one" && (route.UID != before.UID || !route.CreationTimestamp.Equal(&before.CreationTimestamp)) {
			t.Fatalf("it was made anew: %+v", route.Meta)
		}
		return route.Annotations[natsresource.MadeByAnnotation]
	}
	operatortest.Eventually(t, "both are taken over", func() bool {
		return strings.HasSuffix(madeBy("one"), `operator "new"`) && strings.HasSuffix(madeBy("two"), `operator "new"`)
	})
	if got := w.wrote(); got != 4 {
		t.Errorf("%d writes, want one more for each route", got)
	}
}

func TestR16TheLeaseInKubernetesIsCalledAfterOperatorAndController(t *testing.T) {
	base := newWorld(t).withKubernetes()
	for operatorName, lease := range map[string]string{"": "gateway-controller", "shop": "shop-gateway-controller"} {
		fence := operator.NewFence()
		w := openWorld(t, base.js, fence.Check)
		config := w.config()
		config.Operator, config.RESTConfig = operatorName, base.restConfig
		config.LeaderElection = operator.LeaderElectionConfig{Enabled: true, Fence: fence, Namespace: base.namespace}
		run(t, w.controller(config).Start)
		operatortest.Eventually(t, "the lease "+lease, func() error {
			return base.kube.Get(t.Context(), client.ObjectKey{Namespace: base.namespace, Name: lease}, &coordinationv1.Lease{})
		})
	}
}
