package framework_test

import (
	"context"
	"fmt"
	"runtime"
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

func TestR4ResourceThatPanicsOrExitsDoesNotStopTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		done, log := &journal{}, &strings.Builder{}
		f := newFramework(t, framework.Config{Source: source, Workers: 1, BackOffFactory: everyMinute, Logger: logTo(t, log)},
			&resource{name: "r", created: func(_ context.Context, obj any) error {
				name := obj.(*corev1.ConfigMap).Name
				done.add(name)
				switch name {
				case "panics":
					panic("at the disco")
				case "exits":
					runtime.Goexit()
				}
				return nil
			}})
		stop := running(t, f)
		for _, name := range []string{"panics", "exits", "works"} {
			put(t, source, configMap(name))
			synctest.Wait()
		}
		time.Sleep(90 * time.Second)
		stop()

		if diff := cmp.Diff([]string{"panics", "exits", "works", "panics"}, done.all()); diff != "" {
			t.Errorf("reconciliations (-want +got):\n%s", diff)
		}
		for _, want := range []string{"panic: at the disco", "framework_test.go", `"object":"ConfigMap default/panics"`, `"step":"ensure_created"`, `"retry":"1m0s"`} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log lacks %q:\n%s", want, log)
			}
		}
	})
}

func TestR5WithoutFinalizerDeletionIsProcessedWithTheLastStateUntilItSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		calls := &journal{}
		var failures atomic.Int32
		failures.Store(2)
		f := newFramework(t, framework.Config{Source: source, BackOffFactory: everyMinute}, &resource{name: "r",
			created: func(_ context.Context, obj any) error {
				calls.add("created " + obj.(*corev1.ConfigMap).Data["v"])
				return nil
			},
			deleted: func(_ context.Context, obj any) error {
				calls.add("deleted " + obj.(*corev1.ConfigMap).Data["v"])
				if failures.Add(-1) >= 0 {
					return errBoom
				}
				return nil
			}})
		defer running(t, f)()
		put(t, source, configMap("a", "v", "1"))
		synctest.Wait()
		put(t, source, configMap("a", "v", "2"))
		remove(t, source, configMap("a", "v", "3"))
		time.Sleep(24 * time.Hour)

		want := []string{"created 1", "deleted 3", "deleted 3", "deleted 3"}
		if diff := cmp.Diff(want, calls.all()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

func TestR5DeletionComesBeforeAnObjectOfTheSameName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		calls, release := &journal{}, make(chan struct{})
		f := newFramework(t, framework.Config{Source: source}, &resource{name: "r",
			created: func(_ context.Context, obj any) error {
				calls.add("created " + string(obj.(*corev1.ConfigMap).UID))
				<-release
				return nil
			},
			deleted: func(_ context.Context, obj any) error {
				calls.add("deleted " + string(obj.(*corev1.ConfigMap).UID))
				return nil
			}})
		defer running(t, f)()
		old, young := configMap("a"), configMap("a")
		old.UID, young.UID = "old", "young"
		put(t, source, old)
		synctest.Wait()
		remove(t, source, old)
		put(t, source, young)
		close(release)
		synctest.Wait()

		if diff := cmp.Diff([]string{"created old", "deleted old", "created young"}, calls.all()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

func TestR8DeletionThatIsHeldBackIsTriedAgain(t *testing.T) {
	for name, hold := range map[string]func(context.Context){
		"reconciliation canceled": cancelReconciliation,
		"finalizers kept":         keepFinalizers,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := informer.NewPush("objects")
				var tries atomic.Int32
				f := newFramework(t, framework.Config{Source: source, BackOffFactory: everyMinute}, &resource{name: "r", deleted: func(ctx context.Context, _ any) error {
					if tries.Add(1) < 3 {
						hold(ctx)
					}
					return nil
				}})
				defer running(t, f)()
				put(t, source, configMap("a"))
				synctest.Wait()
				remove(t, source, configMap("a"))
				time.Sleep(24 * time.Hour)

				if got := tries.Load(); got != 3 {
					t.Errorf("%d tries, want 3: two that were held back and one that was not", got)
				}
			})
		})
	}
}

func TestDeletionIsForbiddenUntilAResourceAllowsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		calls := &journal{}
		var allowed atomic.Bool
		onlyDelete := func() *framework.TypedPatch[string] {
			p := framework.NewTypedPatch[string]()
			p.SetDeleteChange("it")
			return p
		}
		before := crud(t, &ops{name: "before", calls: calls, patch: onlyDelete})
		gate := &resource{name: "gate", deleted: func(ctx context.Context, _ any) error {
			if allowed.Load() {
				allowDeletion(ctx)
			}
			return nil
		}}
		after := crud(t, &ops{name: "after", calls: calls, patch: onlyDelete})
		f := newFramework(t, framework.Config{Source: source, BackOffFactory: everyMinute, ResourceRouter: routerOf(t, framework.ResourceSetConfig{
			InitCtx:   forbidDeletionUntilAllowed(&allowed),
			Resources: []framework.Resource{before, gate, after},
		})})
		defer running(t, f)()
		put(t, source, configMap("a"))
		synctest.Wait()
		calls.entries = nil
		remove(t, source, configMap("a"))
		time.Sleep(90 * time.Second)
		for _, c := range calls.all() {
			if strings.Contains(c, "apply") {
				t.Errorf("%q was done although the deletion was forbidden", c)
			}
		}
		calls.entries = nil
		allowed.Store(true)
		time.Sleep(24 * time.Hour)

		var applied []string
		for _, c := range calls.all() {
			if strings.Contains(c, "apply") {
				applied = append(applied, c)
			}
		}
		// The gate opens behind the first resource, whose part was held back: that is not a finished deletion.
		want := []string{"after apply_delete_change it", "before apply_delete_change it", "after apply_delete_change it"}
		if diff := cmp.Diff(want, applied); diff != "" {
			t.Errorf("applied once allowed (-want +got):\n%s", diff)
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

func TestR13RunningReconciliationEndsBeforeRunReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		calls := &journal{}
		f := newFramework(t, framework.Config{Source: source, Workers: 1}, &resource{name: "r", created: func(ctx context.Context, obj any) error {
			time.Sleep(10 * time.Second)
			calls.add(fmt.Sprint(obj.(*corev1.ConfigMap).Name, " ", ctx.Err()))
			return nil
		}})
		stop := running(t, f)
		put(t, source, configMap("a"))
		synctest.Wait()
		put(t, source, configMap("waits"))
		synctest.Wait()
		start := time.Now()
		stop()

		if diff := cmp.Diff([]string{"a <nil>"}, calls.all()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if got := time.Since(start); got != 10*time.Second {
			t.Errorf("Run returned after %v, want it to wait for the reconciliation of 10s", got)
		}
	})
}

func TestR13RunningReconciliationIsCancelledAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		log := &strings.Builder{}
		f := newFramework(t, framework.Config{Source: source, ShutdownTimeout: time.Minute, Logger: logTo(t, log)},
			&resource{name: "r", created: func(ctx context.Context, _ any) error {
				<-ctx.Done()
				return ctx.Err()
			}})
		stop := running(t, f)
		put(t, source, configMap("a"))
		synctest.Wait()
		start := time.Now()
		stop()

		if got := time.Since(start); got != time.Minute {
			t.Errorf("Run returned after %v, want the ShutdownTimeout of 1m", got)
		}
		if strings.Contains(log.String(), `"level":"error"`) {
			t.Errorf("being stopped is logged as an error:\n%s", log)
		}
	})
}

func TestR13RunningReconciliationIsCancelledAtOnceWhenTheCauseSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, started := informer.NewPush("objects"), make(chan struct{})
		f := newFramework(t, framework.Config{Source: source}, &resource{name: "r", created: func(ctx context.Context, _ any) error {
			close(started)
			<-ctx.Done()
			return ctx.Err()
		}})
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error)
		go func() { ended <- f.Run(ctx) }()
		put(t, source, configMap("a"))
		<-started
		start := time.Now()
		cancel(fmt.Errorf("lease lost: %w", framework.ErrStopNow))

		if err := <-ended; err != nil || time.Since(start) != 0 {
			t.Errorf("Run returned %v after %v, want nil at once", err, time.Since(start))
		}
	})
}

func TestRunningTwiceIsRefused(t *testing.T) {
	f := newFramework(t, framework.Config{}, &resource{name: "r"})
	running(t, f)()
	if err := f.Run(t.Context()); !framework.IsExecutionFailed(err) {
		t.Errorf("got %v, want an execution failed error", err)
	}
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

func TestWatchedObjectReconcilesThePrimaryBeforeAndAfterItsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		primaries, secondaries := informer.NewPush("primaries"), informer.NewPush("secondaries")
		calls := &journal{}
		f := newFramework(t, framework.Config{Source: primaries, Watches: []framework.Watch{{
			Source: secondaries,
			Map: func(_ context.Context, obj any) []informer.Key {
				owner := obj.(*corev1.ConfigMap).Data["owner"]
				if owner == "panic" {
					panic("bad map function")
				}
				return []informer.Key{keyOf(owner)}
			},
		}}}, &resource{name: "r", created: func(_ context.Context, obj any) error {
			calls.add(obj.(*corev1.ConfigMap).Name)
			return nil
		}})
		defer running(t, f)()
		step := func(do func(), want ...string) {
			t.Helper()
			calls.entries = nil
			do()
			synctest.Wait()
			got := calls.all()
			if len(got) == 2 && got[0] > got[1] {
				got[0], got[1] = got[1], got[0]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("reconciled (-want +got):\n%s", diff)
			}
		}
		step(func() { put(t, primaries, configMap("a")); put(t, primaries, configMap("b")) }, "a", "b")
		step(func() { put(t, secondaries, configMap("s", "owner", "a")) }, "a")
		step(func() { put(t, secondaries, configMap("s", "owner", "b")) }, "a", "b")
		step(func() { remove(t, secondaries, configMap("s", "owner", "b")) }, "b")
		step(func() { put(t, secondaries, configMap("s", "owner", "panic")) })
		step(func() { put(t, secondaries, configMap("s", "owner", "nobody")) })
		step(func() { put(t, secondaries, configMap("t", "owner", "a")) }, "a")
	})
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
