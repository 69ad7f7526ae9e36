package operator_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/pollinformer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

var errBroken = errors.New("broken")

func TestBadConfigurationNamesEveryFault(t *testing.T) {
	f := newFramework(t, "websites", pushed(t, "websites"), nil)
	good := operator.Config{Name: "test", Logger: quiet(t), Frameworks: []*framework.Framework{f}}
	tests := []struct {
		name   string
		change func(*operator.Config)
		want   string
	}{
		{"everything", func(c *operator.Config) { *c = operator.Config{} },
			"Name must not be empty; Logger must not be nil; Frameworks must not be empty"},
		{"no connection", func(c *operator.Config) {
			c.CRDs = []*apiextensionsv1.CustomResourceDefinition{nil}
			c.LeaderElection = operator.LeaderElectionConfig{Enabled: true, Namespace: "default"}
		}, "RESTConfig must not be nil when CRDs are set; RESTConfig must not be nil when LeaderElection is enabled; CRDs[0] must not be nil"},
		{"one name for two frameworks", func(c *operator.Config) { c.Frameworks = append(c.Frameworks, nil, f) },
			`Frameworks[1] must not be nil; Frameworks[2] must not have the name "websites" of an earlier one`},
		{"one name for two sources", func(c *operator.Config) { c.Sources = []informer.Source{pushed(t, "websites")} },
			`two sources are named "websites": use one for both, or name them apart`},
		{"a nil source", func(c *operator.Config) { c.Sources = []informer.Source{nil} }, "Sources[0] must not be nil"},
		{"a lock that is not in Kubernetes needs no connection and has a name", func(c *operator.Config) {
			c.LeaderElection = operator.LeaderElectionConfig{Enabled: true, Lock: &resourcelock.LeaseLock{}, Name: "a", Identity: "b"}
		}, "LeaderElection.Namespace, Name and Identity must be empty when Lock is set, which has its own"},
		{"faulty runnables", func(c *operator.Config) {
			run := func(context.Context) error { return nil }
			c.Runnables = []operator.Runnable{{Name: "a"}, {Run: run}, {Name: "a", Run: run}}
		}, `Runnables[0] must have a Name and a Run; Runnables[1] must have a Name and a Run; Runnables[2] must not have the name "a" of an earlier one`},
		{"times of the election", func(c *operator.Config) {
			c.RESTConfig = &rest.Config{}
			c.LeaderElection = operator.LeaderElectionConfig{Enabled: true, LeaseDuration: time.Millisecond, RenewDeadline: time.Second, RetryPeriod: time.Second}
		}, "LeaderElection.Namespace must not be empty; LeaderElection.LeaseDuration must be in whole seconds, one at least, is 1ms; " +
			"LeaderElection.RenewDeadline must be less than LeaseDuration (1ms), is 1s; " +
			"LeaderElection.RetryPeriod times 1.2 must be less than RenewDeadline (1s), is 1s"},
		{"name of the lease", func(c *operator.Config) {
			c.RESTConfig = &rest.Config{}
			c.LeaderElection = operator.LeaderElectionConfig{Enabled: true, Namespace: "default", Name: "a/b"}
		}, `LeaderElection.Name "a/b" can't be that of a Lease: ` + strings.Join(validation.IsDNS1123Subdomain("a/b"), "")},
		{"former names", func(c *operator.Config) { c.FormerNames = []string{"before", "test", ""} },
			`FormerNames[1] must be another name than "test"; FormerNames[2] must be another name than "test"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			config := good
			tt.change(&config)
			_, err := operator.New(config)
			if !framework.IsInvalidConfig(err) {
				t.Fatalf("IsInvalidConfig(%v) = false", err)
			}
			if diff := cmp.Diff("invalid config: operator.Config: "+tt.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAddressOfTheListenerIsLogged(t *testing.T) {
	log := &journal{}
	o, err := operator.New(operator.Config{
		Name: "test", Logger: logTo(t, log), ListenAddress: "127.0.0.1:0",
		Frameworks: []*framework.Framework{newFramework(t, "websites", pushed(t, "websites"), nil)},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	get(t, o, "/healthz")
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("serving health and metrics operator=test address=%s", o.Addr()); !log.contains(want) {
		t.Errorf("the log lacks %q: %v", want, log.all())
	}
}

// watched is a source that records whether it was run, and ends when the test decides.
type watched struct {
	*informer.Push
	ran atomic.Bool
	run func(ctx context.Context) error
}

func (w *watched) Run(ctx context.Context) error {
	w.ran.Store(true)
	if w.run != nil {
		return w.run(ctx)
	}
	return w.Push.Run(ctx)
}

func TestTakenPortIsAnErrorBeforeAnythingElse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	source := &watched{Push: pushed(t, "objects")}
	o := newOperator(t, operator.Config{
		Frameworks:    []*framework.Framework{newFramework(t, "f", source, nil)},
		ListenAddress: listener.Addr().String(),
	})
	err = o.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "address already in use: choose another ListenAddress, or none") {
		t.Errorf("want an error about the address, got %v", err)
	}
	if source.ran.Load() {
		t.Error("the source was run")
	}
}

func TestOperatorRunsOnce(t *testing.T) {
	o := newOperator(t, operator.Config{Frameworks: []*framework.Framework{newFramework(t, "f", pushed(t, "objects"), nil)}})
	if err := run(t, o).stop(); err != nil {
		t.Fatal(err)
	}
	if err := o.Run(t.Context()); !framework.IsExecutionFailed(err) {
		t.Errorf("want an error for which IsExecutionFailed holds, got %v", err)
	}
}

func TestFailureOfAPartStopsTheOthersCleanlyAndAllErrorsAreTold(t *testing.T) {
	tests := []struct {
		name string
		fail func() error
		want string
	}{
		{"an error", func() error { return errBroken }, `source "extra": broken`},
		{"a panic", func() error { panic(errBroken) }, `source "extra": panic: value of type *errors.errorString in `},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			started, finished := make(chan struct{}), false
			release := make(chan struct{})
			source := pushed(t, "objects")
			f := newFramework(t, "f", source, func(context.Context, any) error {
				close(started)
				waitFor(t, release)
				finished = true
				return nil
			})
			extra := &watched{Push: informer.NewPush("extra"), run: func(context.Context) error {
				<-started
				defer close(release)
				return tt.fail()
			}}
			o := newOperator(t, operator.Config{Frameworks: []*framework.Framework{f}, Sources: []informer.Source{extra}})
			err := run(t, o).wait()
			if !errors.Is(err, errBroken) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("want an error with %q, got %v", tt.want, err)
			}
			if !finished {
				t.Error("the reconciliation under way did not end")
			}
		})
	}
}

func TestErrorsOfSeveralPartsAreJoined(t *testing.T) {
	errOther := errors.New("other")
	var both sync.WaitGroup
	both.Add(2)
	failing := func(name string, err error) *watched {
		return &watched{Push: informer.NewPush(name), run: func(context.Context) error {
			both.Done()
			both.Wait()
			return err
		}}
	}
	o := newOperator(t, operator.Config{
		Frameworks: []*framework.Framework{newFramework(t, "f", pushed(t, "objects"), nil)},
		Sources:    []informer.Source{failing("a", errBroken), failing("b", errOther)},
	})
	err := run(t, o).wait()
	if !errors.Is(err, errBroken) || !errors.Is(err, errOther) {
		t.Errorf("want both errors, got %v", err)
	}
}

func TestReadyOnceTheSourcesAreSyncedAndSaysWhichAreNot(t *testing.T) {
	var up atomic.Bool
	source, err := pollinformer.New(pollinformer.Config[string]{
		Name: "inventory", Interval: 10 * time.Millisecond, Logger: quiet(t),
		List: func(context.Context) (map[informer.Key]string, error) {
			if !up.Load() {
				return nil, errBroken
			}
			return nil, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	o := newOperator(t, operator.Config{
		Frameworks:    []*framework.Framework{newFramework(t, "f", pushed(t, "objects"), nil)},
		Sources:       []informer.Source{source},
		ListenAddress: "127.0.0.1:0",
	})
	r := run(t, o)
	operatortest.Eventually(t, "the error of the source", func() bool {
		status, body := get(t, o, "/readyz")
		return status == 503 && strings.HasPrefix(body, "source inventory is not synced: ") && strings.Contains(body, "broken")
	})
	if status, body := get(t, o, "/healthz"); status != 200 || body != "ok\n" {
		t.Errorf("healthz: %d %q, want 200 ok", status, body)
	}
	up.Store(true)
	operatortest.Eventually(t, "readiness", func() bool {
		status, body := get(t, o, "/readyz")
		return status == 200 && body == "ok\n"
	})
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

func TestMetricsAreServed(t *testing.T) {
	registry := prometheus.NewRegistry()
	f, err := framework.New(framework.Config{
		Name: "websites", Source: pushed(t, "websites"), Logger: quiet(t), Registerer: registry,
		ResourceRouter: routerOf(t, &resource{}), DisableFinalizer: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	o := newOperator(t, operator.Config{Frameworks: []*framework.Framework{f}, Registry: registry, ListenAddress: "127.0.0.1:0"})
	r := run(t, o)
	operatortest.Eventually(t, "that it leads", func() bool {
		_, body := get(t, o, "/metrics")
		return strings.Contains(body, `operatorkit_operator_leading{operator="test"} 1`) &&
			strings.Contains(body, `framework="websites"`)
	})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
	if got := testutil.CollectAndCount(registry, "operatorkit_operator_leading"); got != 1 {
		t.Errorf("operatorkit_operator_leading is there %d times, want once", got)
	}
}

func TestTwoOperatorsCanShareARegistryUnlessTheyAreOfOneName(t *testing.T) {
	registry := prometheus.NewRegistry()
	config := func(name string) operator.Config {
		f := newFramework(t, name, pushed(t, name), nil)
		return operator.Config{Name: name, Logger: quiet(t), Frameworks: []*framework.Framework{f}, Registry: registry}
	}
	newOperator(t, config("a"))
	newOperator(t, config("b"))
	if _, err := operator.New(config("a")); !framework.IsInvalidConfig(err) {
		t.Errorf("want an error for which IsInvalidConfig holds, got %v", err)
	}
}
