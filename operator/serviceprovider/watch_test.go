package serviceprovider_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
	clustersv1alpha1 "github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// watcher is an author that reads a Secret and a ConfigMap, which the config names.
type watcher struct {
	*author
	panics atomic.Bool
	mu     sync.Mutex
	asked  []string
}

func (w *watcher) IsReferencedSecret(_ context.Context, s *corev1.Secret, config *ProviderConfig) bool {
	return w.ask(s.Name, config, func() bool { return s.Name == config.Spec.Secret })
}

func (w *watcher) IsReferencedConfigMap(_ context.Context, m *corev1.ConfigMap, config *ProviderConfig) bool {
	return w.ask(m.Name, config, func() bool { return m.Name == config.Spec.ConfigMap })
}

func (w *watcher) ask(name string, config *ProviderConfig, named func() bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	about := "without a config"
	if config != nil {
		about = "with version " + config.Spec.Version
	}
	w.asked = append(w.asked, name+" "+about)
	if w.panics.Load() {
		panic("asked too much")
	}
	return config != nil && named()
}

func (w *watcher) wasAsked(question string) func() bool {
	return func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, q := range w.asked {
			if q == question {
				return true
			}
		}
		return false
	}
}

func (w *world) watching() (*watcher, func(*builder)) {
	watches := &watcher{author: w.author}
	return watches, func(b *builder) { b.Reconciler(watches).SecretNamespace(w.namespace).ConfigMapNamespace(w.namespace) }
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

// calls waits until the author was called so often for an object, at least.
func (w *world) calls(name string, n int) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("the author was called %d times for %s", n, name), func() error {
		if got := w.author.callsOf()[name]; got < n {
			return fmt.Errorf("it was called %d times", got)
		}
		return nil
	})
}

func TestReferencedSecretsAndConfigMapsReconcile(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{Version: "16", Secret: "license", ConfigMap: "defaults"})
	w.create(platform, &corev1.Secret{ObjectMeta: named("license")})
	watches, watch := w.watching()
	w.run(w.build(watch))
	w.order("db", 3)
	w.calls("db", 1)

	calls := 1
	for _, change := range []func(){
		func() {
			w.patch(platform, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "license"}}, `{"stringData":{"key":"new"}}`)
		},
		func() { w.create(platform, &corev1.ConfigMap{ObjectMeta: named("defaults")}) },
		func() {
			if err := planes[platform].user.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "defaults"}}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		change()
		calls++
		w.calls("db", calls)
	}
	before := w.author.callsOf()["db"]

	// What nobody refers to, and what is elsewhere, has nothing done. A change that counts comes after it, so that it was seen.
	w.create(platform, &corev1.Secret{ObjectMeta: named("other")})
	w.create(platform, &corev1.ConfigMap{ObjectMeta: named("other")})
	operatortest.Eventually(t, "the author was asked for the other Secret", watches.wasAsked("other with version 16"))
	w.patch(platform, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "license"}}, `{"stringData":{"key":"newer"}}`)
	w.calls("db", before+1)
	if got := w.author.callsOf()["db"]; got != before+1 {
		t.Errorf("the author was called %d times after the first changes, want once: something that is not referenced counts", got-before)
	}
}

// TestR11NoListOfWhatIsWatchedAsksForAnyVersion: it may be older than what was seen or done before. The servers don't stream lists here.
func TestR11NoListOfWhatIsWatchedAsksForAnyVersion(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	var mu sync.Mutex
	lists := map[string]bool{}
	spied := func(role string) *clusters.Cluster {
		c := w.faults[role].Wrap(adminOf(role))
		c.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				query := r.URL.Query()
				if query.Has("sendInitialEvents") {
					body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`
					return &http.Response{StatusCode: http.StatusUnprocessableEntity, Header: http.Header{"Content-Type": {"application/json"}},
						Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
				}
				if r.Method == http.MethodGet && query.Has("limit") {
					mu.Lock()
					defer mu.Unlock()
					lists[path.Base(r.URL.Path)+" of version "+query.Get("resourceVersion")] = true
				}
				return next.RoundTrip(r)
			})
		})
		return newCluster(t, role, c)
	}
	_, watch := w.watching()
	w.run(w.build(watch, func(b *builder) {
		b.PlatformCluster(spied(platform)).OnboardingCluster(spied(onboarding)).NamespacePredicate(func(*metav1.PartialObjectMetadata) bool { return true })
	}))
	w.order("db", 3)
	w.calls("db", 1)
	mu.Lock()
	defer mu.Unlock()
	want := map[string]bool{}
	for _, kind := range []string{"postgreses", "namespaces", "providerconfigs", "secrets", "configmaps"} {
		want[kind+" of version "] = true
	}
	if diff := cmp.Diff(want, lists); diff != "" {
		t.Errorf("lists (-want +got):\n%s", diff)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestReferencesAreAskedForWithoutAConfigWhileThereIsNone(t *testing.T) {
	w := newWorld(t)
	watches, watch := w.watching()
	w.run(w.build(watch))
	w.order("db", 3)
	w.eventuallyTells("db", "Progressing/False/ProviderConfigAbsent")
	w.create(platform, &corev1.Secret{ObjectMeta: named("license")})
	operatortest.Eventually(t, "the author was asked", watches.wasAsked("license without a config"))
	w.configure(ProviderConfigSpec{Secret: "license"})
	w.eventuallyTells("db", "Ready/True/Ready")
}

func TestPanicOfAWatcherCountsAsYes(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	watches, watch := w.watching()
	w.run(w.build(watch))
	w.order("db", 3)
	w.calls("db", 1)
	watches.panics.Store(true)
	w.create(platform, &corev1.Secret{ObjectMeta: named("license")})
	w.calls("db", 2)
}

// TestChangesWhileTheObjectsCantBeListedAreNotLost: the onboarding cluster answers nothing when the change comes.
func TestChangesWhileTheObjectsCantBeListedAreNotLost(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{Version: "15", Secret: "license"})
	watches, watch := w.watching()
	w.run(w.build(watch))
	w.order("db", 3)
	w.calls("db", 1)
	w.faults[onboarding].Cut()
	w.patch(platform, w.config(ProviderConfigSpec{}), `{"spec":{"version":"16"}}`)
	w.create(platform, &corev1.Secret{ObjectMeta: named("license")})
	license, changes := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "license"}}, 0
	operatortest.Eventually(t, "the author was asked for the Secret", func() bool {
		// A change of the Secret may be seen before the config is: they come by different watches.
		changes++
		w.patch(platform, license, fmt.Sprintf(`{"stringData":{"key":"%d"}}`, changes))
		return watches.wasAsked("license with version 16")()
	})
	w.faults[onboarding].Restore()
	w.version("db", "16")
}

// TestWatchesThatWereCutTellWhatHappenedMeanwhile: the platform cluster can't be reached when the changes are made.
func TestWatchesThatWereCutTellWhatHappenedMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{Version: "15", ConfigMap: "defaults"})
	_, watch := w.watching()
	w.author.createOrUpdate = func(ctx context.Context, obj *Postgres, config *ProviderConfig, clusters clusterCtx) (ctrl.Result, error) {
		defaults := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: w.namespace, Name: "defaults"}
		if err := w.access.platform.Get(ctx, key, defaults); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		config.Spec.Version += defaults.Data["suffix"]
		return deploy(ctx, obj, config, clusters)
	}
	w.run(w.build(watch))
	w.order("db", 3)
	w.version("db", "15")
	w.faults[platform].Cut()
	w.create(platform, &corev1.ConfigMap{ObjectMeta: named("defaults"), Data: map[string]string{"suffix": "-a"}})
	w.faults[platform].Restore()
	w.version("db", "15-a")
	w.faults[platform].Cut()
	w.patch(platform, w.config(ProviderConfigSpec{}), `{"spec":{"version":"16"}}`)
	w.faults[platform].Restore()
	w.version("db", "16-a")
}

func TestOwnWritesAndRestartsAreNoWork(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{Secret: "license"})
	w.create(platform, &corev1.Secret{ObjectMeta: named("license")})
	_, watch := w.watching()
	stop := w.run(w.build(watch))
	w.order("db", 3)
	w.eventuallyTells("db", "Ready/True/Ready")
	w.annotate("db", `"`+serviceprovider.OperationAnnotation+`":"reconcile"`)
	w.calls("db", 2)
	// What comes last is seen last: everything before has had its effect by then.
	w.order("last", 3)
	w.eventuallyTells("last", "Ready/True/Ready")
	stop()
	if diff := cmp.Diff(map[string]int{"db": 2, "last": 1}, w.author.callsOf()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}

	w.run(w.build(watch))
	w.calls("db", 3)
	w.calls("last", 2)
	w.order("latest", 3)
	w.eventuallyTells("latest", "Ready/True/Ready")
	if diff := cmp.Diff(map[string]int{"db": 3, "last": 2, "latest": 1}, w.author.callsOf()); diff != "" {
		t.Errorf("calls after a restart (-want +got):\n%s", diff)
	}
}

func TestChangesOfOneObjectReconcileIt(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	w.run(w.build())
	w.order("db", 3)
	w.order("other", 3)
	w.eventuallyTells("db", "Ready/True/Ready")
	w.eventuallyTells("other", "Ready/True/Ready")
	w.patch(onboarding, w.named("db"), `{"spec":{"size":5}}`)
	operatortest.Eventually(t, "the change reached the MCP", func() bool { return w.data(mcp, "db")["size"] == "5" })
	w.delete("db")
	w.eventuallyGone("db")
	if got := w.author.callsOf()["other"]; got != 1 {
		t.Errorf("the other object was reconciled %d times", got)
	}
}

// atHand is access that everybody has, without a request: what is measured is how often objects are reconciled.
type atHand struct {
	*simpleAccess
	there *clusters.Cluster
}

func (atHand) Reconcile(context.Context, ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, nil
}

func (a atHand) MCPCluster(context.Context, ctrl.Request) (*clusters.Cluster, error) {
	return a.there, nil
}

func (atHand) MCPAccessRequest(context.Context, ctrl.Request) (*clustersv1alpha1.AccessRequest, error) {
	return &clustersv1alpha1.AccessRequest{Status: clustersv1alpha1.AccessRequestStatus{
		Phase: clustersv1alpha1.PhaseGranted, SecretRef: &clustersv1alpha1.LocalObjectReference{Name: "at-hand"},
	}}, nil
}

// many is how many objects a config change is spread out over.
const many, someOfMany = 1000, 200

func TestConfigChangeReachesManyObjectsAtTheConfiguredRate(t *testing.T) {
	many := many
	if testing.Short() {
		many = someOfMany
	}
	w := newWorld(t)
	w.configure(ProviderConfigSpec{Version: "15"})
	// The rate is 4 in a second: one every 250 ms of this clock, which stands still until it is moved.
	clock := clocktesting.NewFakeClock(time.Now())
	interval := 250 * time.Millisecond
	var mu sync.Mutex
	changed := map[string]bool{}
	w.author.createOrUpdate = func(_ context.Context, obj *Postgres, config *ProviderConfig, _ clusterCtx) (ctrl.Result, error) {
		if config.Spec.Version == "16" {
			mu.Lock()
			defer mu.Unlock()
			changed[obj.Name] = true
		}
		return ctrl.Result{}, nil
	}
	reached := func() int { mu.Lock(); defer mu.Unlock(); return len(changed) }
	var creating sync.WaitGroup
	for part := range 10 {
		creating.Go(func() {
			for i := part; i < many; i += 10 {
				o := newPostgres(fmt.Sprintf("db-%d", i), 1)
				o.Namespace = w.namespace
				if err := planes[onboarding].user.Create(t.Context(), o); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	creating.Wait()
	w.run(w.build(func(b *builder) {
		b.ChangesPerSecond(4).Clock(clock).ClusterAccessReconciler(atHand{w.access, w.cluster(mcp)})
	}))
	for part := many / 10; part <= many; part += many / 10 {
		operatortest.Eventually(t, fmt.Sprintf("%d objects are there", part), func() bool { return len(w.author.callsOf()) >= part })
	}

	w.patch(platform, w.config(ProviderConfigSpec{}), `{"spec":{"version":"16"}}`)
	operatortest.Eventually(t, "the first object has the change", func() bool { return reached() == 1 })
	fresh := 0
	for step := 1; step < many; step++ {
		operatortest.Eventually(t, "the next object is waited for", clock.HasWaiters)
		if step == many/2 {
			// A change of one object does not wait in this line.
			w.order("fresh", 1)
			operatortest.Eventually(t, "the new object has the change", func() bool { mu.Lock(); defer mu.Unlock(); return changed["fresh"] })
			fresh = 1
		}
		clock.Step(interval)
		if got, most := reached(), step+1+fresh; got > most {
			t.Fatalf("after %d intervals %d objects have the change, want %d at most", step, got, most)
		}
		if step%25 == 0 || step == many-1 {
			operatortest.Eventually(t, "all objects whose turn it was have the change", func() bool { return reached() >= step+1+fresh })
		}
	}
}
