package natscontroller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/natscontroller"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
	"github.com/operatorkit/operatorkit/resource/natsresource"
)

// searchesOften is an interval for tests of what the search finds: one that fails, because a source is out of contact for a
// moment, is followed by another one.
const searchesOften = 50 * time.Millisecond

// planning shows garbage and does not collect it.
type planning struct {
	*natscontroller.ControllerRuntime[*Gateway]
	ready chan struct{}
}

func newPlanning(w *world, config natscontroller.Config[*Gateway]) *planning {
	w.t.Helper()
	p := &planning{ControllerRuntime: w.controller(config), ready: make(chan struct{})}
	p.SetCustomController(p)
	return p
}

func (p *planning) GarbageSecondaries() { close(p.ready) }

// plan waits for a plan: there is none while a source is out of contact, be it because the machine is busy.
func (p *planning) plan(t *testing.T) []string {
	t.Helper()
	var garbage []natscontroller.Garbage
	operatortest.Eventually(t, "there is a plan", func() (err error) {
		garbage, err = p.PlanGarbage(t.Context())
		return err
	})
	lines := make([]string, 0, len(garbage))
	for _, g := range garbage {
		lines = append(lines, g.String())
	}
	slices.Sort(lines)
	return lines
}

func TestOrphansMadeWhileTheControllerWasDownAreCollectedAndNothingElse(t *testing.T) {
	w := newWorld(t).withKubernetes()
	// This is what is left: gateways were deleted and purged while nobody was looking.
	w.createGateway("alive")
	w.createGateway("asked")
	if err := w.gateways.RequestDeletion(t.Context(), "asked"); err != nil {
		t.Fatal(err)
	}
	w.createRoute("orphan", kind, "gone")
	w.createRoute("orphan/of.a=path", kind, "eu/gone")
	w.createRoute("of-alive", kind, "alive")
	w.createRoute("of-another-kind", "Listener", "gone")
	w.createRoute("of-a-kind-that-begins-alike", "GatewayClass", "gone")
	w.createRoute("of-nobody", "", "")
	w.createRoute("without-a-kind", "", "gone")
	w.createRoute("without-a-key", kind, "")

	marked := func(kind, key string) func(*corev1.ConfigMap) {
		return func(cm *corev1.ConfigMap) { natscontroller.SetOwner(cm, self, kind, key) }
	}
	w.createConfigMap("orphan", marked(kind, "gone"))
	w.createConfigMap("orphan-of-a-path", marked(kind, "eu/gone"))
	w.createConfigMap("orphan-by-labels", func(cm *corev1.ConfigMap) {
		cm.Labels = map[string]string{natscontroller.OwnerKeyLabel: "gone", natscontroller.OwnerkindLabel: kind}
		cm.Annotations = map[string]string{natsresource.MadeByAnnotation: natsresource.MadeBy(self)}
	})
	w.createConfigMap("of-alive", marked(kind, "alive"))
	w.createConfigMap("of-alive-by-annotation", func(cm *corev1.ConfigMap) {
		natscontroller.SetOwner(cm, self, kind, "alive")
		cm.Labels[natscontroller.OwnerKeyLabel] = "gone"
	})
	w.createConfigMap("of-another-kind", marked("Listener", "gone"))
	w.createConfigMap("of-nobody", nil)
	w.createConfigMap("with-a-hash-only", func(cm *corev1.ConfigMap) {
		cm.Labels = natscontroller.OwnerLabels(kind, "eu/gone")
	})
	w.createConfigMap("with-names-alike", func(cm *corev1.ConfigMap) {
		cm.Labels = map[string]string{"kumori/ownerkeys": "gone", "ownerkind": kind, "kumori/owner": "gone"}
		cm.Annotations = map[string]string{"example.com/kumori-ownerkey": "gone", natscontroller.OwnerkindAnnotation: kind}
	})
	keptRoutes := []string{"of-a-kind-that-begins-alike", "of-alive", "of-another-kind", "of-nobody", "without-a-key", "without-a-kind"}
	keptConfigMaps := []string{"of-alive", "of-alive-by-annotation", "of-another-kind", "of-nobody", "with-a-hash-only", "with-names-alike"}
	before := len(w.keys("routes")) + len(w.configMapNames())

	// The plan first, which removes nothing.
	p := newPlanning(w, w.config())
	planned := run(t, p.Start)
	<-p.ready
	configMap := func(name string) string {
		return fmt.Sprintf("remove %s/%s from configmaps: its owner, Gateway ", w.namespace, name)
	}
	want := []string{
		configMap("orphan") + "gone, does not exist",
		configMap("orphan-by-labels") + "gone, does not exist",
		configMap("orphan-of-a-path") + "eu/gone, does not exist",
		"remove orphan from bucket routes: its owner, Gateway gone, does not exist",
		"remove orphan/of.a=path from bucket routes: its owner, Gateway eu/gone, does not exist",
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, p.plan(t)); diff != "" {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}
	if err := planned.stop(); err != nil {
		t.Fatal(err)
	}
	if now := len(w.keys("routes")) + len(w.configMapNames()); now != before {
		t.Errorf("planning left %d objects of %d", now, before)
	}

	config := w.config()
	config.Registry = prometheus.NewRegistry()
	config.Garbage.Interval = searchesOften
	r := run(t, w.controller(config).Start)
	kept := func() error {
		if diff := cmp.Diff(keptRoutes, w.keys("routes")) + cmp.Diff(keptConfigMaps, w.configMapNames()); diff != "" {
			return errors.New(diff)
		}
		return nil
	}
	operatortest.Eventually(t, "the collection", kept)
	// An object is gone before the log says so, and the metric is counted in between.
	operatortest.Eventually(t, "the log of the last removal", func() bool { return w.log.count("garbage collected") >= len(want) })
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if n, err := testutil.GatherAndCount(config.Registry, "operatorkit_natscontroller_garbage_collected_total"); err != nil || n != 2 {
		t.Errorf("the metric has %d series (%v), want one for each source", n, err)
	}
	if problems, err := testutil.GatherAndLint(config.Registry); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
	if n := w.log.count("garbage collected"); n != len(want) {
		t.Errorf("%d objects were collected according to the log, want %d", n, len(want))
	}
	if err := kept(); err != nil {
		t.Errorf("in the end: %v", err)
	}
}

func TestR16OnlyWhatTheControllerMadeIsItsGarbage(t *testing.T) {
	w := newWorld(t).withKubernetes()
	config := w.config()
	config.Operator, config.FormerOperators, config.FormerNames = "operator", []string{"gateway-controller"}, []string{"gateways"}
	now := identity.Identity{Operator: "operator", Framework: "gateway-controller"}
	for name, by := range map[string]identity.Identity{
		"own":                        now,
		"of-a-former-operator":       self,
		"of-a-former-name":           {Operator: "operator", Framework: "gateways"},
		"of-former-names":            {Operator: "gateway-controller", Framework: "gateways"},
		"of-another-operator":        {Operator: "another", Framework: "gateway-controller"},
		"of-another-controller":      {Operator: "operator", Framework: "another"},
		"of-another-with-names-like": {Operator: `x" of framework "gateway-controller" of operator "operator`, Framework: "x"},
		"of-nobody":                  {},
	} {
		// Their gateways are nowhere in the bucket of this controller's.
		w.createRouteBy(by, name, kind, "gone-"+name)
		if by.Operator != "" {
			w.createConfigMap(name, func(cm *corev1.ConfigMap) { natscontroller.SetOwner(cm, by, kind, "gone-"+name) })
		}
	}
	p := newPlanning(w, config)
	if diff := cmp.Diff(now, identity.Identity{Operator: p.Identity().Operator, Framework: p.Identity().Framework}); diff != "" {
		t.Error(diff)
	}
	run(t, p.Start)
	<-p.ready
	var want []string
	for _, name := range []string{"own", "of-a-former-operator", "of-a-former-name", "of-former-names"} {
		why := ": its owner, Gateway gone-" + name + ", does not exist"
		want = append(want, "remove "+name+" from bucket routes"+why, "remove "+w.namespace+"/"+name+" from configmaps"+why)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, p.plan(t)); diff != "" {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}
}

func TestEntriesThatOthersHaveToCleanUpAfterAreAskedToGo(t *testing.T) {
	tests := []struct {
		name       string
		finalizers []string
		options    []natscontroller.EntitiesOption
	}{
		{"with finalizers", []string{"example.com/dns"}, nil},
		{"of another controller", nil, []natscontroller.EntitiesOption{natscontroller.RequestDeletion}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			route := &Route{Meta: natsinformer.Meta{Name: "held", Finalizers: tt.finalizers}}
			natscontroller.SetEntityOwner(route, self, kind, "gone")
			if err := w.routes.Create(t.Context(), route); err != nil {
				t.Fatal(err)
			}
			config := w.config()
			config.Secondaries = []natscontroller.Secondary{natscontroller.Entities(newSource(w, w.routes), tt.options...)}
			config.Garbage.Interval = searchesOften
			run(t, w.controller(config).Start)
			operatortest.Eventually(t, "the request", func() bool {
				held, err := w.routes.Get(t.Context(), "held")
				if err != nil {
					t.Fatal(err)
				}
				return held.DeletionTimestamp != nil
			})
		})
	}
}

func TestGarbageIsSearchedAgainAtEachIntervalAtTheGivenRateInAllSearchesTogether(t *testing.T) {
	w := newWorld(t)
	config := w.config()
	config.Garbage = natscontroller.GarbageConfig{Interval: searchesOften, Rate: 4}
	run(t, w.controller(config).Start)
	begin := time.Now()
	for i := range 4 {
		// Each is found by a search of its own.
		w.createRoute(fmt.Sprintf("late-%d", i), kind, "gone")
		operatortest.Eventually(t, "the collection", func() bool { return len(w.keys("routes")) == 0 })
	}
	// The first one is free. A busy machine can only be slower than that.
	if took := time.Since(begin); took < 750*time.Millisecond {
		t.Errorf("four objects were removed within %s, at four in a second", took)
	}
}

func TestNegativeIntervalNeverCollects(t *testing.T) {
	w := newWorld(t)
	w.createRoute("orphan", kind, "gone")
	config := w.config()
	config.Garbage.Interval = -1
	c := &cleaning{ControllerRuntime: w.controller(config)}
	c.SetCustomController(c)
	r := run(t, c.Start)
	operatortest.Eventually(t, "it runs", func() bool { return w.log.contains("started") })
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if c.calls.contains("garbage") {
		t.Error("GarbageSecondaries was called")
	}
}

func TestNothingIsGarbageWhileTheBucketOfThePrimariesIsNotThere(t *testing.T) {
	w := newWorld(t)
	w.createGateway("a")
	w.createRoute("of-a", kind, "a")
	p := newPlanning(w, w.config())
	run(t, p.Start)
	<-p.ready
	if diff := cmp.Diff([]string{}, p.plan(t)); diff != "" {
		t.Fatalf("the plan (-want +got):\n%s", diff)
	}
	w.createRoute("orphan", kind, "gone")
	operatortest.Eventually(t, "the orphan", func() bool { return len(p.plan(t)) == 1 })

	if err := w.js.DeleteKeyValue(t.Context(), "gateways"); err != nil {
		t.Fatal(err)
	}
	// At once, and also when the source has noticed it.
	for range 3 {
		if garbage, err := p.PlanGarbage(t.Context()); err == nil {
			t.Fatalf("the plan without a bucket is %v, want an error", garbage)
		}
	}
	operatortest.Eventually(t, "the source's error", func() bool {
		_, err := p.PlanGarbage(t.Context())
		return err != nil && strings.Contains(err.Error(), "out of contact")
	})
}

func TestNothingIsGarbageBeforeTheSourcesAreSynced(t *testing.T) {
	w := newWorld(t)
	w.createRoute("orphan", kind, "gone")
	p := newPlanning(w, w.config())
	_, err := p.PlanGarbage(t.Context())
	if err == nil || !strings.Contains(err.Error(), "is not synced") {
		t.Errorf("want an error about sources that are not synced, got %v", err)
	}
}

func TestNothingIsGarbageWhileTheConnectionIsCut(t *testing.T) {
	server := natsserver.Start(t)
	link := natsserver.NewLink(t, server.URL())
	_, direct := server.Connect(t)
	for _, name := range []string{"gateways", "routes"} {
		natsserver.NewBucket(t, direct, jetstream.KeyValueConfig{Bucket: name})
	}
	_, js := natsserver.Connect(t, link.URL())
	w := openWorld(t, js, nil)
	w.createRoute("orphan", kind, "gone")
	p := newPlanning(w, w.config())
	run(t, p.Start)
	<-p.ready
	if n := len(p.plan(t)); n != 1 {
		t.Fatalf("%d objects are planned to be removed, want one", n)
	}
	link.Cut()
	if garbage, err := p.PlanGarbage(t.Context()); err == nil {
		t.Errorf("the plan without a connection is %v, want an error", garbage)
	}
	link.Restore()
	operatortest.Eventually(t, "the plan again", func() bool {
		garbage, err := p.PlanGarbage(t.Context())
		return err == nil && len(garbage) == 1
	})
}

// stuck is a resource whose deletion fails until it is released.
type stuck struct{ release chan struct{} }

func (s *stuck) Name() string                             { return "stuck" }
func (s *stuck) EnsureCreated(context.Context, any) error { return nil }
func (s *stuck) EnsureDeleted(context.Context, any) error {
	select {
	case <-s.release:
		return nil
	default:
		return errBroken
	}
}

func TestSecondariesOfAPrimaryWhoseDeletionIsBeingProcessedAreNoGarbage(t *testing.T) {
	w := newWorld(t)
	w.createGateway("a")
	w.createRoute("of-a", kind, "a")
	resource := &stuck{release: make(chan struct{})}
	config := w.config()
	config.Resources = []framework.Resource{resource}
	p := newPlanning(w, config)
	run(t, p.Start)
	<-p.ready
	w.deleteGateway("a")
	operatortest.Eventually(t, "the deletion fails", func() bool { return w.log.contains("ensure_deleted") })
	if diff := cmp.Diff([]string{}, p.plan(t)); diff != "" {
		t.Errorf("the plan during the deletion (-want +got):\n%s", diff)
	}
	// What the resources have left over is garbage.
	close(resource.release)
	operatortest.Eventually(t, "the rest", func() bool { return len(p.plan(t)) == 1 })
}

func TestSecondaryThatChangesBeforeItsRemovalStays(t *testing.T) {
	w := newWorld(t).withKubernetes()
	w.createRoute("entry", kind, "gone")
	w.createConfigMap("object", func(cm *corev1.ConfigMap) { natscontroller.SetOwner(cm, self, kind, "gone") })
	config := w.config()
	config.Garbage.Interval = searchesOften
	// Somebody takes both over when they have been found to be garbage, and their removal is under way.
	var entryTaken, objectTaken sync.Once
	doomed := newBucket[*Route](t, w.js, "routes", func() error {
		entryTaken.Do(func() { w.takeEntryOver("entry") })
		return nil
	})
	kube := interceptor.NewClient(w.kube, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, options ...client.DeleteOption) error {
			objectTaken.Do(func() { w.takeObjectOver("object") })
			return c.Delete(ctx, obj, options...)
		},
	})
	config.Secondaries = []natscontroller.Secondary{
		natscontroller.Entities(newSource(w, doomed)), natscontroller.Kube(w.configMaps(), kube),
	}
	r := run(t, w.controller(config).Start)
	for _, source := range []string{"bucket routes", "configmaps"} {
		operatortest.Eventually(t, "the removal from "+source+" is given up", func() bool {
			return w.log.countAll("garbage has changed and stays", source) > 0
		})
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"entry"}, w.keys("routes")); diff != "" {
		t.Errorf("the routes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"object"}, w.configMapNames()); diff != "" {
		t.Errorf("the ConfigMaps (-want +got):\n%s", diff)
	}
	if n := w.log.count("garbage collected"); n > 0 {
		t.Errorf("%d objects were collected, want none", n)
	}
}

// takeEntryOver and takeObjectOver make a secondary one of another kind of primary.
func (w *world) takeEntryOver(name string) {
	route, err := w.routes.Get(w.t.Context(), name)
	if err == nil {
		route.OwnerKind = "Listener"
		err = w.routes.Update(w.t.Context(), route)
	}
	if err != nil {
		w.t.Error(err)
	}
}

func (w *world) takeObjectOver(name string) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	natscontroller.SetOwner(cm, self, "Listener", "taken over")
	if err := w.kube.Update(w.t.Context(), cm); err != nil {
		w.t.Error(err)
	}
}
