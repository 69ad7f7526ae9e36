package natscontroller_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/informer/pollinformer"
	"github.com/operatorkit/operatorkit/operator/natscontroller"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

var errBroken = errors.New("broken")

func TestControllerOfTheOriginalRunsAsItIs(t *testing.T) {
	w := newWorld(t)
	w.createGateway("eu/first")
	c := newClassic(w, w.config())
	stopCh, errCh, ended := make(chan struct{}), make(chan error), make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(2, stopCh, errCh)
	}()
	operatortest.Eventually(t, "the route", func() bool { return slices.Equal(w.keys("routes"), []string{"eu/first"}) })

	// A secondary that somebody removes is made again, and one of a primary that goes away goes too.
	deleteEntity(t, w.routes, "eu/first")
	operatortest.Eventually(t, "the route again", func() bool { return slices.Equal(w.keys("routes"), []string{"eu/first"}) })
	w.deleteGateway("eu/first")
	operatortest.Eventually(t, "no route", func() bool { return len(w.keys("routes")) == 0 })

	close(stopCh)
	<-ended
	if n := c.calls.count("clean"); n != 1 {
		t.Errorf("Clean was called %d times, want once", n)
	}
	select {
	case err := <-errCh:
		t.Errorf("errCh: %v", err)
	default:
	}
}

func TestDeletionThatWasAskedForIsProcessedAndThenTheEntryIsRemoved(t *testing.T) {
	w := newWorld(t)
	w.createGateway("a")
	c := newClassic(w, w.config())
	run(t, c.Start)
	operatortest.Eventually(t, "the route", func() bool { return len(w.keys("routes")) == 1 })
	if err := w.gateways.RequestDeletion(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "nothing is left", func() bool { return len(w.keys("routes"))+len(w.keys("gateways")) == 0 })
}

func TestFailedSyncIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.createGateway("a")
	c := newClassic(w, w.config())
	c.fail = func(string) error {
		switch c.calls.count("sync a") {
		case 1:
			return errBroken
		case 2:
			panic(errBroken)
		}
		return nil
	}
	run(t, c.Start)
	operatortest.Eventually(t, "the route", func() bool { return len(w.keys("routes")) == 1 })
	if n := c.calls.count("sync a"); n < 3 {
		t.Errorf("SyncHandler was called %d times, want 3", n)
	}
}

// recording is a plain resource that makes a ConfigMap.
type recording struct {
	world *world
	calls *journal
}

func (r *recording) Name() string { return "configmap" }

func (r *recording) EnsureCreated(ctx context.Context, obj any) error {
	gateway := obj.(*Gateway)
	r.calls.add("resource " + gateway.Name)
	cm := &corev1.ConfigMap{}
	cm.Namespace, cm.Name = r.world.namespace, "gateway-"+gateway.Name
	natscontroller.SetOwner(cm, identity.From(ctx).Identity, kind, gateway.Name)
	return client.IgnoreAlreadyExists(r.world.kube.Create(ctx, cm))
}

func (r *recording) EnsureDeleted(ctx context.Context, obj any) error {
	gateway := obj.(*Gateway)
	r.calls.add("resource deletes " + gateway.Name)
	cm := &corev1.ConfigMap{}
	cm.Namespace, cm.Name = r.world.namespace, "gateway-"+gateway.Name
	return client.IgnoreNotFound(r.world.kube.Delete(ctx, cm))
}

func TestResourcesAndSyncHandlerRunSideBySideInThisOrder(t *testing.T) {
	w := newWorld(t).withKubernetes()
	w.createGateway("a")
	config := w.config()
	resource := &recording{world: w}
	config.Resources = []framework.Resource{resource}
	c := newClassic(w, config)
	resource.calls = &c.calls
	run(t, c.Start)
	operatortest.Eventually(t, "both", func() bool { return c.calls.contains("sync a") })
	if calls := c.calls.all(); slices.Index(calls, "sync a") != slices.Index(calls, "resource a")+1 {
		t.Errorf("the calls are %q, want the resource before SyncHandler", calls)
	}
	operatortest.Eventually(t, "the secondaries", func() bool { return len(w.keys("routes")) == 1 && len(w.configMapNames()) == 1 })

	// The ConfigMap that somebody deletes is made again: its owner is enqueued.
	cm := &corev1.ConfigMap{}
	cm.Namespace, cm.Name = w.namespace, "gateway-a"
	if err := w.kube.Delete(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the ConfigMap again", func() bool { return len(w.configMapNames()) == 1 })

	// For a key without an entry only SyncHandler is called: there is nothing to give to the resource.
	c.EnqueueKey("gone", natscontroller.OperationSecondary)
	operatortest.Eventually(t, "the key without an entry", func() bool { return c.calls.contains("sync gone") })
	if c.calls.contains("resource gone") || c.calls.contains("resource deletes gone") {
		t.Error("the resource was called for a key without an entry")
	}

	w.deleteGateway("a")
	operatortest.Eventually(t, "nothing is left", func() bool { return len(w.keys("routes"))+len(w.configMapNames()) == 0 })
	if !c.calls.contains("resource deletes a") {
		t.Error("the resource was not called for the deletion")
	}
}

func TestSyncHandlerComesAfterTheResourcesOfEachSet(t *testing.T) {
	w := newWorld(t)
	var calls journal
	set := func(version string) *framework.ResourceSet {
		set, err := framework.NewResourceSet(framework.ResourceSetConfig{
			Name:      version,
			Handles:   framework.HandlesLabel("version", version),
			Resources: []framework.Resource{&noting{name: version, calls: &calls}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	config := w.config()
	config.ResourceSets = []*framework.ResourceSet{set("v1"), set("v2")}
	c := newClassic(w, config)
	c.fail = func(key string) error {
		calls.add("sync " + key)
		return nil
	}
	run(t, c.Start)
	for _, version := range []string{"v1", "v2", "v3"} {
		gateway := &Gateway{Meta: natsinformer.Meta{Name: "of-" + version, Labels: map[string]string{"version": version}}}
		if err := w.gateways.Create(t.Context(), gateway); err != nil {
			t.Fatal(err)
		}
	}
	c.EnqueueKey("gone", natscontroller.OperationPut)
	operatortest.Eventually(t, "all calls", func() bool {
		return calls.contains("sync of-v1") && calls.contains("sync of-v2") && calls.contains("sync gone")
	})
	got := calls.all()
	for version, other := range map[string]string{"v1": "v2", "v2": "v1"} {
		resource, sync := slices.Index(got, version+" of-"+version), slices.Index(got, "sync of-"+version)
		if resource < 0 || sync < resource || slices.Contains(got, other+" of-"+version) {
			t.Errorf("of-%s: %q", version, got)
		}
	}
	if p, err := c.Plan(t.Context(), "of-v2"); err != nil || p.ResourceSet != "v2" {
		t.Errorf("the plan of of-v2: %+v, %v", p, err)
	}
	// What no set handles is left alone; a key without an entry needs none.
	if slices.Contains(got, "sync of-v3") {
		t.Errorf("the calls are %q", got)
	}
}

func TestResourceSetsKeepWhatTheySayOfTheRestAndOfDeletions(t *testing.T) {
	w := newWorld(t)
	var calls journal
	sets := []framework.ResourceSetConfig{
		{Name: "v2", Handles: framework.HandlesLabel("version", "v2"), DeleteBackwards: true},
		{Name: "rest", HandlesRest: true},
	}
	config := w.config()
	for _, c := range sets {
		c.Resources = []framework.Resource{
			&noting{name: c.Name + " first", calls: &calls}, &noting{name: c.Name + " last", calls: &calls},
			&concluding{noting{name: c.Name + " concludes", calls: &calls}},
		}
		set, err := framework.NewResourceSet(c)
		if err != nil {
			t.Fatal(err)
		}
		config.ResourceSets = append(config.ResourceSets, set)
	}
	c := w.controller(config)
	c.SetCustomController(&telling{c, &calls})
	run(t, c.Start)
	for name, tc := range map[string]struct{ version, made, deleted string }{
		"new": {
			"v2", "v2 first new, v2 last new, sync new, v2 concludes new",
			"sync new, deleted v2 last new, deleted v2 first new, deleted v2 concludes new",
		},
		"old": {
			"v1", "rest first old, rest last old, sync old, rest concludes old",
			"deleted rest first old, deleted rest last old, sync old, deleted rest concludes old",
		},
	} {
		gateway := &Gateway{Meta: natsinformer.Meta{Name: name, Labels: map[string]string{"version": tc.version}}}
		if err := w.gateways.Create(t.Context(), gateway); err != nil {
			t.Fatal(err)
		}
		operatortest.Eventually(t, name+" is reconciled", func() bool { return calls.contains("concludes " + name) })
		if got := strings.Join(calls.take(), ", "); got != tc.made {
			t.Errorf("%s was reconciled by: %s\nwant: %s", name, got, tc.made)
		}
		w.deleteGateway(name)
		operatortest.Eventually(t, name+" is deleted", func() bool { return calls.contains("concludes " + name) })
		if got := strings.Join(calls.take(), ", "); got != tc.deleted {
			t.Errorf("%s was deleted by: %s\nwant: %s", name, got, tc.deleted)
		}
	}
}

// telling is a controller that does nothing but tell.
type telling struct {
	*controllerRuntime

	calls *journal
}

func (c *telling) SyncHandler(key string) error {
	c.calls.add("sync " + key)
	return nil
}

// concluding is noting at the end of a reconciliation.
type concluding struct{ noting }

// Concludes implements framework.Concluder.
func (concluding) Concludes() bool { return true }

// noting is a resource that does nothing but tell.
type noting struct {
	name  string
	calls *journal
}

func (n *noting) Name() string { return n.name }

func (n *noting) EnsureCreated(_ context.Context, obj any) error {
	n.calls.add(n.name + " " + obj.(*Gateway).Name)
	return nil
}

func (n *noting) EnsureDeleted(_ context.Context, obj any) error {
	n.calls.add("deleted " + n.name + " " + obj.(*Gateway).Name)
	return nil
}

func TestChangesOfTertiariesAndExternalsReconcileThePrimariesThatTheyConcern(t *testing.T) {
	w := newWorld(t)
	w.createGateway("a", "a.example.com")
	w.createGateway("b", "b.example.com")
	certificates := newBucket[*Route](t, w.js, "events", nil)
	// Nothing of the external system concerns a gateway at first: what causes the first calls can be counted then.
	external := make(chan map[informer.Key]string, 1)
	external <- map[informer.Key]string{}
	registrations, err := pollinformer.New(pollinformer.Config[string]{
		Name: "registry", Interval: 10 * time.Millisecond, Logger: w.logger,
		List: func(context.Context) (map[informer.Key]string, error) {
			listed := <-external
			external <- listed
			return listed, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	config := w.config()
	config.Events = nil
	config.Tertiaries = []framework.Watch{{
		Source: newSource(w, certificates),
		Map:    func(_ context.Context, obj any) []informer.Key { return []informer.Key{{Name: obj.(*Route).Host}} },
	}}
	config.Externals = []framework.Watch{{
		Source: registrations,
		Map:    func(context.Context, any) []informer.Key { return []informer.Key{{Name: "b"}} },
	}}
	c := newClassic(w, config)
	run(t, c.Start)
	// There is one call for each gateway, which creates the route, and one for the event of that.
	operatortest.Eventually(t, "what the routes cause", func() bool { return c.calls.count("sync a") >= 2 && c.calls.count("sync b") >= 2 })

	c.calls.take()
	if err := certificates.Create(t.Context(), &Route{Meta: natsinformer.Meta{Name: "certificate"}, Host: "a"}); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the certificate's gateway", func() bool { return c.calls.contains("sync a") })
	if c.calls.contains("sync b") {
		t.Error("the certificate concerns another gateway")
	}

	// Somebody changes the external system behind the controller's back.
	c.calls.take()
	<-external
	external <- map[informer.Key]string{{Name: "b"}: "registered"}
	operatortest.Eventually(t, "the gateway of a new registration", func() bool { return c.calls.contains("sync b") })
	c.calls.take()
	<-external
	external <- map[informer.Key]string{{Name: "b"}: "changed"}
	operatortest.Eventually(t, "the gateway of a changed registration", func() bool { return c.calls.contains("sync b") })
}

// secondaryHandler overrides HandleSecondary.
type secondaryHandler struct {
	*natscontroller.ControllerRuntime[*Gateway]
	handled journal
	synced  journal
}

func (h *secondaryHandler) HandleSecondary(obj any) {
	h.handled.add(obj.(informer.Meta).GetName() + " of " + obj.(natsinformer.Entity).EntityMeta().OwnerKey)
	h.EnqueueKey("aggregate", natscontroller.OperationSecondary)
}

func (h *secondaryHandler) SyncHandler(key string) error {
	h.synced.add(key)
	return nil
}

func TestOwnHandleSecondaryIsCalledInPlaceOfTheDefault(t *testing.T) {
	w := newWorld(t)
	w.createGateway("a")
	h := &secondaryHandler{ControllerRuntime: w.controller(w.config())}
	h.SetCustomController(h)
	run(t, h.Start)
	operatortest.Eventually(t, "the backlog", func() bool { return h.synced.contains("a") })
	h.synced.take()

	w.createRoute("route", kind, "a")
	operatortest.Eventually(t, "the addition", func() bool { return h.handled.contains("route of a") })
	route, err := w.routes.Get(t.Context(), "route")
	if err != nil {
		t.Fatal(err)
	}
	h.handled.take()
	route.OwnerKey = "b"
	if err := w.routes.Update(t.Context(), route); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the owner that it has and the one that it had", func() bool {
		return h.handled.contains("route of b") && h.handled.contains("route of a")
	})
	h.handled.take()
	deleteEntity(t, w.routes, "route")
	operatortest.Eventually(t, "the deletion", func() bool { return h.handled.contains("route of b") })
	operatortest.Eventually(t, "what it enqueues", func() bool { return h.synced.contains("aggregate") })
	if slices.Contains(h.synced.all(), "a") {
		t.Error("the owner was enqueued although HandleSecondary did not do so")
	}
}
