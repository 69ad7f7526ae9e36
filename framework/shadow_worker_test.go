package framework_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

func TestShadowWaitsUntilNoObjectWaitsForAReconciliation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		order := &journal{}
		active := settled()
		active.created = func(_ context.Context, obj any) error {
			time.Sleep(10 * time.Second) // virtual: lets the shadow run meanwhile, if it may
			order.add("reconciled " + obj.(*corev1.ConfigMap).Name)
			return nil
		}
		shadow := pagesOf(func(_ context.Context, obj *corev1.ConfigMap) (any, error) {
			order.add("compared " + obj.Name)
			return nil, nil
		})
		f := newFramework(t, framework.Config{Source: source, Workers: 1, ResourceRouter: besides(t, active, shadow)})
		defer running(t, f)()
		synctest.Wait()
		for _, name := range []string{"a", "b", "c"} {
			put(t, source, configMap(name))
		}
		time.Sleep(time.Hour)

		// The last object does not wait any more, it is being worked on.
		want := []string{"reconciled a", "reconciled b", "compared a", "compared b", "reconciled c", "compared c"}
		if diff := cmp.Diff(want, order.all()); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

func TestReconciliationIsNotDelayedByAShadowThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		start, at := time.Now(), &journal{}
		active := settled()
		active.created = func(_ context.Context, obj any) error {
			at.add(obj.(*corev1.ConfigMap).Data["n"] + " after " + time.Since(start).String())
			return nil
		}
		hanging := pagesOf(func(ctx context.Context, _ *corev1.ConfigMap) (any, error) { <-ctx.Done(); return nil, ctx.Err() })
		f := newFramework(t, framework.Config{Source: source, Workers: 1, ShadowTimeout: time.Hour, ResourceRouter: besides(t, active, hanging)})
		stop := running(t, f)
		for n := range 3 {
			put(t, source, configMap("a", "n", fmt.Sprint(n)))
			time.Sleep(time.Second)
		}

		if diff := cmp.Diff([]string{"0 after 0s", "1 after 1s", "2 after 2s"}, at.all()); diff != "" {
			t.Errorf("reconciliations (-want +got):\n%s", diff)
		}
		stopped := time.Now()
		stop()
		if took := time.Since(stopped); took != 0 {
			t.Errorf("Run returned after %v, want it not to wait for a comparison", took)
		}
		wantSentences(t, f, "v2 would change 0 of 0 objects")
	})
}

func TestR13ShadowThatWaitsForItsTurnDoesNotHoldUpTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		active := settled()
		active.created = func(_ context.Context, obj any) error {
			if obj.(*corev1.ConfigMap).Name != "a" {
				time.Sleep(10 * time.Second) // virtual
			}
			return nil
		}
		f := newFramework(t, framework.Config{Source: source, Workers: 1, ResourceRouter: besides(t, active, changing())})
		stop := running(t, f)
		synctest.Wait()
		for _, name := range []string{"a", "takes ten seconds", "waits for it"} {
			put(t, source, configMap(name))
			synctest.Wait()
		}
		time.Sleep(4 * time.Second)
		if got := f.Shadows()[0].Waiting; got != 1 {
			t.Fatalf("%d objects wait for their comparison, want the first", got)
		}
		start := time.Now()
		stop()

		if took := time.Since(start); took != 6*time.Second {
			t.Errorf("Run returned after %v, want it to wait for the reconciliation of 6s only", took)
		}
	})
}

func TestComparisonThatIsCutShortLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		shadow := pagesOf(func(ctx context.Context, obj *corev1.ConfigMap) (any, error) {
			if _, hang := obj.Data["hang"]; hang {
				<-ctx.Done()
			}
			return "new", nil
		})
		f := newFramework(t, framework.Config{Source: source, ShadowTimeout: time.Hour, ResourceRouter: besides(t, settled(), shadow)})
		stop := running(t, f)
		put(t, source, configMap("a"))
		compared()
		put(t, source, configMap("a", "hang", "yes"))
		compared()
		stop()

		wantSentences(t, f, "v2 would change 1 of 1 object")
	})
}

func TestObjectThatChangesAllTheTimeIsComparedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		seen := &journal{}
		shadow := pagesOf(func(_ context.Context, obj *corev1.ConfigMap) (any, error) {
			seen.add(obj.Data["n"])
			return nil, nil
		})
		f := newFramework(t, framework.Config{Source: source, ResourceRouter: besides(t, settled(), shadow)})
		defer running(t, f)()
		for n := range 100 {
			put(t, source, configMap("a", "n", fmt.Sprint(n)))
			time.Sleep(100 * time.Millisecond)
		}
		compared()

		all := seen.all()
		if len(all) < 9 || len(all) > 11 || all[len(all)-1] != "99" {
			t.Errorf("the states %v were compared in ten seconds, want about ten, and the last", all)
		}
	})
}

func TestDetailsOfAThousandObjectsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const objects = 1010
		source := informer.NewPush("objects")
		each := pagesOf(func(_ context.Context, obj *corev1.ConfigMap) (any, error) {
			if _, ok := obj.Data["v2"]; !ok {
				return nil, nil
			}
			return obj.Name, nil
		})
		f := newFramework(t, framework.Config{Source: source, ResourceRouter: besides(t, settled(), each)})
		defer running(t, f)()
		for n := range objects {
			put(t, source, configMap(fmt.Sprintf("o%04d", n), "v2", "new"))
			compared()
		}
		details := func() (n int) {
			for _, o := range f.ShadowObjects("v2") {
				if o.Comparison != nil {
					n++
				}
			}
			return n
		}
		wantSentences(t, f, fmt.Sprintf("v2 would change %d of %d objects", objects, objects))
		if listed, kept := len(f.ShadowObjects("v2")), details(); listed != objects || kept != 1000 {
			t.Errorf("%d objects are listed, %d with details, want %d and 1000", listed, kept, objects)
		}

		put(t, source, configMap("o0000"))
		compared()
		put(t, source, configMap("o1009", "v2", "newer"))
		compared()
		if kept := details(); kept != 1000 || f.ShadowsOf(keyOf("o1009")) == nil {
			t.Errorf("%d objects have details, want 1000, and the place that became free taken", kept)
		}
	})
}

func TestManyReconciliationsOfOneObjectAreComparedOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, release := informer.NewPush("objects"), make(chan struct{})
		seen := &journal{}
		slow := pagesOf(func(_ context.Context, obj *corev1.ConfigMap) (any, error) {
			seen.add(obj.Data["n"])
			<-release
			return nil, nil
		})
		f := newFramework(t, framework.Config{Source: source, ResourceRouter: besides(t, settled(), slow)})
		defer running(t, f)()
		for n := range 100 {
			put(t, source, configMap("a", "n", fmt.Sprint(n)))
			compared()
		}
		close(release)
		compared()

		if diff := cmp.Diff([]string{"0", "99"}, seen.all()); diff != "" {
			t.Errorf("compared states (-want +got):\n%s", diff)
		}
	})
}
