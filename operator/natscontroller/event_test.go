package natscontroller_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/natscontroller"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

// allEvents are the events in the bucket.
func (w *world) allEvents() []*natscontroller.Event {
	w.t.Helper()
	var events []*natscontroller.Event
	for _, key := range w.keys("events") {
		event, err := w.events.Get(w.t.Context(), key)
		if err != nil {
			w.t.Fatal(err)
		}
		events = append(events, event)
	}
	return events
}

func TestEventsOnEntitiesAreEntriesAndRepeatedOnesAreCounted(t *testing.T) {
	w := newWorld(t)
	w.createGateway("eu/a")
	w.createRoute("r", kind, "eu/a")
	gateway, err := w.gateways.Get(t.Context(), "eu/a")
	if err != nil {
		t.Fatal(err)
	}
	route, err := w.routes.Get(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	say := func(c *natscontroller.ControllerRuntime[*Gateway]) {
		t.Helper()
		for range 3 {
			c.Event(gateway, corev1.EventTypeNormal, natscontroller.ReasonResourceSynced, fmt.Sprintf(natscontroller.MessageResourceSyncedCreated, "r"))
		}
		c.Event(gateway, corev1.EventTypeNormal, natscontroller.ReasonResourceSynced, fmt.Sprintf(natscontroller.MessageResourceSyncedUpdated, "r"))
		c.Event(route, corev1.EventTypeWarning, natscontroller.ReasonErrResourceExists, fmt.Sprintf(natscontroller.MessageErrResourceExists, "r"))
		c.Event("something else", corev1.EventTypeNormal, "Ignored", "it is neither")
	}
	first := w.controller(w.config())
	r := run(t, first.Start)
	say(first)
	// What is said just before the end is written too.
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	want := []*natscontroller.Event{
		{Object: natscontroller.EventObject{Kind: kind, Key: "eu/a", UID: gateway.UID}, Type: "Normal", Reason: "Synced", Message: `"r" synced successfully (created)`, Count: 3},
		{Object: natscontroller.EventObject{Kind: kind, Key: "eu/a", UID: gateway.UID}, Type: "Normal", Reason: "Synced", Message: `"r" synced successfully (updated)`, Count: 1},
		{Object: natscontroller.EventObject{Kind: "Route", Key: "r", UID: route.UID}, Type: "Warning", Reason: "ErrResourceExists", Message: `Resource "r" already exists and is not managed by this controller`, Count: 1},
	}
	compare := func() string {
		return cmp.Diff(want, w.allEvents(),
			cmpopts.SortSlices(func(a, b *natscontroller.Event) bool { return a.Message < b.Message }),
			cmpopts.IgnoreFields(natscontroller.Event{}, "Meta", "Controller", "FirstTimestamp", "LastTimestamp"))
	}
	if diff := compare(); diff != "" {
		t.Errorf("the events (-want +got):\n%s", diff)
	}
	for _, event := range w.allEvents() {
		if event.Controller != "gateway-controller/gateway-controller" || !strings.HasPrefix(event.Name, event.Object.Key+".") {
			t.Errorf("event %s of %s by %s", event.Name, event.Object.Key, event.Controller)
		}
		if event.FirstTimestamp.IsZero() || event.LastTimestamp.Before(&event.FirstTimestamp) {
			t.Errorf("event %s was said between %s and %s", event.Name, event.FirstTimestamp, event.LastTimestamp)
		}
	}

	// The next controller counts on.
	second := w.controller(w.config())
	r = run(t, second.Start)
	say(second)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		want[i].Count *= 2
	}
	if diff := compare(); diff != "" {
		t.Errorf("the events of both (-want +got):\n%s", diff)
	}
	if !w.log.contains("event dropped: it is about neither an entity nor a Kubernetes object") {
		t.Error("the log does not tell of the event that could not be written")
	}
}

func TestFailedReconciliationsOfEntriesAreEvents(t *testing.T) {
	w := newWorld(t)
	w.createGateway("a")
	c := newClassic(w, w.config())
	c.fail = func(string) error { return errBroken }
	run(t, c.Start)
	operatortest.Eventually(t, "the event", func() error {
		for _, event := range w.allEvents() {
			if event.Reason == framework.ReasonReconciliationFailed && event.Object.Key == "a" && strings.Contains(event.Message, "broken") {
				return nil
			}
		}
		return fmt.Errorf("events: %v", w.keys("events"))
	})
}

func TestEventsOnKubernetesObjectsAreKubernetesEvents(t *testing.T) {
	w := newWorld(t).withKubernetes()
	deps, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: "gateway-controller", RESTConfig: w.restConfig, Scheme: clientgoscheme.Scheme, Logger: w.logger,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer deps.Close()
	w.createConfigMap("a", nil)
	cm := &corev1.ConfigMap{}
	if err := w.kube.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "a"}, cm); err != nil {
		t.Fatal(err)
	}
	config := w.config()
	config.Recorder = deps.Recorder
	c := w.controller(config)
	run(t, c.Start)
	c.Event(cm, corev1.EventTypeNormal, natscontroller.ReasonResourceSynced, "it is there")
	operatortest.Eventually(t, "the event", func() bool {
		list := &corev1.EventList{}
		if err := w.kube.List(t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			t.Fatal(err)
		}
		for _, event := range list.Items {
			if event.InvolvedObject.UID == cm.UID && event.Message == "it is there" && event.Source.Component == "gateway-controller" {
				return true
			}
		}
		return false
	})
	if keys := w.keys("events"); len(keys) > 0 {
		t.Errorf("the bucket holds %q", keys)
	}
}

func TestEventsThatCantBeWrittenNeverBlockAndAreCounted(t *testing.T) {
	server := natsserver.Start(t)
	link := natsserver.NewLink(t, server.URL())
	_, js := natsserver.Connect(t, link.URL())
	for _, name := range []string{"gateways", "routes", "events"} {
		natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: name})
	}
	w := openWorld(t, js, nil)
	config := w.config()
	config.Registry = prometheus.NewRegistry()
	c := w.controller(config)
	r := run(t, c.Start)
	operatortest.Eventually(t, "it runs", func() bool { return w.log.contains("started") })

	link.Freeze()
	// If these waited for each other's writes, that would be for an hour and more.
	for i := range 1000 {
		c.Event(&Gateway{Meta: natsinformer.Meta{Name: "a"}}, corev1.EventTypeNormal, "Said", fmt.Sprint(i))
	}
	dropped := func() float64 { return counter(t, config.Registry, "operatorkit_natscontroller_events_dropped_total") }
	// The queue, and the one that is being written.
	if n := dropped(); n < 1000-257 {
		t.Errorf("%g events were dropped at once, want all that find no room", n)
	}
	link.Restore()
	written := func() float64 { return counter(t, config.Registry, "operatorkit_natscontroller_events_written_total") }
	operatortest.Eventually(t, "the rest", func() bool { return written()+dropped() == 1000 })
	if written() == 0 {
		t.Error("no event was written after the outage")
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}

// counter reads a counter without labels but the controller's.
func counter(t testing.TB, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name && family.GetType() == dto.MetricType_COUNTER {
			return family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return 0
}

func TestWhatStandsInTheWayOfASecondaryIsToldByAnEvent(t *testing.T) {
	w := newWorld(t)
	// One that somebody else has made, for another kind.
	w.createRoute("one", "Listener", "l")
	config := w.withRoutesCalled("operator", "")
	c := w.controller(config)
	run(t, c.Start)
	w.createGateway("a", "one", "two")
	want := fmt.Sprintf(natscontroller.MessageErrResourceExists, "one")
	operatortest.Eventually(t, "the event", func() error {
		var said []string
		for _, e := range w.allEvents() {
			if e.Type == corev1.EventTypeWarning && e.Reason == natscontroller.ReasonErrResourceExists && e.Object.Key == "a" && e.Message == want {
				return nil
			}
			said = append(said, e.Reason+": "+e.Message)
		}
		return fmt.Errorf("so far: %q", said)
	})
	// A plan writes none.
	before := len(w.keys("events"))
	if _, err := c.Plan(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	c.Event(&Gateway{Meta: natsinformer.Meta{Name: "last"}}, corev1.EventTypeNormal, "Last", "")
	operatortest.Eventually(t, "the event after the plan", func() bool { return len(w.keys("events")) > before })
	if got := len(w.keys("events")); got != before+1 {
		t.Errorf("a plan wrote %d events", got-before-1)
	}
}
