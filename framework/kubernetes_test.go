package framework_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

const finalizer = "test.operatorkit.io/objects"

// cluster is a namespace of a real API server and what a test does there.
type cluster struct {
	client.WithWatch
	t         testing.TB
	namespace string
}

func newCluster(t testing.TB, instance *operatortest.Instance) *cluster {
	t.Helper()
	return clusterOf(t, instance.RESTConfig(), instance.Namespace(t))
}

func clusterOf(t testing.TB, config *rest.Config, namespace string) *cluster {
	t.Helper()
	return &cluster{WithWatch: operatortest.NewClient(t, config, nil), t: t, namespace: namespace}
}

// source is a new source of the namespace's objects with the label "primary".
func (c *cluster) source() *informer.Kubernetes {
	c.t.Helper()
	source, err := informer.NewKubernetes(informer.KubernetesConfig{
		Client: c.WithWatch, Object: &corev1.ConfigMap{}, Namespaces: []string{c.namespace},
		LabelSelector: labels.SelectorFromSet(labels.Set{"primary": "yes"}), Logger: quiet(c.t),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return source
}

func (c *cluster) object(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name, Labels: map[string]string{"primary": "yes"}}}
}

func (c *cluster) create(obj client.Object) {
	c.t.Helper()
	if err := c.Create(c.t.Context(), obj); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) delete(name string) {
	c.t.Helper()
	if err := c.Delete(c.t.Context(), c.object(name)); err != nil {
		c.t.Fatal(err)
	}
}

// merge merges a JSON document into an object.
func (c *cluster) merge(name, document string) {
	c.t.Helper()
	if err := c.Patch(c.t.Context(), c.object(name), client.RawPatch("application/merge-patch+json", []byte(document))); err != nil {
		c.t.Fatal(err)
	}
}

// get returns an object, or nil.
func (c *cluster) get(name string) *corev1.ConfigMap {
	c.t.Helper()
	cm := &corev1.ConfigMap{}
	err := c.Get(c.t.Context(), client.ObjectKey{Namespace: c.namespace, Name: name}, cm)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return cm
}

func (c *cluster) holds(name string) bool {
	cm := c.get(name)
	return cm != nil && slices.Contains(cm.Finalizers, finalizer)
}

func (c *cluster) gone(name string) func() bool {
	return func() bool { return c.get(name) == nil }
}

// calls are the calls of a resource by name of the object.
type calls struct {
	mu     sync.Mutex
	count  map[string]int
	onCall func(ctx context.Context, call string, obj *corev1.ConfigMap) error
}

func (c *calls) call(ctx context.Context, kind string, obj any) error {
	cm := obj.(*corev1.ConfigMap)
	c.mu.Lock()
	if c.count == nil {
		c.count = map[string]int{}
	}
	c.count[kind+" "+cm.Name]++
	c.mu.Unlock()
	if c.onCall != nil {
		return c.onCall(ctx, kind, cm)
	}
	return nil
}

func (c *calls) of(call string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count[call]
}

func (c *calls) resource() framework.Resource {
	return &resource{name: "r",
		created: func(ctx context.Context, obj any) error { return c.call(ctx, "created", obj) },
		deleted: func(ctx context.Context, obj any) error { return c.call(ctx, "deleted", obj) }}
}

func (c *cluster) framework(config framework.Config, calls *calls) *framework.Framework {
	c.t.Helper()
	if config.Source == nil {
		config.Source = c.source()
	}
	config.Finalizer = finalizer
	return newFramework(c.t, config, calls.resource())
}

func TestR5DeletionIsProcessedAlthoughTheOperatorWasDown(t *testing.T) {
	c := newCluster(t, operatortest.Start(t))
	before := &calls{}
	stop := running(t, c.framework(framework.Config{}, before))
	c.create(c.object("a"))
	operatortest.Eventually(t, "the object is held", func() bool { return c.holds("a") && before.of("created a") > 0 })
	stop()
	c.delete("a")
	if !c.holds("a") {
		t.Fatal("the object did not wait for the operator")
	}

	after := &calls{}
	running(t, c.framework(framework.Config{}, after))
	operatortest.Eventually(t, "the object is gone", c.gone("a"))

	if before.of("deleted a") != 0 || after.of("deleted a") != 1 || after.of("created a") != 0 {
		t.Errorf("calls before %v and after %v, want one deletion after", before.count, after.count)
	}
}

func TestR5FinalizerStaysUntilTheDeletionSucceededAndOthersStayLonger(t *testing.T) {
	c := newCluster(t, operatortest.Start(t))
	var mu sync.Mutex
	failing := errBoom
	calls := &calls{onCall: func(_ context.Context, call string, _ *corev1.ConfigMap) error {
		mu.Lock()
		defer mu.Unlock()
		if call == "deleted" {
			return failing
		}
		return nil
	}}
	f := c.framework(framework.Config{BackOffFactory: quickly}, calls)
	running(t, f)
	obj := c.object("a")
	obj.Finalizers = []string{"somebody.else/cleanup"}
	c.create(obj)
	operatortest.Eventually(t, "the object is held", func() bool { return c.holds("a") })
	c.delete("a")
	operatortest.Eventually(t, "the deletion failed several times", func() bool { return calls.of("deleted a") > 2 })
	if !c.holds("a") {
		t.Error("the finalizer is gone although the deletion failed")
	}
	mu.Lock()
	failing = nil
	mu.Unlock()
	operatortest.Eventually(t, "the finalizer is gone", func() bool { return !c.holds("a") })
	if diff := cmp.Diff([]string{"somebody.else/cleanup"}, c.get("a").Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}

	deletions := calls.of("deleted a")
	c.merge("a", `{"data":{"seen":"yes"}}`)
	c.merge("a", `{"metadata":{"finalizers":null}}`)
	operatortest.Eventually(t, "the object is gone", c.gone("a"))
	c.create(c.object("marker"))
	operatortest.Eventually(t, "a later object is reconciled", func() bool { return calls.of("created marker") > 0 })
	if got := calls.of("deleted a"); got != deletions {
		t.Errorf("the deletion was processed %d more times after it had succeeded", got-deletions)
	}
}

func TestR5WithoutFinalizerDeletionIsSeenAfterTheWatchWasCut(t *testing.T) {
	instance := operatortest.Start(t)
	c := newCluster(t, instance)
	faults := operatortest.NewFaults()
	cut := clusterOf(t, faults.Wrap(instance.RESTConfig()), c.namespace)
	last := &journal{}
	calls := &calls{onCall: func(_ context.Context, call string, obj *corev1.ConfigMap) error {
		last.add(call + " " + obj.Name + " " + obj.Data["v"])
		return nil
	}}
	source := cut.source()
	running(t, cut.framework(framework.Config{Source: source, DisableFinalizer: true}, calls))
	obj := c.object("a")
	obj.Data = map[string]string{"v": "1"}
	c.create(obj)
	operatortest.Eventually(t, "the object is reconciled", func() bool { return calls.of("created a") > 0 })
	if cm := c.get("a"); len(cm.Finalizers) > 0 {
		t.Errorf("finalizers %v although they are disabled", cm.Finalizers)
	}

	faults.Cut()
	operatortest.Eventually(t, "the source notices the outage", func() bool { return source.Status().LastError != nil })
	c.delete("a")
	c.create(c.object("b"))
	faults.Restore()
	operatortest.Eventually(t, "the deletion is processed with the last known state", func() error {
		if all := last.all(); !slices.Contains(all, "deleted a 1") {
			return fmt.Errorf("calls %v", all)
		}
		return nil
	})
	operatortest.Eventually(t, "the new object is reconciled", func() bool { return calls.of("created b") > 0 })
}

func TestDisabledFinalizerProcessesADeletionThatOthersHoldOnce(t *testing.T) {
	c := newCluster(t, operatortest.Start(t))
	calls := &calls{}
	running(t, c.framework(framework.Config{DisableFinalizer: true}, calls))
	obj := c.object("a")
	obj.Finalizers = []string{"somebody.else/cleanup"}
	c.create(obj)
	operatortest.Eventually(t, "the object is reconciled", func() bool { return calls.of("created a") > 0 })
	c.delete("a")
	operatortest.Eventually(t, "the deletion is processed", func() bool { return calls.of("deleted a") > 0 })
	created := calls.of("created a")
	c.merge("a", `{"data":{"still":"here"}}`)
	c.merge("a", `{"metadata":{"finalizers":null}}`)
	operatortest.Eventually(t, "the object is gone", c.gone("a"))
	c.create(c.object("marker"))
	operatortest.Eventually(t, "a later object is reconciled", func() bool { return calls.of("created marker") > 0 })

	if got := calls.of("deleted a"); got != 1 {
		t.Errorf("the deletion was processed %d times, want once", got)
	}
	if got := calls.of("created a"); got != created {
		t.Error("an object that is being deleted was reconciled as if it were to stay")
	}
}

func TestR5ObjectThatLeavesTheSelectorIsLetGo(t *testing.T) {
	c := newCluster(t, operatortest.Start(t))
	calls := &calls{}
	running(t, c.framework(framework.Config{}, calls))
	c.create(c.object("a"))
	operatortest.Eventually(t, "the object is held", func() bool { return c.holds("a") && calls.of("created a") > 0 })
	c.merge("a", `{"metadata":{"labels":{"primary":"no"}}}`)
	operatortest.Eventually(t, "the finalizer is gone", func() bool { return !c.holds("a") })

	if c.get("a") == nil || calls.of("deleted a") != 0 {
		t.Error("an object that was only unselected was treated as deleted")
	}
	c.delete("a")
	operatortest.Eventually(t, "the object is gone", c.gone("a"))
}

func TestR6ObjectWithoutSetGetsNoFinalizer(t *testing.T) {
	c := newCluster(t, operatortest.Start(t))
	calls := &calls{}
	f := c.framework(framework.Config{ResourceRouter: routerOf(t, framework.ResourceSetConfig{
		Handles:   framework.HandlesLabel("version", "v1"),
		Resources: []framework.Resource{calls.resource()},
	})}, calls)
	running(t, f)
	c.create(c.object("unhandled"))
	handled := c.object("handled")
	handled.Labels["version"] = "v1"
	c.create(handled)
	operatortest.Eventually(t, "the other object is reconciled", func() bool { return calls.of("created handled") > 0 && c.holds("handled") })

	if cm := c.get("unhandled"); len(cm.Finalizers) > 0 || calls.of("created unhandled") > 0 {
		t.Errorf("an object that no set handles was not left alone: finalizers %v", cm.Finalizers)
	}
}

func TestPausedDeletionWaits(t *testing.T) {
	c := newCluster(t, operatortest.Start(t))
	calls := &calls{}
	running(t, c.framework(framework.Config{}, calls))
	c.create(c.object("a"))
	operatortest.Eventually(t, "the object is held", func() bool { return c.holds("a") })
	c.merge("a", `{"metadata":{"annotations":{"`+framework.PausedAnnotation+`":"true"}}}`)
	c.delete("a")
	c.create(c.object("marker"))
	operatortest.Eventually(t, "a later object is reconciled", func() bool { return calls.of("created marker") > 0 })
	if !c.holds("a") || calls.of("deleted a") > 0 {
		t.Error("the deletion of a paused object was processed")
	}
	c.merge("a", `{"metadata":{"annotations":null}}`)
	operatortest.Eventually(t, "the object is gone", c.gone("a"))
}

func TestR2OnTheAPIServer200ObjectsWith16WorkersNeverHaveOneKeyTwiceAtOnce(t *testing.T) {
	const objects, workers = 200, 16
	c := newCluster(t, operatortest.Start(t))
	var mu sync.Mutex
	busy, most := map[string]bool{}, 0
	calls := &calls{onCall: func(ctx context.Context, call string, obj *corev1.ConfigMap) error {
		mu.Lock()
		if busy[obj.Name] {
			t.Errorf("%s is reconciled twice at once", obj.Name)
		}
		busy[obj.Name] = true
		most = max(most, len(busy))
		mu.Unlock()
		defer func() {
			mu.Lock()
			delete(busy, obj.Name)
			mu.Unlock()
		}()
		if call == "deleted" {
			return nil
		}
		// A write of one's own object is a change that comes in while the reconciliation is under way.
		return c.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"seen":"yes"}}`)))
	}}
	running(t, c.framework(framework.Config{Workers: workers}, calls))
	for n := range objects {
		c.create(c.object(fmt.Sprint("o", n)))
	}
	operatortest.Eventually(t, "all objects are reconciled", func() bool {
		for n := range objects {
			if calls.of(fmt.Sprint("created o", n)) == 0 {
				return false
			}
		}
		return true
	})
	if err := c.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(c.namespace), client.MatchingLabels{"primary": "yes"}); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "all objects are gone", func() bool {
		list := &corev1.ConfigMapList{}
		err := c.List(t.Context(), list, client.InNamespace(c.namespace), client.MatchingLabels{"primary": "yes"})
		return err == nil && len(list.Items) == 0
	})
	for n := range objects {
		if got := calls.of(fmt.Sprint("deleted o", n)); got != 1 {
			t.Errorf("the deletion of o%d was processed %d times, want once", n, got)
		}
	}
	if most < 2 {
		t.Error("no two objects were reconciled in parallel")
	}
}

func TestR3KillingTheAPIServerAndEtcdLosesNoKey(t *testing.T) {
	const objects = 50
	instance := operatortest.Start(t, operatortest.Dedicated())
	c := newCluster(t, instance)
	calls := &calls{onCall: func(ctx context.Context, call string, obj *corev1.ConfigMap) error {
		if call == "deleted" {
			return nil
		}
		return c.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"seen":"`+obj.Data["v"]+`"}}`)))
	}}
	stop := running(t, c.framework(framework.Config{BackOffFactory: quickly}, calls))
	for n := range objects {
		c.create(c.object(fmt.Sprint("o", n)))
	}
	for round, kill := range []func() error{instance.KillAPIServer, instance.KillEtcd} {
		operatortest.Eventually(t, "half of the objects are reconciled", func() bool {
			seen := 0
			for n := range objects {
				seen += min(calls.of(fmt.Sprint("created o", n)), 1)
			}
			return seen > objects/2
		})
		if err := kill(); err != nil {
			t.Fatal(err)
		}
		if err := instance.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		for n := range objects {
			c.merge(fmt.Sprint("o", n), fmt.Sprintf(`{"data":{"v":"%d"}}`, round))
		}
	}
	operatortest.Eventually(t, "every object was reconciled in its newest state", func() bool {
		for n := range objects {
			if c.get(fmt.Sprint("o", n)).Data["seen"] != "1" {
				return false
			}
		}
		return true
	})
	for n := range objects {
		c.delete(fmt.Sprint("o", n))
	}
	for n := range objects {
		operatortest.Eventually(t, "the object is gone", c.gone(fmt.Sprint("o", n)))
	}
	stop()
}
