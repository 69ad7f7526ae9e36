package operatortest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Scenario is a story about an operator and its user: what the user does, and what
// has to come of it. [CrashAtEveryWrite] tells it again and again, each time with
// the operator crashing at another point. A scenario is used by several goroutines
// when Parallel is more than 1.
//
//	operatortest.CrashAtEveryWrite(t, operatortest.Scenario{
//		Name:   "website",
//		Scheme: scheme,
//		Start: func(ctx context.Context, cfg *rest.Config, namespace string) error {
//			return newOperator(cfg, namespace).Run(ctx)
//		},
//		Phases: []operatortest.Phase{
//			{Name: "create", Do: operatortest.Create(website), Until: pageIs("hello")},
//			{Name: "change", Do: setText("bye"), Until: pageIs("bye")},
//			{Name: "delete", Do: operatortest.Delete(website), Until: operatortest.Gone(website, page)},
//		},
//		Objects: []client.Object{&v1alpha1.Website{}, &corev1.ConfigMap{}},
//	})
type Scenario struct {
	// Name names the scenario in reports. Required.
	Name string

	// Start runs the operator until ctx ends; it is called anew after each crash,
	// and must then know nothing of the time before. Everything the operator
	// does must go through clients made from cfg, which is its own, and stay in
	// the namespace, which is the run's. The error is looked at only when Start
	// returns without ctx having ended, which fails the run. Required.
	//
	// Clients of other systems send through [TransportOf]. The package commandtest
	// makes a Start of the configuration of a command.
	//
	// An operator that holds a lease waits for it after a crash: leave leader
	// election out.
	Start func(ctx context.Context, cfg *rest.Config, namespace string) error

	// Neighbour runs a second operator beside the first in every run, on the same
	// objects or others in the same namespace: the same one under another name, or
	// another one with the same names. It meets no mishaps. What one of the two has
	// created the other must not change or delete; it fails the run. What the user has created
	// belongs to both. Write Until so that both have done their work. Default: none.
	Neighbour func(ctx context.Context, cfg *rest.Config, namespace string) error

	// NeighbourAfter is waited for before the neighbour is started. Where the one of two operators has an object that comes first,
	// runs end alike only if that is always the same one. A run in which it never holds fails. Default: the neighbour is there
	// from the beginning.
	NeighbourAfter Step

	// Phases are gone through in order, beginning when the operator has been
	// started. At least one is required.
	Phases []Phase

	// Objects has an object of each kind that belongs to the final state; only
	// their types (and for unstructured ones their kinds) matter. All objects of
	// these kinds in the run's namespace are compared. The kinds are namespaced.
	Objects []client.Object

	// List returns further objects of the state to compare, such as
	// cluster-scoped ones. Objects or List is required.
	List func(ctx context.Context, user client.Client, namespace string) ([]client.Object, error)

	// Normalize may change an object before it is compared, for example to drop a
	// field that differs from run to run by nature. What differs for every object
	// is dropped already; see [CrashAtEveryWrite]. It sees Secrets in the clear.
	Normalize func(*unstructured.Unstructured)

	// Tenant is what a user with rights in the namespace may do at any time without meaning well, such as TakeFinalizers. Only
	// [TenantAtEveryWrite] calls it. Default: none.
	Tenant Step

	// Deployed is the operator as its manifests have it, for [Rights]. The package commandtest fills it in. Default: none.
	Deployed *Deployed

	// Cleanup is called at the end of each run, failed or not, after the operator
	// has ended. The run's namespace goes by itself: it is for what is outside.
	Cleanup Step

	// Scheme knows the types of Objects and those used by the phases. The default
	// has the types of Kubernetes.
	Scheme *runtime.Scheme

	// Config is the API server's. The default is that of [Start]. Clients of the
	// operator are not throttled unless QPS or RateLimiter is set here.
	Config *rest.Config

	// Uncounted replaces the writes that are no crash points, as the option of
	// the same name does; nil is the default: leases and events.
	Uncounted []Match

	// Settle is how long nothing may be written for a state to count as final
	// where a state is not expected (in the runs without a crash) or where the
	// operator has just been started anew. A state that is not the expected one
	// has twenty times as long to become it. The default is 500ms; an operator that
	// waits longer between its writes needs more.
	Settle time.Duration

	// Timeout bounds one phase, one start and one end of the operator, to find
	// those that hang. The default is one minute.
	Timeout time.Duration

	// Parallel is how many runs go on at once, each in its own namespace. The
	// default is 1, since operators often have something of the process's, such
	// as a port.
	Parallel int

	// Without are mishaps that there are none of, such as a way of lagging that the operator is known not to survive. Default: none.
	Without []Mishap

	// Sample has mishaps at a few points only: for crashes right before the first write, right
	// after the last one, and at three points between, every k-th.
	// They are the same each time, by the name. One run without a crash has to do,
	// where otherwise a second one shows that both end alike. [CrashAtEveryWrite]
	// sets it when tests run with -short. The default is every point.
	Sample bool
}

// Phase is something the user does and what comes of it.
type Phase struct {
	// Name names the phase in reports. The default is its number, from 1.
	Name string
	// Do is the user's part. It is called once; an error fails the run. The
	// operator may be writing, or crashing, meanwhile: change objects by patches.
	// Nil does nothing.
	Do Step
	// Until is called until it returns nil; its error says what is still missing.
	// It should look at all that the phase brings about. Required.
	Until Step
}

// Step is what a user does or looks at: user is a client that no fault touches,
// namespace the run's.
type Step func(ctx context.Context, user client.Client, namespace string) error

// CrashAtEveryWrite proves that an operator which may crash at any time still does
// its work: it fails t with a report that names each write at which it does not.
//
// The scenario first runs twice without a crash, which counts the operator's
// writes and shows that its final state is the same each time. Then it runs twice
// for each write: once with the operator ended right before the write, so that it
// is never sent, and once right after it, with the write carried out and its answer
// lost. To be ended means that from that moment no request of the operator gets
// through, under way or new; its context is cancelled, and once Start has returned,
// it is called anew, and the scenario goes on.
//
// After each phase the state must be what it was without a crash, except for what
// differs by nature: UIDs, resource versions, generations (an observed generation
// is "current" or "behind"), times, the namespace's name, names made from
// generateName, addresses and ports of Services. Data of Secrets is compared by
// digests, which differ between any two sweeps, and never shown. Objects whose owner
// is gone have to go before a state counts.
//
// With "go test -short" it crashes at a sample of the points: see Scenario.Sample. Each run with mishaps is a subtest that is named
// after them, so that one of them is played alone by, for example, go test -run 'TestWebsite/^crash_after_3$'.
//
// Which requests are writes: see [Faults].
func CrashAtEveryWrite(t testing.TB, scenario Scenario) {
	t.Helper()
	scenario.test(t, Crashes)
}

// LieAtEveryWrite is [CrashAtEveryWrite] with answers that lie instead of crashes: at each write a run in which the write is
// carried out and its answer lost, one in which the answer is 404, one with 409, and one with 500. The operator goes on.
func LieAtEveryWrite(t testing.TB, scenario Scenario) {
	t.Helper()
	scenario.test(t, Lies)
}

// BreakAtEveryWrite has crashes as [CrashAtEveryWrite] has, answers that lie, and second mishaps while the operator recovers from a
// crash: see [Mishaps]. It is for operators that others are to rely on.
func BreakAtEveryWrite(t testing.TB, scenario Scenario) {
	t.Helper()
	scenario.test(t, Mishaps)
}

// LagAtEveryWrite is [CrashAtEveryWrite] with an API server that lags behind instead of crashes: at each write runs in which the operator is
// restarted at a lagging replica, or in the past, and others in which events are held, dropped, repeated or reordered, an object is missing from
// a list, or watches are refused: see [Lags] and [Lag]. The server catches up once the operator has acted on what it sees.
//
// Beside another end a run fails when the operator deleted what has to stay, or set an object back to an earlier state, even when it made that
// good later. The operator has to find its objects by the watches of client-go or informers that are made of them; its clients get JSON.
func LagAtEveryWrite(t testing.TB, scenario Scenario) {
	t.Helper()
	scenario.test(t, Lags)
}

// TenantAtEveryWrite is [CrashAtEveryWrite] with Scenario.Tenant in the place of crashes, which is called once in each run, right after the
// write. The operator goes on, and has to come to the same end: with what the tenant took away it must neither leave something behind nor take
// something away from others.
func TenantAtEveryWrite(t testing.TB, scenario Scenario) {
	t.Helper()
	scenario.test(t, Tenants)
}

// Survives puts an operator that others are to rely on through all of it, each with a scenario of its own: as the subtest "mishaps" through
// [BreakAtEveryWrite], as "lags" through [LagAtEveryWrite], and as "quiet" through [Quiet]. The neighbour of the scenario is there for the
// mishaps; what follows is about the operator alone. With "go test -short" it leaves out the lags: each of their runs takes as long as
// one with a crash.
func Survives(t *testing.T, scenario func(*testing.T) Scenario) {
	t.Helper()
	alone := func(t *testing.T) Scenario {
		t.Helper()
		s := scenario(t)
		s.Neighbour, s.NeighbourAfter = nil, nil
		return s
	}
	t.Run("mishaps", func(t *testing.T) { BreakAtEveryWrite(t, scenario(t)) })
	t.Run("lags", func(t *testing.T) {
		if testing.Short() {
			t.Skip("left to make test-all: a run takes as long as one with a crash")
		}
		LagAtEveryWrite(t, alone(t))
	})
	t.Run("quiet", func(t *testing.T) { Quiet(t, alone(t)) })
}

func (s Scenario) test(t testing.TB, sweep Sweep) {
	t.Helper()
	s.Sample = s.Sample || testing.Short()
	if s.Config == nil {
		s.Config = Start(t).RESTConfig()
	}
	parent, _ := t.(interface {
		Run(name string, f func(*testing.T)) bool
	})
	each := func(name string, play func() (*Failure, error)) (err error) {
		if parent == nil {
			_, err = play()
			return err
		}
		parent.Run(name, func(t *testing.T) {
			var failure *Failure
			if failure, err = play(); err != nil {
				t.Fatal(err)
			}
			if failure != nil {
				t.Error(*failure)
			}
		})
		return err
	}
	report, err := reportOf(t.Context(), s, sweep, each)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(report.Summary())
	if parent == nil {
		for _, failure := range report.Failures {
			t.Error(failure)
		}
	}
}

// ReportOf goes through a sweep without a test: the scenario's Config is
// required. The error is for a scenario that cannot be judged: it is incomplete, it
// fails without any mishap, or ctx ended. What mishaps lead to is in the report.
func ReportOf(ctx context.Context, scenario Scenario, sweep Sweep) (*Report, error) {
	return reportOf(ctx, scenario, sweep, func(_ string, play func() (*Failure, error)) error {
		_, err := play()
		return err
	})
}

// reportOf is ReportOf that has each run with mishaps played by a function, under a name, or not at all.
func reportOf(ctx context.Context, scenario Scenario, sweep Sweep, each func(name string, play func() (*Failure, error)) error) (*Report, error) {
	scenario = scenario.withDefaults()
	if err := scenario.validate(); err != nil {
		return nil, fmt.Errorf("scenario %q: %w", scenario.Name, err)
	}
	if sweep == Tenants && scenario.Tenant == nil {
		return nil, fmt.Errorf("scenario %q: tenant must not be nil", scenario.Name)
	}
	s, err := newSweep(scenario)
	if err != nil {
		return nil, fmt.Errorf("scenario %q: %w", scenario.Name, err)
	}
	report, err := s.run(ctx, sweep, each)
	if err != nil {
		return nil, fmt.Errorf("scenario %q: %w", scenario.Name, err)
	}
	return report, nil
}

func (s Scenario) withDefaults() Scenario {
	if s.Scheme == nil {
		s.Scheme = clientgoscheme.Scheme
	}
	s.Settle = cmp.Or(s.Settle, 500*time.Millisecond)
	s.Timeout = cmp.Or(s.Timeout, time.Minute)
	s.Parallel = max(s.Parallel, 1)
	phases := make([]Phase, len(s.Phases))
	for i, phase := range s.Phases {
		phase.Name = cmp.Or(phase.Name, fmt.Sprint(i+1))
		phases[i] = phase
	}
	s.Phases = phases
	return s
}

func (s Scenario) validate() error {
	switch {
	case s.Name == "":
		return errors.New("name must not be empty")
	case s.Start == nil:
		return errors.New("start must not be nil")
	case len(s.Phases) == 0:
		return errors.New("phases must not be empty")
	case len(s.Objects) == 0 && s.List == nil:
		return errors.New("objects or list must be set, there is no state to compare otherwise")
	case s.Config == nil:
		return errors.New("config must not be nil")
	case s.Settle < 0 || s.Timeout < 0:
		return errors.New("settle and timeout must not be negative")
	}
	for _, phase := range s.Phases {
		if phase.Until == nil {
			return fmt.Errorf("until of phase %q must not be nil", phase.Name)
		}
	}
	return nil
}

func (s Scenario) faults() *Faults {
	if s.Uncounted == nil {
		return NewFaults()
	}
	return NewFaults(Uncounted(s.Uncounted...))
}
