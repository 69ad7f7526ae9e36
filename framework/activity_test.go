package framework_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

// deaf is a source that ignores the end of its context.
type deaf struct {
	*informer.Push
	block func()
}

func (d *deaf) Run(context.Context) error {
	d.block()
	return nil
}

func TestR17RunReturnsAnErrorThatNamesWhatIgnoresTheEndOfItsContext(t *testing.T) {
	const begin = `run framework "websites": still running 20s after its context was cancelled: `
	type set = framework.ResourceSetConfig
	blocked := func(block func()) framework.Resource {
		return pagesOf(func(context.Context, *corev1.ConfigMap) (any, error) { block(); return nil, nil })
	}
	tests := map[string]struct {
		make func(block func()) (framework.Config, []set)
		want string
	}{
		"a resource": {func(block func()) (framework.Config, []set) {
			created := func(context.Context, any) error { block(); return nil }
			return framework.Config{}, []set{{Resources: []framework.Resource{&resource{name: "slow", created: created}}}}
		}, `object default/a: resource "slow": ensure created for 1m30s`},
		"a step of a CRUD resource": {func(block func()) (framework.Config, []set) {
			created := &ops{name: "pages", calls: &journal{}, on: func(_ context.Context, step framework.Step) error {
				if step == framework.StepApplyUpdateChange {
					block()
				}
				return nil
			}}
			return framework.Config{}, []set{{Resources: []framework.Resource{crud(t, created)}}}
		}, `object default/a: resource "pages": apply update change for 1m30s`},
		"between two steps": {func(block func()) (framework.Config, []set) {
			init := func(ctx context.Context, _ any) (context.Context, error) { block(); return ctx, nil }
			return framework.Config{InitCtx: init}, []set{{Resources: []framework.Resource{settled()}}}
		}, `object default/a for 1m30s`},
		"a shadow": {func(block func()) (framework.Config, []set) {
			return framework.Config{}, []set{{Resources: []framework.Resource{settled()}}, {Name: "v2", Shadow: true, Resources: []framework.Resource{blocked(block)}}}
		}, `shadows of object default/a for 1m29s`},
		"a source": {func(block func()) (framework.Config, []set) {
			return framework.Config{Source: &deaf{informer.NewPush("deaf"), block}}, []set{{Resources: []framework.Resource{settled()}}}
		}, `a source, or the Informer`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				config, sets := tt.make(func() { <-release })
				config.Name, config.ShutdownTimeout, config.CancelTimeout = "websites", 10*time.Second, 20*time.Second
				source := informer.NewPush("objects")
				if config.Source == nil {
					config.Source = source
				}
				config.ResourceRouter = routerOf(t, sets...)
				f := newFramework(t, config)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- f.Run(ctx) }()
				put(t, source, configMap("a"))
				time.Sleep(time.Minute)
				synctest.Wait()
				cancel()
				err := <-ended
				if !errors.Is(err, framework.ErrStillRunning) {
					t.Fatalf("got %v, want ErrStillRunning", err)
				}
				if diff := cmp.Diff(begin+tt.want+": return when the context ends", err.Error()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestAStepThatWaitsOnPurposeIsNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		f := newFramework(t, framework.Config{Source: source}, &resource{name: "r", created: func(ctx context.Context, _ any) error {
			time.Sleep(time.Minute)
			short, long := framework.BeginWait(ctx, time.Hour), framework.BeginWait(ctx, 3*time.Hour)
			time.Sleep(30 * time.Minute)
			short()
			short() // It ends its own wait, and only once.
			time.Sleep(3 * time.Hour)
			long()
			time.Sleep(time.Hour)
			return nil
		}})
		defer running(t, f)()
		put(t, source, configMap("a"))
		synctest.Wait()
		for _, tc := range []struct{ sleep, stuck time.Duration }{
			{30 * time.Second, 30 * time.Second},
			{time.Minute, 0},
			{2 * time.Hour, 0},
			{time.Hour, 30 * time.Second}, // It waits for longer than it said.
			{50 * time.Minute, 20*time.Minute + 30*time.Second},
		} {
			time.Sleep(tc.sleep)
			if got := f.Activities(); len(got) != 1 || got[0].Stuck != tc.stuck {
				t.Errorf("after %s more it does %v, want stuck for %s", tc.sleep, got, tc.stuck)
			}
		}
		time.Sleep(time.Hour)
		framework.BeginWait(t.Context(), time.Hour)()
	})
}

func TestActivitiesTellWhatTheWorkersAreDoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, release := informer.NewPush("objects"), make(chan struct{})
		f := newFramework(t, framework.Config{Source: source}, &resource{name: "r", created: func(context.Context, any) error {
			<-release
			return nil
		}})
		stop := running(t, f)
		put(t, source, configMap("a"))
		synctest.Wait()
		time.Sleep(time.Second)
		want := []framework.Activity{{Key: keyOf("a"), Resource: "r", Step: framework.StepEnsureCreated, For: time.Second, Stuck: time.Second}}
		if diff := cmp.Diff(want, f.Activities()); diff != "" {
			t.Error(diff)
		}
		close(release)
		synctest.Wait()
		if diff := cmp.Diff([]framework.Activity(nil), f.Activities()); diff != "" {
			t.Error(diff)
		}
		stop()
	})
}
