package serviceprovider_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
)

type (
	builder    = serviceprovider.APIReconcilerBuilder[*Postgres, *ProviderConfig]
	reconciler = serviceprovider.APIReconciler[*Postgres, *ProviderConfig]
	clusterCtx = serviceprovider.ClusterContext
	authorFunc = func(ctx context.Context, obj *Postgres, config *ProviderConfig, clusters clusterCtx) (ctrl.Result, error)
)

// world is a provider with a namespace of its own in each of the four clusters, and its users.
type world struct {
	t         testing.TB
	namespace string
	// faults stand between the provider and the clusters it is given.
	faults map[string]*operatortest.Faults
	access *simpleAccess
	author *author
	events *events
}

func newWorld(t *testing.T) *world {
	t.Helper()
	allPlanes(t)
	w := &world{t: t, faults: map[string]*operatortest.Faults{}, events: &events{}}
	for role := range planes {
		w.faults[role] = operatortest.NewFaults()
	}
	w.namespace = planes[onboarding].kube.Namespace(t)
	for role, p := range planes {
		if role == onboarding {
			continue
		}
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
		if err := p.user.Create(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
	}
	w.author = &author{createOrUpdate: deploy, del: undeploy}
	w.access = &simpleAccess{platform: w.cluster(platform).Client(), namespace: w.namespace, ids: []string{mcp}}
	return w
}

// cluster is a cluster as the provider is given it.
func (w *world) cluster(role string) *clusters.Cluster {
	w.t.Helper()
	return newCluster(w.t, role, w.faults[role].Wrap(adminOf(role)))
}

func newCluster(t testing.TB, role string, c *rest.Config) *clusters.Cluster {
	t.Helper()
	made, err := clusters.New(role, c, scheme)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// builder is one with everything that is required.
func (w *world) builder() *builder {
	w.t.Helper()
	return serviceprovider.NewAPIReconcilerBuilder[*Postgres, *ProviderConfig]().
		PlatformCluster(w.cluster(platform)).OnboardingCluster(w.cluster(onboarding)).
		ClusterAccessReconciler(w.access).Reconciler(w.author).
		EmptyObjectProvider(func() *Postgres { return &Postgres{} }).
		ProviderConfig(w.config(ProviderConfigSpec{Version: "built-in"})).
		EventRecorder(w.events).Namespaces(w.namespace)
}

func (w *world) build(options ...func(*builder)) *reconciler {
	w.t.Helper()
	b := w.builder()
	for _, option := range options {
		option(b)
	}
	r, err := b.Build()
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// withWorkload gives the objects a workload cluster.
func (w *world) withWorkload(b *builder) {
	w.access.ids = []string{mcp, workload}
	b.WorkloadCluster(true)
}

// config is the config of the provider.
func (w *world) config(spec ProviderConfigSpec) *ProviderConfig {
	return &ProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Spec: spec}
}

// configure creates the config.
func (w *world) configure(spec ProviderConfigSpec) {
	w.t.Helper()
	w.create(platform, w.config(spec))
	w.t.Cleanup(func() {
		if err := planes[platform].user.Delete(context.Background(), w.config(spec)); client.IgnoreNotFound(err) != nil {
			w.t.Error(err)
		}
	})
}

// create creates an object in a cluster.
func (w *world) create(role string, o client.Object) {
	w.t.Helper()
	if _, clusterWide := o.(*ProviderConfig); !clusterWide {
		o.SetNamespace(w.namespace)
	}
	if err := planes[role].user.Create(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// order creates a Postgres, and returns the request to reconcile it.
func (w *world) order(name string, size int) ctrl.Request {
	w.t.Helper()
	w.create(onboarding, newPostgres(name, size))
	return w.requestOf(name)
}

func (w *world) requestOf(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: w.namespace, Name: name}}
}

// patch changes an object of a cluster by a merge patch.
func (w *world) patch(role string, o client.Object, document string) {
	w.t.Helper()
	if err := planes[role].user.Patch(w.t.Context(), o, client.RawPatch(types.MergePatchType, []byte(document))); err != nil {
		w.t.Fatal(err)
	}
}

// annotate sets annotations of a Postgres, as "key: value" in JSON.
func (w *world) annotate(name, annotations string) {
	w.t.Helper()
	w.patch(onboarding, w.named(name), fmt.Sprintf(`{"metadata":{"annotations":{%s}}}`, annotations))
}

func (w *world) named(name string) *Postgres {
	return &Postgres{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
}

func (w *world) get(name string) *Postgres {
	w.t.Helper()
	p := w.named(name)
	if err := planes[onboarding].user.Get(w.t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// raw is a Postgres with all its fields.
func (w *world) raw(name string) *unstructured.Unstructured {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(servicesGroup.WithKind("Postgres"))
	if err := planes[onboarding].user.Get(w.t.Context(), w.requestOf(name).NamespacedName, u); err != nil {
		w.t.Fatal(err)
	}
	return u
}

func (w *world) delete(name string) {
	w.t.Helper()
	if err := planes[onboarding].user.Delete(w.t.Context(), w.named(name)); err != nil {
		w.t.Fatal(err)
	}
}

// isThere tells whether a cluster has the ConfigMap of a Postgres.
func (w *world) isThere(role, name string) bool {
	w.t.Helper()
	return w.has(role, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}})
}

func (w *world) has(role string, o client.Object) bool {
	w.t.Helper()
	err := planes[role].user.Get(w.t.Context(), client.ObjectKeyFromObject(o), o)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return err == nil
}

// told is the condition Ready of a Postgres as "phase/status/reason".
func told(p *Postgres) string {
	c := meta.FindStatusCondition(p.Conditions, serviceprovider.ServiceProviderConditionReady)
	if c == nil {
		return p.Phase + "//"
	}
	return fmt.Sprintf("%s/%s/%s", p.Phase, c.Status, c.Reason)
}

func messageOf(p *Postgres) string {
	if c := meta.FindStatusCondition(p.Conditions, serviceprovider.ServiceProviderConditionReady); c != nil {
		return c.Message
	}
	return ""
}

// tells requires what the status of a Postgres says, and parts of its message.
func (w *world) tells(name, want string, parts ...string) {
	w.t.Helper()
	p := w.get(name)
	if got := told(p); got != want {
		w.t.Errorf("the status says %s (%s), want %s", got, messageOf(p), want)
	}
	for _, part := range parts {
		if !strings.Contains(messageOf(p), part) {
			w.t.Errorf("the status says %q, which lacks %q", messageOf(p), part)
		}
	}
	if p.ObservedGeneration != p.Generation {
		w.t.Errorf("the status is about generation %d of %d", p.ObservedGeneration, p.Generation)
	}
}

// eventuallyTells is tells for a provider that runs.
func (w *world) eventuallyTells(name, want string, parts ...string) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("the status of %s says %s", name, want), func() error {
		p := w.get(name)
		if got := told(p); got != want || p.ObservedGeneration != p.Generation {
			return fmt.Errorf("it says %s of generation %d of %d: %s", got, p.ObservedGeneration, p.Generation, messageOf(p))
		}
		for _, part := range parts {
			if !strings.Contains(messageOf(p), part) {
				return fmt.Errorf("it says %q, which lacks %q", messageOf(p), part)
			}
		}
		return nil
	})
}

// eventuallyGone waits until a Postgres is gone.
func (w *world) eventuallyGone(name string) {
	w.t.Helper()
	operatortest.Eventually(w.t, name+" is gone", func() error {
		p := w.named(name)
		err := planes[onboarding].user.Get(w.t.Context(), client.ObjectKeyFromObject(p), p)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("it has the finalizers %q and says %s: %s", p.Finalizers, told(p), messageOf(p)))
	})
}

// settle reconciles by hand until there is nothing to do any more, and returns the last result.
func settle(t testing.TB, r *reconciler, request ctrl.Request) ctrl.Result {
	t.Helper()
	var result ctrl.Result
	for range 20 {
		var err error
		if result, err = r.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		if result.RequeueAfter == 0 || result.RequeueAfter > time.Second {
			return result
		}
	}
	t.Fatalf("it did not settle: %+v", result)
	return result
}

// run runs a provider under a manager until the test ends or it is stopped.
func (w *world) run(r *reconciler) (stop func()) {
	w.t.Helper()
	return w.runWith(r, nil)
}

func (w *world) runWith(r *reconciler, configs *serviceprovider.ConfigReconciler[*ProviderConfig], updates ...chan event.GenericEvent) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	start, err := manage(w.namespace, w.faults[platform].Wrap(adminOf(platform)), r, configs, updates...)
	if err != nil {
		cancel()
		w.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// manage sets a provider up with a manager, and returns what runs it.
func manage(name string, c *rest.Config, r *reconciler, configs *serviceprovider.ConfigReconciler[*ProviderConfig], updates ...chan event.GenericEvent) (func(context.Context) error, error) {
	skip, grace := true, 20*time.Second
	mgr, err := ctrl.NewManager(c, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip},
		GracefulShutdownTimeout: &grace,
	})
	if err != nil {
		return nil, err
	}
	var channel chan event.GenericEvent
	if len(updates) > 0 {
		channel = updates[0]
	}
	if err := r.SetupWithManager(mgr, name, channel); err != nil {
		return nil, err
	}
	if configs != nil {
		if err := configs.SetupWithManager(mgr); err != nil {
			return nil, err
		}
	}
	return mgr.Start, nil
}

// author is a provider whose functions tests choose.
type author struct {
	createOrUpdate, del authorFunc

	mu    sync.Mutex
	calls []string
	count map[string]int
}

func (a *author) CreateOrUpdate(ctx context.Context, obj *Postgres, config *ProviderConfig, clusters clusterCtx) (ctrl.Result, error) {
	a.note("CreateOrUpdate", obj.Name)
	return a.createOrUpdate(ctx, obj, config, clusters)
}

func (a *author) Delete(ctx context.Context, obj *Postgres, config *ProviderConfig, clusters clusterCtx) (ctrl.Result, error) {
	a.note("Delete", obj.Name)
	return a.del(ctx, obj, config, clusters)
}

func (a *author) note(function, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.count == nil {
		a.count = map[string]int{}
	}
	a.calls = append(a.calls, function)
	a.count[name]++
}

// all are the calls so far.
func (a *author) all() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.calls)
}

// callsOf counts the calls for each object.
func (a *author) callsOf() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.count)
}

// deploy puts a ConfigMap into the clusters of a Postgres.
func deploy(ctx context.Context, obj *Postgres, config *ProviderConfig, clusters clusterCtx) (ctrl.Result, error) {
	for _, c := range targets(clusters) {
		m := &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: obj.Namespace, Name: obj.Name},
			Data:       map[string]string{"size": fmt.Sprint(obj.Spec.Size), "version": config.Spec.Version},
		}
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
		if err != nil {
			return ctrl.Result{}, err
		}
		apply := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: u})
		if err := c.Client().Apply(ctx, apply, client.FieldOwner("postgres"), client.ForceOwnership); err != nil {
			return ctrl.Result{}, fmt.Errorf("apply ConfigMap: %w", err)
		}
	}
	obj.Endpoint = obj.Name + ".example.com"
	serviceprovider.StatusReady(obj)
	return ctrl.Result{}, nil
}

// undeploy removes what deploy has made.
func undeploy(ctx context.Context, obj *Postgres, _ *ProviderConfig, clusters clusterCtx) (ctrl.Result, error) {
	for _, c := range targets(clusters) {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: obj.Namespace, Name: obj.Name}}
		if err := client.IgnoreNotFound(c.Client().Delete(ctx, m)); err != nil {
			return ctrl.Result{}, fmt.Errorf("delete ConfigMap: %w", err)
		}
	}
	return ctrl.Result{}, nil
}

func targets(found clusterCtx) []*clusters.Cluster {
	if found.WorkloadCluster == nil {
		return []*clusters.Cluster{found.MCPCluster}
	}
	return []*clusters.Cluster{found.MCPCluster, found.WorkloadCluster}
}

// events keeps what is recorded.
type events struct {
	mu  sync.Mutex
	all []string
}

func (e *events) Event(_ runtime.Object, eventtype, reason, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, eventtype+" "+reason+": "+message)
}

// told tells whether there was an event with these texts.
func (e *events) told(parts ...string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.all, func(s string) bool {
		for _, part := range parts {
			if !strings.Contains(s, part) {
				return false
			}
		}
		return true
	})
}

// data is what the ConfigMap of a Postgres holds in a cluster.
func (w *world) data(role, name string) map[string]string {
	w.t.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	w.has(role, m)
	return m.Data
}
