package retryresource_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/giantswarm/micrologger"
	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/context/resourcecanceledcontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/panics"
	"github.com/operatorkit/operatorkit/resource/retryresource"
)

var errFlaky = errors.New("flaky")

// plain is a resource whose EnsureCreated is a function.
type plain struct {
	name   string
	ensure func(ctx context.Context, obj any) error
}

func (p *plain) Name() string                                     { return p.name }
func (p *plain) EnsureCreated(ctx context.Context, obj any) error { return p.ensure(ctx, obj) }
func (p *plain) EnsureDeleted(ctx context.Context, obj any) error { return p.ensure(ctx, obj) }

// crud records its steps and lets each fail a number of times.
type crud struct {
	mu       sync.Mutex
	steps    []framework.Step
	failures map[framework.Step]int
}

func (c *crud) step(s framework.Step) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps = append(c.steps, s)
	if c.failures[s] > 0 {
		c.failures[s]--
		return errFlaky
	}
	return nil
}

func (c *crud) Name() string { return "crud" }
func (c *crud) GetCurrentState(context.Context, string) (string, error) {
	return "current", c.step(framework.StepGetCurrentState)
}
func (c *crud) GetDesiredState(context.Context, string) (string, error) {
	return "desired", c.step(framework.StepGetDesiredState)
}
func (c *crud) NewUpdatePatch(context.Context, string, string, string) (*framework.TypedPatch[string], error) {
	patch := framework.NewTypedPatch[string]()
	patch.SetCreateChange("create")
	patch.SetUpdateChange("update")
	patch.SetDeleteChange("delete")
	return patch, c.step(framework.StepNewUpdatePatch)
}
func (c *crud) NewDeletePatch(context.Context, string, string, string) (*framework.TypedPatch[string], error) {
	return nil, c.step(framework.StepNewDeletePatch)
}
func (c *crud) ApplyCreateChange(context.Context, string, string) error {
	return c.step(framework.StepApplyCreateChange)
}
func (c *crud) ApplyUpdateChange(context.Context, string, string) error {
	return c.step(framework.StepApplyUpdateChange)
}
func (c *crud) ApplyDeleteChange(context.Context, string, string) error {
	return c.step(framework.StepApplyDeleteChange)
}

func logger(t *testing.T) micrologger.Logger {
	t.Helper()
	l, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func wrap(t *testing.T, r framework.Resource, factory func() backoff.BackOff) []framework.Resource {
	t.Helper()
	resources, err := retryresource.Wrap([]framework.Resource{r}, retryresource.Config{Logger: logger(t), BackOffFactory: factory})
	if err != nil {
		t.Fatal(err)
	}
	return resources
}

func TestWrapNamesWhatIsWrong(t *testing.T) {
	for name, tc := range map[string]struct {
		resources []framework.Resource
		config    retryresource.Config
		want      string
	}{
		"no logger": {
			want: "invalid config: retryresource.Config: Logger must not be nil",
		},
		"nil resource": {
			resources: []framework.Resource{&plain{}, nil},
			config:    retryresource.Config{Logger: logger(t)},
			want:      "invalid config: retryresource.Config: resources[1] must not be nil",
		},
		"nil pointer": {
			resources: []framework.Resource{&plain{}, (*framework.CRUDResource)(nil)},
			config:    retryresource.Config{Logger: logger(t)},
			want:      "invalid config: retryresource.Config: resources[1] must not be nil",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := retryresource.Wrap(tc.resources, tc.config)
			if !framework.IsInvalidConfig(err) {
				t.Fatalf("got %v, want an invalid config", err)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOnlyTheFailedStepOfACRUDResourceIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ops := &crud{failures: map[framework.Step]int{
			framework.StepGetDesiredState: 2, framework.StepApplyUpdateChange: 1,
		}}
		r, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[string, string]{Logger: logger(t), Ops: ops})
		if err != nil {
			t.Fatal(err)
		}
		if err := framework.ProcessUpdate(t.Context(), "x", wrap(t, r, nil)); err != nil {
			t.Fatal(err)
		}
		want := []framework.Step{
			framework.StepGetCurrentState,
			framework.StepGetDesiredState, framework.StepGetDesiredState, framework.StepGetDesiredState,
			framework.StepNewUpdatePatch,
			framework.StepApplyCreateChange,
			framework.StepApplyUpdateChange, framework.StepApplyUpdateChange,
			framework.StepApplyDeleteChange,
		}
		if diff := cmp.Diff(want, ops.steps); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWrappingLeavesTheGivenResourceAlone(t *testing.T) {
	ops := &crud{failures: map[framework.Step]int{framework.StepGetCurrentState: 1}}
	r, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[string, string]{Logger: logger(t), Ops: ops})
	if err != nil {
		t.Fatal(err)
	}
	wrap(t, r, nil)
	if err := framework.ProcessUpdate(t.Context(), "x", []framework.Resource{r}); !errors.Is(err, errFlaky) {
		t.Errorf("got %v from the unwrapped resource, want its first error", err)
	}
}

func TestADeletionOfAPlainResourceIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		r := &plain{name: "plain", ensure: func(context.Context, any) error {
			if calls++; calls < 3 {
				return errFlaky
			}
			return nil
		}}
		if err := framework.ProcessDelete(t.Context(), "x", wrap(t, r, nil)); err != nil || calls != 3 {
			t.Errorf("got %v after %d calls, want success after 3", err, calls)
		}
	})
}

func TestWithoutConfigurationRetryingEndsAfterTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts []time.Duration
		start := time.Now()
		r := &plain{name: "plain", ensure: func(context.Context, any) error {
			attempts = append(attempts, time.Since(start))
			return errFlaky
		}}
		err := framework.ProcessUpdate(t.Context(), "x", wrap(t, r, nil))
		if !errors.Is(err, errFlaky) {
			t.Fatalf("got %v, want the step's own error", err)
		}
		if len(attempts) < 5 {
			t.Errorf("tried %d times, want several", len(attempts))
		}
		if first := attempts[1]; first < 50*time.Millisecond || first > 150*time.Millisecond {
			t.Errorf("first wait is %s, want 100ms ±50%%", first)
		}
		if last := attempts[len(attempts)-1]; last > retryresource.DefaultMaxElapsedTime {
			t.Errorf("last attempt after %s, want none after %s", last, retryresource.DefaultMaxElapsedTime)
		}
	})
}

func TestEveryCallOfAStepHasABackoffOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		factories := 0
		factory := func() backoff.BackOff {
			mu.Lock()
			defer mu.Unlock()
			factories++
			return backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Second), 2)
		}
		tries := map[any]int{}
		resources := wrap(t, &plain{name: "plain", ensure: func(_ context.Context, obj any) error {
			mu.Lock()
			defer mu.Unlock()
			tries[obj]++
			return errFlaky
		}}, factory)

		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() { _ = framework.ProcessUpdate(t.Context(), i, resources) })
		}
		wg.Wait()
		if factories != 10 {
			t.Errorf("made %d backoffs for 10 calls", factories)
		}
		for obj, n := range tries {
			if n != 3 {
				t.Errorf("object %v was tried %d times, want 3", obj, n)
			}
		}
	})
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
		defer cancel()
		start := time.Now()
		forever := func() backoff.BackOff { return backoff.NewConstantBackOff(time.Hour) }
		err := framework.ProcessUpdate(ctx, "x", wrap(t, &plain{name: "plain", ensure: func(context.Context, any) error { return errFlaky }}, forever))
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errFlaky) {
			t.Errorf("got %v, want the context's error and the step's last one", err)
		}
		if took := time.Since(start); took != 90*time.Minute {
			t.Errorf("ended after %s, want 90m", took)
		}
	})
}

func TestWhatIsNotRetried(t *testing.T) {
	permanent := framework.Permanent(errFlaky)
	for name, tc := range map[string]struct {
		ensure func(ctx context.Context) error
		check  func(err error) bool
	}{
		"a permanent error, which stays permanent": {
			ensure: func(context.Context) error { return permanent },
			check:  func(err error) bool { return framework.IsPermanent(err) && errors.Is(err, errFlaky) },
		},
		"a wrapped permanent error, which keeps its words": {
			ensure: func(context.Context) error { return fmt.Errorf("talking to it: %w", permanent) },
			check: func(err error) bool {
				return framework.IsPermanent(err) && err.Error() ==
					`update of string: resource "plain": ensure created: talking to it: flaky`
			},
		},
		"a panic": {
			ensure: func(context.Context) error { panic("broken") },
			check:  func(err error) bool { return errors.As(err, new(*panics.Error)) },
		},
		"a step that cancelled its resource": {
			ensure: func(ctx context.Context) error { resourcecanceledcontext.SetCanceled(ctx); return errFlaky },
			check:  func(err error) bool { return errors.Is(err, errFlaky) },
		},
		"a step that cancelled its reconciliation": {
			ensure: func(ctx context.Context) error { reconciliationcanceledcontext.SetCanceled(ctx); return errFlaky },
			check:  func(err error) bool { return errors.Is(err, errFlaky) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				r := &plain{name: "plain", ensure: func(ctx context.Context, _ any) error {
					calls++
					return tc.ensure(ctx)
				}}
				err := framework.ProcessUpdate(t.Context(), "x", wrap(t, r, nil))
				if !tc.check(err) {
					t.Errorf("got %v", err)
				}
				if calls != 1 {
					t.Errorf("called %d times, want once", calls)
				}
			})
		})
	}
}

func TestAPermanentErrorEndsEarlierRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		r := &plain{name: "plain", ensure: func(context.Context, any) error {
			if calls++; calls == 2 {
				return framework.Permanent(errFlaky)
			}
			return errors.New("first")
		}}
		err := framework.ProcessUpdate(t.Context(), "x", wrap(t, r, nil))
		if !framework.IsPermanent(err) || calls != 2 {
			t.Errorf("got %v after %d calls, want a permanent error after 2", err, calls)
		}
	})
}

func TestNestedWrappersMultiplyAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		once := func() backoff.BackOff { return backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Second), 1) }
		inner := wrap(t, &plain{name: "plain", ensure: func(context.Context, any) error { calls++; return errFlaky }}, once)
		outer := wrap(t, inner[0], once)
		if err := framework.ProcessUpdate(t.Context(), "x", outer); !errors.Is(err, errFlaky) || calls != 4 {
			t.Errorf("got %v after %d calls, want 4 failing ones", err, calls)
		}
	})
}
