package natscontroller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/natscontroller"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

// planning shows garbage before it is collected, and only collects it when told so.
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

func (p *planning) plan(t *testing.T) []string {
	t.Helper()
	garbage, err := p.PlanGarbage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
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
		return func(cm *corev1.ConfigMap) { natscontroller.SetOwner(cm, kind, key) }
	}
	w.createConfigMap("orphan", marked(kind, "gone"))
	w.createConfigMap("orphan-of-a-path", marked(kind, "eu/gone"))
	w.createConfigMap("orphan-by-labels", func(cm *corev1.ConfigMap) {
		cm.Labels = map[string]string{natscontroller.OwnerKeyLabel: "gone", natscontroller.OwnerkindLabel: kind}
	})
	w.createConfigMap("of-alive", marked(kind, "alive"))
	w.createConfigMap("of-alive-by-annotation", func(cm *corev1.ConfigMap) {
		natscontroller.SetOwner(cm, kind, "alive")
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
	r := run(t, w.controller(config).Start)
	operatortest.Eventually(t, "the collection", func() error {
		if diff := cmp.Diff(keptRoutes, w.keys("routes")) + cmp.Diff(keptConfigMaps, w.configMapNames()); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if n, err := testutil.GatherAndCount(config.Registry, "operatorkit_natscontroller_garbage_collected_total"); err != nil || n != 2 {
		t.Errorf("the metric has %d series (%v), want one for each source", n, err)
	}
	if problems, err := testutil.GatherAndLint(config.Registry); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
	if n := w.log.count("garbage collected"); n != 5 {
		t.Errorf("%d objects were collected according to the log, want 5", n)
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
			route := &Route{Meta: natsinformer.Meta{Name: "held", OwnerKind: kind, OwnerKey: "gone", Finalizers: tt.finalizers}}
			if err := w.routes.Create(t.Context(), route); err != nil {
				t.Fatal(err)
			}
			config := w.config()
			config.Secondaries = []natscontroller.Secondary{natscontroller.Entities(newSource(w, w.routes), tt.options...)}
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

func TestGarbageIsSearchedAgainAtEachIntervalAtTheGivenRate(t *testing.T) {
	w := newWorld(t)
	config := w.config()
	config.Garbage = natscontroller.GarbageConfig{Interval: 50 * time.Millisecond, Rate: 10}
	run(t, w.controller(config).Start)
	operatortest.Eventually(t, "it runs", func() bool { return w.log.contains("started") })
	for i := range 6 {
		w.createRoute(fmt.Sprintf("late-%d", i), kind, "gone")
	}
	begin := time.Now()
	operatortest.Eventually(t, "the collection", func() bool { return len(w.keys("routes")) == 0 })
	// One is free at the beginning of each search, of which there may be two.
	if took := time.Since(begin); took < 300*time.Millisecond {
		t.Errorf("six objects were removed within %s, at ten in a second", took)
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
	source := newSource(w, w.routes)
	w.createRoute("entry", kind, "gone")
	w.createConfigMap("object", func(cm *corev1.ConfigMap) { natscontroller.SetOwner(cm, kind, "gone") })
	config := w.config()
	config.Secondaries[0] = natscontroller.Entities(source)
	// The second object has to wait for its turn, and the first one is what it waits for.
	config.Garbage.Rate = 0.5
	run(t, w.controller(config).Start)
	operatortest.Eventually(t, "the first removal", func() bool { return len(w.keys("routes")) == 0 })
	cm := &corev1.ConfigMap{}
	cm.Namespace, cm.Name = w.namespace, "object"
	natscontroller.SetOwner(cm, "Listener", "taken over")
	if err := w.kube.Update(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the removal that is due", func() bool {
		return w.log.contains("garbage has changed and stays") || w.log.count("garbage collected") == 2
	})
	if diff := cmp.Diff([]string{"object"}, w.configMapNames()); diff != "" {
		t.Errorf("the ConfigMaps (-want +got):\n%s", diff)
	}
}
