package framework_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/context/deletionallowedcontext"
	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

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
		synctest.Wait()
		remove(t, source, configMap("a", "v", "3"))
		time.Sleep(24 * time.Hour)

		want := []string{"created 1", "created 2", "deleted 3", "deleted 3", "deleted 3"}
		if diff := cmp.Diff(want, calls.all()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

func TestR10EveryTryOfADeletionGetsTheLastStateAsItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, calls := informer.NewPush("objects"), &journal{}
		f := newFramework(t, framework.Config{Source: source, BackOffFactory: everyMinute}, &resource{name: "r",
			deleted: func(_ context.Context, obj any) error {
				o := obj.(*corev1.ConfigMap)
				calls.add(o.Data["v"])
				o.Data["v"] = "spoiled"
				if len(calls.all()) < 3 {
					return errBoom
				}
				return nil
			}})
		defer running(t, f)()
		put(t, source, configMap("a", "v", "1"))
		synctest.Wait()
		remove(t, source, configMap("a", "v", "2"))
		time.Sleep(24 * time.Hour)

		if diff := cmp.Diff([]string{"2", "2", "2"}, calls.all()); diff != "" {
			t.Errorf("states seen (-want +got):\n%s", diff)
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
		"reconciliation canceled": reconciliationcanceledcontext.SetCanceled,
		"finalizers kept":         finalizerskeptcontext.SetKept,
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

func TestR8SignalsThatInitCtxCarriesHoldBackADeletionToo(t *testing.T) {
	for name, test := range map[string]struct {
		carry func(context.Context) context.Context
		hold  func(context.Context)
		want  []time.Duration // of the tries
	}{
		"reconciliation canceled": {reconciliationcanceledcontext.NewContext, reconciliationcanceledcontext.SetCanceled,
			[]time.Duration{0, time.Minute, 2 * time.Minute}},
		"finalizers kept": {finalizerskeptcontext.NewContext, finalizerskeptcontext.SetKept, []time.Duration{0, time.Minute, 2 * time.Minute}},
		"finalizers kept, and a look asked for": {requeuecontext.NewContext, func(ctx context.Context) {
			finalizerskeptcontext.SetKept(ctx)
			requeuecontext.SetAfter(ctx, time.Second)
		}, []time.Duration{0, time.Second, 2 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, start := informer.NewPush("objects"), time.Now()
				var tries []time.Duration
				letGo := 0
				f := newFramework(t, framework.Config{
					Source:    &holding{source, func(obj *corev1.ConfigMap) error { letGo = len(tries); return source.Delete(obj) }},
					Finalizer: "example.com/f", BackOffFactory: everyMinute,
					InitCtx: func(ctx context.Context, _ any) (context.Context, error) { return test.carry(ctx), nil },
				}, &resource{name: "r", deleted: func(ctx context.Context, _ any) error {
					if tries = append(tries, time.Since(start)); len(tries) < 3 {
						test.hold(ctx)
					}
					return nil
				}})
				defer running(t, f)()
				obj := deleting("a")
				obj.Finalizers = []string{"example.com/f"}
				put(t, source, obj)
				time.Sleep(24 * time.Hour)
				synctest.Wait()

				if diff := cmp.Diff(test.want, tries); diff != "" {
					t.Errorf("tries, of which two were held back and one was not (-want +got):\n%s", diff)
				}
				if letGo != len(test.want) {
					t.Errorf("the finalizer was taken off after try %d, want %d", letGo, len(test.want))
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
				deletionallowedcontext.SetDeletionAllowed(ctx)
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

// forbidDeletionUntilAllowed is an InitCtx that forbids the deletion; the resource named gate allows it half-way, so
// that the first try after allowed is set is not complete either.
func forbidDeletionUntilAllowed(allowed *atomic.Bool) func(context.Context, any) (context.Context, error) {
	var tries atomic.Int32
	return func(ctx context.Context, _ any) (context.Context, error) {
		ctx = deletionallowedcontext.NewContext(ctx)
		if allowed.Load() && tries.Add(1) > 1 {
			deletionallowedcontext.SetDeletionAllowed(ctx)
		}
		return ctx, nil
	}
}
