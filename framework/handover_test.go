package framework_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestADeletionIsFinishedAlsoWhenAnotherOneWhoWaitedForItHasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failing atomic.Bool
		failing.Store(true)
		p, source := newPart("a"), informer.NewPush("configmaps")
		f := newFramework(t, framework.Config{Name: "shared", Source: source, DisableFinalizer: true, BackOffFactory: everyMinute}, &resource{
			name: "resource", deleted: func(context.Context, any) error {
				if failing.Load() {
					return errBoom
				}
				return nil
			},
		})
		if err := f.Share(p); err != nil {
			t.Fatal(err)
		}
		stop := running(t, f)
		put(t, source, configMap("a"))
		synctest.Wait()
		remove(t, source, configMap("a"))
		synctest.Wait()
		p.mu.Lock()
		p.next, p.given = []string{"a"}, []string{"a"}
		p.mu.Unlock()
		p.becomes(f)
		finish := func(patience time.Duration) <-chan error {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			ended := make(chan error, 1)
			go func() {
				defer cancel()
				ended <- f.FinishDeletions(ctx, everything)
			}()
			return ended
		}
		first, second := finish(time.Minute), finish(time.Hour)
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it fails all the time, and: %v", err)
		}
		failing.Store(false)
		p.becomes(f) // Something else is passed on meanwhile.
		if err := <-second; err != nil {
			t.Error(err)
		}
		stop()
	})
}

func TestADeletionIsNotToldOfAnObjectThatIsThereAgain(t *testing.T) {
	p := newPart("a", "b")
	f, source := sharedFramework(t, p, nil, "a", "b")
	running(t, f)
	<-f.Subscribed()
	for _, name := range []string{"a", "b"} {
		remove(t, source, configMap(name))
	}
	told := func() (names []string) {
		for _, d := range f.ProcessedDeletions(everything, time.Time{}) {
			names = append(names, d.Key.Name)
		}
		slices.Sort(names)
		return names
	}
	operatortest.Eventually(t, "both are told", func() bool { return slices.Equal(told(), []string{"a", "b"}) })
	put(t, source, configMap("a"))
	if got := told(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("%q are told", got)
	}
}

// aMinute is a context that ends when something hangs.
func aMinute(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func everything(informer.Key) bool { return true }

func TestTheFrameworkIsToldOfWhatTheStoreLacksBeforeItHasCaughtUpAndPassesOver(t *testing.T) {
	for name, do := range map[string]func(f *framework.Framework) error{
		"catch up": func(f *framework.Framework) error { return f.CatchUp(t.Context(), everything) },
		"pass over": func(f *framework.Framework) error {
			f.PassOverDeletions([]framework.Deletion{{}})
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) { testTold(t, do) })
	}
}

func testTold(t *testing.T, do func(f *framework.Framework) error) {
	t.Helper()
	source := newAhead()
	begun, going := make(chan struct{}), make(chan struct{})
	defer source.Subscribe(func(e informer.Event) { // It is told before the framework.
		if e.Type == informer.Deleted {
			close(begun)
			<-going
		}
	})()
	f := newFramework(t, framework.Config{Source: source, DisableFinalizer: true}, &resource{name: "r"})
	defer running(t, f)()
	put(t, source.Push, inState("life", "1"))
	<-f.Subscribed()
	go func() {
		if err := source.Delete(inState("life", "1")); err != nil {
			t.Error(err)
		}
	}()
	<-begun
	var told atomic.Bool
	time.AfterFunc(100*time.Millisecond, func() {
		told.Store(true)
		close(going)
	})
	if err := do(f); err != nil || !told.Load() {
		t.Errorf("it was done before the framework was told of the end of an object: %v", err)
	}
}

// knowing is a source that finds out whether it has shown everything, when it has been asked often enough.
type knowing struct {
	*informer.Push
	asked, enough int
}

func (k *knowing) CatchUp(context.Context) error {
	if k.asked++; k.asked < k.enough {
		return errBoom
	}
	return nil
}

func TestCatchingUpIsLeftToASourceThatKnowsWhatItHasShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &knowing{Push: informer.NewPush("objects"), enough: 3}
		f := newFramework(t, framework.Config{Source: source, DisableFinalizer: true}, &resource{name: "r"})
		if err := f.CatchUp(aMinute(t), everything); err != nil || source.asked != 3 {
			t.Errorf("asked %d times: %v", source.asked, err)
		}
		source.enough = 1e9
		if err := f.CatchUp(aMinute(t), everything); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errBoom) {
			t.Errorf("want an error that says why, got %v", err)
		}
	})
}
