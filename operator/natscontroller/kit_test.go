package natscontroller_test

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/giantswarm/micrologger"
	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/logging"
	"github.com/operatorkit/operatorkit/operator/natscontroller"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

// The kinds of the tests. A Gateway becomes Routes.
type (
	Gateway struct {
		natsinformer.Meta `json:"metadata"`
		Hosts             []string `json:"hosts,omitempty"`
	}
	Route struct {
		natsinformer.Meta `json:"metadata"`
		Host              string `json:"host,omitempty"`
	}
)

const kind = "Gateway"

// self is whose the marks are that the controllers of the tests leave.
var self = identity.Identity{Operator: "gateway-controller", Framework: "gateway-controller"}

// world is a NATS server with buckets for gateways, routes and events, and perhaps a namespace of Kubernetes.
type world struct {
	t      testing.TB
	js     jetstream.JetStream
	logger micrologger.Logger
	log    *journal

	gateways *natsinformer.Bucket[*Gateway]
	routes   *natsinformer.Bucket[*Route]
	events   *natsinformer.Bucket[*natscontroller.Event]

	kube       client.WithWatch
	restConfig *rest.Config
	namespace  string
}

// newWorld connects to a server of its own.
func newWorld(t testing.TB) *world {
	t.Helper()
	_, js := natsserver.Start(t).Connect(t)
	return newWorldAt(t, js)
}

// newWorldAt makes the buckets.
func newWorldAt(t testing.TB, js jetstream.JetStream) *world {
	t.Helper()
	for _, name := range []string{"gateways", "routes", "events", "leases"} {
		natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: name, History: 5})
	}
	return openWorld(t, js, nil)
}

// openWorld uses the buckets that are there, behind a fence.
func openWorld(t testing.TB, js jetstream.JetStream, fence func() error) *world {
	t.Helper()
	w := &world{t: t, js: js, log: &journal{}}
	w.logger = logTo(t, w.log)
	w.gateways = newBucket[*Gateway](t, js, "gateways", fence)
	w.routes = newBucket[*Route](t, js, "routes", fence)
	w.events = newBucket[*natscontroller.Event](t, js, "events", fence)
	return w
}

// withKubernetes adds a namespace.
func (w *world) withKubernetes() *world {
	w.t.Helper()
	instance := operatortest.Start(w.t)
	w.restConfig, w.namespace = instance.RESTConfig(), instance.Namespace(w.t)
	w.kube = operatortest.NewClient(w.t, w.restConfig, nil)
	return w
}

func newBucket[T natsinformer.Entity](t testing.TB, js jetstream.JetStream, name string, fence func() error) *natsinformer.Bucket[T] {
	t.Helper()
	bucket, err := natsinformer.NewBucket(natsinformer.BucketConfig[T]{JetStream: js, Name: name, Fence: fence})
	if err != nil {
		t.Fatal(err)
	}
	return bucket
}

func newSource[T natsinformer.Entity](w *world, bucket *natsinformer.Bucket[T]) *natsinformer.Source[T] {
	w.t.Helper()
	source, err := natsinformer.NewSource(natsinformer.SourceConfig[T]{Bucket: bucket, Logger: w.logger, ProbeInterval: time.Second})
	if err != nil {
		w.t.Fatal(err)
	}
	return source
}

// configMaps is a source of the ConfigMaps of the world's namespace.
func (w *world) configMaps() *informer.Kubernetes {
	w.t.Helper()
	source, err := informer.NewKubernetes(informer.KubernetesConfig{
		Client: w.kube, Object: &corev1.ConfigMap{}, Namespaces: []string{w.namespace}, Logger: w.logger,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return source
}

// config is that of a controller of gateways with routes, and with ConfigMaps if there is a Kubernetes. It looks for
// garbage at the start only.
func (w *world) config() natscontroller.Config[*Gateway] {
	w.t.Helper()
	config := natscontroller.Config[*Gateway]{
		Name: "gateway-controller", Kind: kind, Logger: w.logger,
		Primary:        newSource(w, w.gateways),
		Secondaries:    []natscontroller.Secondary{natscontroller.Entities(newSource(w, w.routes))},
		Events:         w.events,
		Garbage:        natscontroller.GarbageConfig{Interval: time.Hour, Rate: 1000},
		BackOffFactory: func() backoff.BackOff { return backoff.NewConstantBackOff(10 * time.Millisecond) },
	}
	if w.kube != nil {
		config.Secondaries = append(config.Secondaries, natscontroller.Kube(w.configMaps(), w.kube))
	}
	return config
}

func (w *world) controller(config natscontroller.Config[*Gateway]) *natscontroller.ControllerRuntime[*Gateway] {
	w.t.Helper()
	c, err := natscontroller.NewControllerRuntime(config)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) createGateway(name string, hosts ...string) {
	w.t.Helper()
	if err := w.gateways.Create(w.t.Context(), &Gateway{Meta: natsinformer.Meta{Name: name}, Hosts: hosts}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) createRoute(name, ownerKind, owner string) {
	w.t.Helper()
	w.createRouteBy(self, name, ownerKind, owner)
}

// createRouteBy creates a route that a controller has made; nobody leaves no mark.
func (w *world) createRouteBy(by identity.Identity, name, ownerKind, owner string) {
	w.t.Helper()
	route := &Route{Meta: natsinformer.Meta{Name: name, OwnerKind: ownerKind, OwnerKey: owner}}
	if by.Operator != "" {
		natscontroller.SetEntityOwner(route, by, ownerKind, owner)
	}
	if err := w.routes.Create(w.t.Context(), route); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) deleteGateway(name string) {
	w.t.Helper()
	deleteEntity(w.t, w.gateways, name)
}

func deleteEntity[T natsinformer.Entity](t testing.TB, bucket *natsinformer.Bucket[T], name string) {
	t.Helper()
	entity, err := bucket.Get(t.Context(), name)
	if err == nil {
		err = bucket.Delete(t.Context(), entity)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// keys are the keys of a bucket, in order.
func (w *world) keys(bucket string) []string {
	w.t.Helper()
	kv, err := w.js.KeyValue(w.t.Context(), bucket)
	if err != nil {
		w.t.Fatal(err)
	}
	lister, err := kv.ListKeys(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	var keys []string
	for key := range lister.Keys() {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func (w *world) createConfigMap(name string, change func(*corev1.ConfigMap)) {
	w.t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	if change != nil {
		change(cm)
	}
	if err := w.kube.Create(w.t.Context(), cm); err != nil {
		w.t.Fatal(err)
	}
}

// configMapNames are the names of the ConfigMaps in the namespace, in order, without those of Kubernetes itself.
func (w *world) configMapNames() []string {
	w.t.Helper()
	list := &corev1.ConfigMapList{}
	if err := w.kube.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, cm := range list.Items {
		if !strings.HasPrefix(cm.Name, "kube-") {
			names = append(names, cm.Name)
		}
	}
	slices.Sort(names)
	return names
}

// running is a controller that runs.
type running struct {
	t      testing.TB
	cancel context.CancelFunc
	ended  chan struct{}
	err    error
}

// run runs a controller until stop is called, or the test ends.
func run(t testing.TB, start func(context.Context) error) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{t: t, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.err = start(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-r.ended
	})
	return r
}

func (r *running) stop() error {
	r.t.Helper()
	r.cancel()
	return r.wait()
}

func (r *running) wait() error {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(time.Minute):
		r.t.Fatal("the controller does not end")
	}
	return r.err
}

func logTo(t testing.TB, w io.Writer) micrologger.Logger {
	t.Helper()
	logger, err := logging.New(logging.Config{Writer: w, Format: logging.FormatText, Level: logging.LevelDebug})
	if err != nil {
		t.Fatal(err)
	}
	return logger
}

// journal is a list of what happened, in order.
type journal struct {
	mu      sync.Mutex
	entries []string
}

func (j *journal) add(entry string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, entry)
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.entries)
}

// take returns the entries since the last call.
func (j *journal) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	entries := j.entries
	j.entries = nil
	return entries
}

// Write makes a journal of a log.
func (j *journal) Write(p []byte) (int, error) {
	j.add(string(p))
	return len(p), nil
}

func (j *journal) contains(text string) bool { return j.count(text) > 0 }

func (j *journal) count(text string) int { return j.countAll(text) }

// countAll counts the entries that contain all these texts.
func (j *journal) countAll(texts ...string) (n int) {
	for _, entry := range j.all() {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(entry, text) }) {
			n++
		}
	}
	return n
}

// classic is a controller as it was written for the original: it embeds the runtime and overrides methods.
type classic struct {
	*natscontroller.ControllerRuntime[*Gateway]
	world *world
	calls journal
	fail  func(key string) error
}

func newClassic(w *world, config natscontroller.Config[*Gateway]) *classic {
	w.t.Helper()
	c := &classic{ControllerRuntime: w.controller(config), world: w}
	c.SetCustomController(c)
	return c
}

// SyncHandler makes one route for each gateway, and removes that of one that is gone.
func (c *classic) SyncHandler(key string) error {
	c.calls.add("sync " + key)
	if c.fail != nil {
		if err := c.fail(key); err != nil {
			return err
		}
	}
	ctx := context.Background()
	gateway, err := c.world.gateways.Get(ctx, key)
	if apierrors.IsNotFound(err) || err == nil && gateway.GetDeletionTimestamp() != nil {
		route, err := c.world.routes.Get(ctx, key)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		c.Event(route, corev1.EventTypeNormal, natscontroller.ReasonResourceSynced, "deleted")
		return c.world.routes.Purge(ctx, route)
	}
	if err != nil {
		return err
	}
	err = c.world.routes.Create(ctx, &Route{Meta: natsinformer.Meta{Name: key, OwnerKind: kind, OwnerKey: key}})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (c *classic) Clean() { c.calls.add("clean") }
