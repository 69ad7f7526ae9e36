package operator_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// steal gives the lease to another holder, by hand.
func (r *replicas) steal(thief string) {
	r.t.Helper()
	operatortest.Eventually(r.t, "the lease is "+thief+"'s", func() error {
		lease, seconds := r.lease(), int32(3600)
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &thief, &seconds
		return r.client.Update(r.t.Context(), lease)
	})
}

// shortly is an election with a lease that ends within the time of a test.
func (r *replicas) shortly(identity string) operator.LeaderElectionConfig {
	election := r.election(identity, nil)
	election.LeaseDuration, election.RenewDeadline = 8*time.Second, 7*time.Second
	return election
}

// leading is the gauge of the operator "test" in a registry.
func leading(t *testing.T, registry *prometheus.Registry) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "operatorkit_operator_leading" {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("there is no gauge")
	return 0
}

func TestR17EveryClientOfTheDependenciesIsFencedWithNothingToConfigure(t *testing.T) {
	r := newReplicas(t)
	deps := newDependencies(t, operator.DependenciesConfig{RESTConfig: r.instance.RESTConfig()})
	var begun journal
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) { begun.add(request.Method) }))
	t.Cleanup(elsewhere.Close)
	external := deps.HTTPClient(elsewhere.Client())
	own := operatortest.NewClient(t, deps.RESTConfig, nil)
	send := func(method string) error {
		request, err := http.NewRequestWithContext(t.Context(), method, elsewhere.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := external.Do(request)
		if err != nil {
			return err
		}
		return response.Body.Close()
	}
	read := func() error {
		return deps.Client.Get(t.Context(), client.ObjectKey{Name: r.namespace}, &corev1.Namespace{})
	}
	writes := func(name string) []error {
		return []error{
			deps.Client.Create(t.Context(), configMap(r.namespace, name)), own.Create(t.Context(), configMap(r.namespace, "own-"+name)), send(http.MethodPost),
		}
	}
	refused := func(err error) bool { return errors.Is(err, operator.ErrLeaseLost) }

	config := operator.Config{
		RESTConfig: deps.RESTConfig, Frameworks: []*framework.Framework{newFramework(t, "f", pushed(t, "objects"), nil)},
		LeaderElection: r.election("a", nil), Registry: deps.Registry,
	}
	o := newOperator(t, config)
	for _, err := range writes("early") {
		if !refused(err) {
			t.Errorf("before leading: want ErrLeaseLost, got %v", err)
		}
	}
	if err := errors.Join(read(), send(http.MethodGet)); err != nil {
		t.Errorf("before leading, reading: %v", err)
	}
	running := run(t, o)
	operatortest.Eventually(t, "the fence opens", deps.Fence.Check)
	if err := errors.Join(append(writes("leading"), read(), send(http.MethodGet))...); err != nil {
		t.Errorf("leading: %v", err)
	}

	r.steal("thief")
	if err := running.wait(); !refused(err) {
		t.Errorf("want ErrLeaseLost, got %v", err)
	}
	before := len(begun.all())
	for _, err := range append(writes("late"), read(), send(http.MethodGet)) {
		if !refused(err) {
			t.Errorf("after the loss: want ErrLeaseLost, got %v", err)
		}
	}
	if late := begun.all()[before:]; len(late) > 0 {
		t.Errorf("requests began after the loss: %q", late)
	}
	config.Name, config.Logger, config.Registry = "another", quiet(t), nil
	if _, err := operator.New(config); !framework.IsInvalidConfig(err) {
		t.Errorf("a second operator behind the fence of the first: want an error for which IsInvalidConfig holds, got %v", err)
	}
}

func TestR17AFenceThatIsNotThatOfTheConnectionIsRefused(t *testing.T) {
	deps := newDependencies(t, operator.DependenciesConfig{RESTConfig: operatortest.Start(t).RESTConfig()})
	_, err := operator.New(operator.Config{
		Name: "test", Logger: quiet(t), RESTConfig: deps.RESTConfig, Frameworks: []*framework.Framework{newFramework(t, "f", pushed(t, "objects"), nil)},
		LeaderElection: operator.LeaderElectionConfig{Enabled: true, Namespace: "default", Fence: operator.NewFence()},
	})
	want := "LeaderElection.Fence must be the one that RESTConfig has already: leave it empty"
	if !framework.IsInvalidConfig(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("want an error with %q, got %v", want, err)
	}
}

func TestR17ALeaseDurationWithAFractionOfASecondIsRefused(t *testing.T) {
	_, err := operator.New(operator.Config{
		Name: "test", Logger: quiet(t), RESTConfig: operatortest.Start(t).RESTConfig(), Frameworks: []*framework.Framework{newFramework(t, "f", pushed(t, "objects"), nil)},
		LeaderElection: operator.LeaderElectionConfig{
			Enabled: true, Namespace: "default", LeaseDuration: 1900 * time.Millisecond, RenewDeadline: 1500 * time.Millisecond, RetryPeriod: 100 * time.Millisecond,
		},
	})
	want := "LeaderElection.LeaseDuration must be in whole seconds, one at least, is 1.9s"
	if !framework.IsInvalidConfig(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("want an error with %q, got %v", want, err)
	}
}

func TestR17ALeaderThatSeesThatItsLeaseIsGoneEndsItsWorkAtOnce(t *testing.T) {
	tests := []struct {
		name string
		take func(r *replicas)
		want string
	}{
		{"taken", func(r *replicas) { r.steal("thief") }, `it is held by "thief"`},
		{"given to nobody", func(r *replicas) { r.steal("") }, "nobody holds it any more"},
		{"deleted", func(r *replicas) {
			if err := r.client.Delete(r.t.Context(), r.lease()); err != nil {
				r.t.Fatal(err)
			}
		}, "it was deleted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newReplicas(t)
			r.create("first")
			started := make(chan struct{})
			// A deadline that the test does not wait for.
			config := r.election("a", nil)
			config.LeaseDuration, config.RenewDeadline = time.Hour, 50*time.Minute
			o := newOperator(t, operator.Config{
				RESTConfig: r.instance.RESTConfig(), LeaderElection: config,
				Frameworks: []*framework.Framework{newFramework(t, "configmaps", configMaps(t, r.client, r.namespace), func(ctx context.Context, obj any) error {
					if obj.(client.Object).GetName() == "first" {
						close(started)
						<-ctx.Done()
					}
					return ctx.Err()
				})},
			})
			running := run(t, o)
			waitFor(t, started)
			tt.take(r)
			err := running.wait()
			if !errors.Is(err, operator.ErrLeaseLost) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("want ErrLeaseLost with %q, got %v", tt.want, err)
			}
		})
	}
}

func TestR17AReplicaWaitsForWhoMayStillWorkUnderALeaseThatWasDeleted(t *testing.T) {
	r := newReplicas(t)
	var work journal
	replica := func(identity string) *running {
		return run(t, newOperator(t, operator.Config{
			RESTConfig: r.instance.RESTConfig(), Logger: logTo(t, &work), LeaderElection: r.shortly(identity),
			Frameworks: []*framework.Framework{newFramework(t, "f", pushed(t, "objects"), nil)},
			Runnables: []operator.Runnable{{Name: "work", Run: func(ctx context.Context) error {
				work.add(identity + " begins")
				<-ctx.Done()
				work.add(identity + " ends")
				return nil
			}}},
		}))
	}
	a := replica("a")
	operatortest.Eventually(t, "a works", func() bool { return work.contains("a begins") })
	b := replica("b")
	operatortest.Eventually(t, "b knows the lease of a", func() bool { return work.contains("Failed to acquire lease") })
	if err := r.client.Delete(t.Context(), r.lease()); err != nil {
		t.Fatal(err)
	}
	if err := a.wait(); !errors.Is(err, operator.ErrLeaseLost) {
		t.Errorf("want ErrLeaseLost, got %v", err)
	}
	operatortest.Eventually(t, "b works", func() bool { return work.contains("b begins") })
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	order := slices.DeleteFunc(work.all(), func(entry string) bool { return strings.HasSuffix(entry, "\n") })
	if want := []string{"a begins", "a ends", "b begins", "b ends"}; !slices.Equal(order, want) {
		t.Errorf("got %q, want %q", order, want)
	}
	if !work.contains("was deleted: who held it may work for another") {
		t.Error("b does not say what it waits for")
	}
}

// deaf is an operator with one reconciliation, or one runnable, that ignores the end of its context
// until the test ends.
func deaf(t *testing.T, r *replicas, inRunnable bool) (o *operator.Operator, started chan struct{}, fence *operator.Fence, registry *prometheus.Registry) {
	t.Helper()
	started, release := make(chan struct{}), make(chan struct{})
	ended := make(chan struct{})
	ignore := func() error {
		defer close(ended)
		close(started)
		<-release
		return nil
	}
	t.Cleanup(func() {
		close(release)
		<-ended
	})
	config := framework.Config{
		Name: "f", Source: pushed(t, "objects"), Logger: quiet(t), DisableFinalizer: true, ShutdownTimeout: -1, CancelTimeout: 100 * time.Millisecond,
	}
	runnables := []operator.Runnable{{Name: "quick", Run: func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	}}}
	if inRunnable {
		runnables = append(runnables, operator.Runnable{Name: "deaf", Run: func(context.Context) error { return ignore() }})
		config.Resources = []framework.Resource{&resource{}}
	} else {
		config.Resources = []framework.Resource{&resource{func(context.Context, any) error { return ignore() }}}
	}
	f, err := framework.New(config)
	if err != nil {
		t.Fatal(err)
	}
	election := r.election("a", operator.NewFence())
	registry = prometheus.NewRegistry()
	return newOperator(t, operator.Config{
		RESTConfig: r.instance.RESTConfig(), LeaderElection: election, Frameworks: []*framework.Framework{f}, Runnables: runnables,
		Registry: registry, ShutdownTimeout: 100 * time.Millisecond, ListenAddress: "127.0.0.1:0",
	}), started, election.Fence, registry
}

func TestR17RunReturnsAnErrorThatNamesWhatIgnoresItsContextAndLetsTheLeaseRunOut(t *testing.T) {
	const step = `framework "f": run framework "f": still running 100ms after its context was cancelled: object default/a: resource "resource": ensure created for `
	const runnable = `still running 100ms after it was told to end: runnable "deaf"`
	stop := func(_ *replicas, running *running) { running.cancel() }
	lose := func(r *replicas, _ *running) { r.steal("thief") }
	tests := []struct {
		name       string
		inRunnable bool
		end        func(*replicas, *running)
		want       string
		holder     string
	}{
		{"a step, stopped", false, stop, step, "a"},
		{"a step, without its lease", false, lose, step, "thief"},
		{"a runnable, stopped", true, stop, runnable, "a"},
		{"a runnable, without its lease", true, lose, runnable, "thief"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newReplicas(t)
			o, started, fence, registry := deaf(t, r, tt.inRunnable)
			running := run(t, o)
			waitFor(t, started)
			if got := leading(t, registry); got != 1 {
				t.Errorf("the gauge is %v before the end, want 1", got)
			}
			tt.end(r, running)
			err := running.wait()
			if !errors.Is(err, framework.ErrStillRunning) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("want ErrStillRunning with %q, got %v", tt.want, err)
			}
			if err := fence.Check(); !errors.Is(err, operator.ErrLeaseLost) {
				t.Errorf("the fence: want ErrLeaseLost, got %v", err)
			}
			if got := r.holder(); got != tt.holder {
				t.Errorf("the lease is held by %q, want %q", got, tt.holder)
			}
			if got := leading(t, registry); got != 0 {
				t.Errorf("the gauge is %v, want 0", got)
			}
			if response, err := http.Get("http://" + o.Addr().String() + "/healthz"); err == nil {
				_ = response.Body.Close()
				if response.StatusCode == http.StatusOK {
					t.Error("/healthz answers that all is well")
				}
			}
		})
	}
}

func TestHealthFailsWhileAWorkerIsInOneStepForTooLong(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	o := newOperator(t, operator.Config{
		Frameworks: []*framework.Framework{newFramework(t, "f", pushed(t, "objects"), func(context.Context, any) error {
			close(started)
			waitFor(t, release)
			return nil
		})},
		StepTimeout: 50 * time.Millisecond, ListenAddress: "127.0.0.1:0",
	})
	r := run(t, o)
	waitFor(t, started)
	operatortest.Eventually(t, "that it is told", func() bool {
		status, body := get(t, o, "/healthz")
		return status == 503 && strings.HasPrefix(body, `framework "f": object default/a: resource "resource": ensure created for `) &&
			strings.HasSuffix(body, ", which is longer than 50ms\n")
	})
	close(release)
	operatortest.Eventually(t, "that it is over", func() bool {
		status, _ := get(t, o, "/healthz")
		return status == 200
	})
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}
