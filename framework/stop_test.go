package framework_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

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

func TestR13NothingIsBegunOnceTheContextHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The object is announced before anybody looks at the context.
		source := &hooked{Push: informer.NewPush("objects"), before: synctest.Wait}
		put(t, source.Push, configMap("a"))
		calls := &journal{}
		f := newFramework(t, framework.Config{Source: source}, &resource{name: "r", created: func(context.Context, any) error {
			calls.add("created")
			return nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := f.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string(nil), calls.all()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
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

// unsyncable is a source that does not sync, for a reason of its own.
type unsyncable struct {
	*informer.Push
	sync func() error
}

func (u unsyncable) WaitForSync(context.Context) error { return u.sync() }

func TestASourceThatCantSyncIsAnErrorOfRun(t *testing.T) {
	for name, sync := range map[string]func() error{
		"error": func() error { return errBoom },
		"panic": func() error { panic(errBoom) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFramework(t, framework.Config{Source: informer.NewPush("objects"), Watches: []framework.Watch{
				{Source: unsyncable{informer.NewPush("watched"), sync}, Map: nothing},
			}}, &resource{name: "r"})
			if err := f.Run(t.Context()); !errors.Is(err, errBoom) || !strings.Contains(err.Error(), `"watched"`) {
				t.Errorf("Run: got error %v, want that of the source, by its name", err)
			}
		})
	}
}

func TestASourceThatCantSyncBecauseRunEndsIsNoError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := newFramework(t, framework.Config{Source: unsyncable{informer.NewPush("objects"), func() error {
		cancel()
		return errBoom
	}}}, &resource{name: "r"})
	if err := f.Run(ctx); err != nil {
		t.Errorf("Run: got error %v, want none", err)
	}
}
