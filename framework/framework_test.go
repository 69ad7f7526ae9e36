package framework_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestMain(m *testing.M) { operatortest.VerifyTestMain(m) }

// everyMinute is a backoff that is easy to reckon with.
func everyMinute() backoff.BackOff { return backoff.NewConstantBackOff(time.Minute) }

// put hands an object to a source.
func put(t testing.TB, source *informer.Push, obj any) {
	t.Helper()
	if err := source.Update(obj); err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, source *informer.Push, obj any) {
	t.Helper()
	if err := source.Delete(obj); err != nil {
		t.Fatal(err)
	}
}

func TestR1ManyChangesDuringAReconciliationAreOneMoreWithTheNewestObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		seen, release := &journal{}, make(chan struct{})
		f := newFramework(t, framework.Config{Source: source}, &resource{name: "r", created: func(_ context.Context, obj any) error {
			seen.add(obj.(*corev1.ConfigMap).Data["n"])
			<-release
			return nil
		}})
		defer running(t, f)()
		put(t, source, configMap("a", "n", "0"))
		synctest.Wait()
		for n := range 100 {
			put(t, source, configMap("a", "n", fmt.Sprint(n+1)))
		}
		synctest.Wait()
		close(release)
		synctest.Wait()

		if diff := cmp.Diff([]string{"0", "100"}, seen.all()); diff != "" {
			t.Errorf("reconciled states (-want +got):\n%s", diff)
		}
	})
}

func TestR2OneKeyAtATimeDifferentKeysInParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers, keys = 16, 200
		source := informer.NewPush("objects")
		var mu sync.Mutex
		busy, most, runs := map[string]bool{}, 0, 0
		f := newFramework(t, framework.Config{Source: source, Workers: workers}, &resource{name: "r", created: func(_ context.Context, obj any) error {
			name := obj.(*corev1.ConfigMap).Name
			mu.Lock()
			if busy[name] {
				t.Errorf("%s is reconciled twice at once", name)
			}
			busy[name] = true
			most, runs = max(most, len(busy)), runs+1
			mu.Unlock()
			time.Sleep(time.Second) // virtual: lets others run meanwhile
			mu.Lock()
			delete(busy, name)
			mu.Unlock()
			return nil
		}})
		defer running(t, f)()
		for round := range 5 {
			for n := range keys {
				put(t, source, configMap(fmt.Sprint("o", n), "round", fmt.Sprint(round)))
			}
			time.Sleep(time.Second / 2)
		}
		time.Sleep(time.Hour)
		synctest.Wait()

		if most != workers {
			t.Errorf("at most %d objects were reconciled at once, want all %d workers busy", most, workers)
		}
		if runs < keys {
			t.Errorf("%d reconciliations of %d objects", runs, keys)
		}
	})
}

func TestR3FailingObjectIsRetriedUntilItSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		start, at := time.Now(), &journal{}
		var failures atomic.Int32
		failures.Store(3)
		f := newFramework(t, framework.Config{Source: source, BackOffFactory: everyMinute}, &resource{name: "r", created: func(context.Context, any) error {
			at.add(time.Since(start).String())
			if failures.Add(-1) >= 0 {
				return errBoom
			}
			return nil
		}})
		defer running(t, f)()
		put(t, source, configMap("a"))
		time.Sleep(24 * time.Hour)

		if diff := cmp.Diff([]string{"0s", "1m0s", "2m0s", "3m0s"}, at.all()); diff != "" {
			t.Errorf("tries (-want +got):\n%s", diff)
		}
	})
}

func TestR3RetryEndsWithItsObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		var tries atomic.Int32
		f := newFramework(t, framework.Config{Source: source, BackOffFactory: everyMinute}, &resource{name: "r", created: func(context.Context, any) error {
			tries.Add(1)
			return errBoom
		}})
		defer running(t, f)()
		put(t, source, configMap("a"))
		time.Sleep(90 * time.Second)
		remove(t, source, configMap("a"))
		time.Sleep(24 * time.Hour)

		if got := tries.Load(); got != 2 {
			t.Errorf("%d tries, want the first and one retry before the object was gone", got)
		}
	})
}

func TestR3PermanentErrorWaitsForTheNextChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		var tries atomic.Int32
		f := newFramework(t, framework.Config{Source: source, BackOffFactory: everyMinute}, &resource{name: "r", created: func(context.Context, any) error {
			tries.Add(1)
			return fmt.Errorf("no use: %w", framework.Permanent(errBoom))
		}})
		defer running(t, f)()
		put(t, source, configMap("a"))
		time.Sleep(24 * time.Hour)
		if got := tries.Load(); got != 1 {
			t.Errorf("%d tries without a change, want 1", got)
		}
		put(t, source, configMap("a", "changed", "yes"))
		time.Sleep(24 * time.Hour)
		if got := tries.Load(); got != 2 {
			t.Errorf("%d tries after a change, want 2", got)
		}
	})
}

func TestRequeueIsLookedAtAgainAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		start, at := time.Now(), &journal{}
		f := newFramework(t, framework.Config{Source: source}, &resource{name: "r", created: func(ctx context.Context, _ any) error {
			at.add(time.Since(start).String())
			if len(at.all()) < 3 {
				requeuecontext.SetAfter(ctx, 10*time.Second)
			}
			return nil
		}})
		defer running(t, f)()
		put(t, source, configMap("a"))
		time.Sleep(time.Hour)

		if diff := cmp.Diff([]string{"0s", "10s", "20s"}, at.all()); diff != "" {
			t.Errorf("reconciliations (-want +got):\n%s", diff)
		}
	})
}

func TestRequeueHoldsWhenTheReconciliationFails(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		asks []time.Duration
		want []string
	}{
		"sooner than the backoff, which then counts again": {errBoom, []time.Duration{10 * time.Second, 10 * time.Second}, []string{"0s", "10s", "20s", "1m20s"}},
		"later than the backoff":                           {errBoom, []time.Duration{time.Hour}, []string{"0s", "1m0s", "2m0s"}},
		"after a permanent error":                          {framework.Permanent(errBoom), []time.Duration{10 * time.Second}, []string{"0s", "10s"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := informer.NewPush("objects")
				start, at := time.Now(), &journal{}
				asks := &resource{name: "asks", created: func(ctx context.Context, _ any) error {
					at.add(time.Since(start).String())
					if n := len(at.all()); n <= len(tc.asks) {
						requeuecontext.SetAfter(ctx, tc.asks[n-1])
					}
					return nil
				}}
				fails := &resource{name: "fails", created: func(context.Context, any) error { return tc.err }}
				f := newFramework(t, framework.Config{Source: source, BackOffFactory: everyMinute}, asks, fails)
				defer running(t, f)()
				put(t, source, configMap("a"))
				time.Sleep(2*time.Minute + time.Second)

				if diff := cmp.Diff(tc.want, at.all()); diff != "" {
					t.Errorf("reconciliations (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestR12ChangeMadeNowIsNotDelayedByABacklogOf5000(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers = 4
		source := informer.NewPush("objects")
		for n := range 5000 {
			put(t, source, configMap(fmt.Sprint("old", n)))
		}
		order, gate := &journal{}, make(chan struct{})
		f := newFramework(t, framework.Config{Source: source, Workers: workers}, &resource{name: "r", created: func(_ context.Context, obj any) error {
			order.add(obj.(*corev1.ConfigMap).Name)
			<-gate
			return nil
		}})
		defer running(t, f)()
		synctest.Wait()
		changed := "old4999"
		if slices.Contains(order.all(), changed) {
			changed = "old4998"
		}
		put(t, source, configMap("new"))
		put(t, source, configMap(changed, "changed", "now"))
		for range 2 {
			gate <- struct{}{} // one reconciliation ends, the next one begins
			synctest.Wait()
		}
		if diff := cmp.Diff([]string{"new", changed}, order.all()[workers:workers+2]); diff != "" {
			t.Errorf("reconciled next (-want +got):\n%s", diff)
		}
		close(gate)
		synctest.Wait()
		if got := len(order.all()); got != 5001 {
			t.Errorf("%d reconciliations, want one of each of the 5001 objects", got)
		}
	})
}

// TestR12ManyObjectsOfATenantDoNotHoldUpAnother holds that the one object of a tenant is not after all that another has made before it.
func TestR12ManyObjectsOfATenantDoNotHoldUpAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, order := informer.NewPush("objects"), &journal{}
		f := newFramework(t, framework.Config{Source: source, Workers: 1}, &resource{name: "r", created: func(_ context.Context, obj any) error {
			order.add(obj.(*corev1.ConfigMap).Namespace)
			time.Sleep(time.Second)
			return nil
		}})
		defer running(t, f)()
		synctest.Wait()
		for n := range 500 {
			put(t, source, configMap(fmt.Sprint("many", n)))
		}
		one := configMap("one")
		one.Namespace = "another"
		put(t, source, one)
		time.Sleep(10 * time.Second)
		if at := slices.Index(order.all(), "another"); at < 0 || at > 2 {
			t.Errorf("reconciled were objects of %v, want that of another among the first three", order.all())
		}
		time.Sleep(500 * time.Second)
	})
}

func TestPausedObjectIsLeftAlone(t *testing.T) {
	for _, annotation := range []string{framework.PausedAnnotation, framework.ClusterPausedAnnotation} {
		t.Run(annotation, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := informer.NewPush("objects")
				var runs atomic.Int32
				f := newFramework(t, framework.Config{Source: source}, &resource{name: "r", created: func(context.Context, any) error {
					runs.Add(1)
					return nil
				}})
				defer running(t, f)()
				paused := configMap("a")
				paused.Annotations = map[string]string{annotation: "true"}
				put(t, source, paused)
				synctest.Wait()
				if got := runs.Load(); got != 0 {
					t.Errorf("%d reconciliations of a paused object", got)
				}
				put(t, source, configMap("a"))
				synctest.Wait()
				if got := runs.Load(); got != 1 {
					t.Errorf("%d reconciliations after the pause, want 1", got)
				}
			})
		})
	}
}

func TestConflictIsRetriedAndIsNoErrorInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		log := &strings.Builder{}
		var tries atomic.Int32
		f := newFramework(t, framework.Config{Source: source, BackOffFactory: everyMinute, Logger: logTo(t, log)},
			&resource{name: "r", created: func(context.Context, any) error {
				if tries.Add(1) == 1 {
					return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "a", errBoom)
				}
				return nil
			}})
		stop := running(t, f)
		put(t, source, configMap("a"))
		time.Sleep(time.Hour)
		stop()

		if got := tries.Load(); got != 2 {
			t.Errorf("%d tries, want 2", got)
		}
		if strings.Contains(log.String(), `"level":"error"`) {
			t.Errorf("a conflict is logged as an error:\n%s", log)
		}
	})
}

// quickly is a backoff for tests that wait for a retry in real time.
func quickly() backoff.BackOff { return backoff.NewConstantBackOff(20 * time.Millisecond) }
