package framework_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

// channels is an informer of the older kind that hands out the given channels, anew each time.
type channels struct {
	watches atomic.Int32
	events  func(watch int, deleteChan, updateChan chan watch.Event, errChan chan error)
	// open leaves it to events to close deleteChan.
	open bool
}

func (c *channels) Watch(context.Context) (deleteChan, updateChan chan watch.Event, errChan chan error) {
	deleteChan, updateChan, errChan = make(chan watch.Event, 8), make(chan watch.Event, 8), make(chan error, 8)
	c.events(int(c.watches.Add(1)), deleteChan, updateChan, errChan)
	if !c.open {
		close(deleteChan)
	}
	close(updateChan)
	close(errChan)
	return deleteChan, updateChan, errChan
}

func noting(calls *journal) framework.Resource {
	return &resource{name: "r",
		created: func(_ context.Context, obj any) error {
			calls.add("created " + obj.(*corev1.ConfigMap).Name)
			return nil
		},
		deleted: func(_ context.Context, obj any) error {
			calls.add("deleted " + obj.(*corev1.ConfigMap).Name)
			return nil
		}}
}

func TestDropInsFeedTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &journal{}
		f := newFramework(t, framework.Config{}, noting(calls))
		defer running(t, f)()

		f.UpdateFunc(nil, configMap("a"))
		synctest.Wait()
		f.DeleteFunc(configMap("a"))
		synctest.Wait()
		f.DeleteFunc(cache.DeletedFinalStateUnknown{Key: "default/b", Obj: configMap("b")})
		synctest.Wait()
		f.ProcessEvents(t.Context(), nil, nil, nil)

		if diff := cmp.Diff([]string{"created a", "deleted a", "deleted b"}, calls.all()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

func TestADeletionThatIsReadAfterTheNextObjectOfItsNameTakesNothingFromThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &journal{}
		f := newFramework(t, framework.Config{}, noting(calls))
		defer running(t, f)()
		first, second := configMap("a"), configMap("a")
		second.UID = "uid-of-the-second"

		f.UpdateFunc(nil, first)
		synctest.Wait()
		f.UpdateFunc(nil, second)
		synctest.Wait()
		f.DeleteFunc(first)
		synctest.Wait()

		// The end of the first and the beginning of the second are two events, each of which may reconcile the second.
		if diff := cmp.Diff([]string{"created a", "deleted a", "created a"}, slices.Compact(calls.all())); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if stored, exists, err := f.Sources()[0].Get(keyOf("a")); err != nil || !exists || stored.(*corev1.ConfigMap).UID != second.UID {
			t.Errorf("the source has %v, %t, %v, want the second object", stored, exists, err)
		}
	})
}

func TestAChangeThatIsReadAfterTheDeletionBringsNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &journal{}
		f := newFramework(t, framework.Config{}, noting(calls))
		defer running(t, f)()
		for _, step := range []struct {
			take    func(obj *corev1.ConfigMap)
			version string
		}{
			{func(obj *corev1.ConfigMap) { f.UpdateFunc(nil, obj) }, "8"},
			{func(obj *corev1.ConfigMap) { f.DeleteFunc(obj) }, "10"},
			{func(obj *corev1.ConfigMap) { f.UpdateFunc(nil, obj) }, "9"},
		} {
			obj := configMap("a")
			obj.ResourceVersion = step.version
			step.take(obj)
			synctest.Wait()
		}

		if diff := cmp.Diff([]string{"created a", "deleted a"}, calls.all()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if _, exists, err := f.Sources()[0].Get(keyOf("a")); err != nil || exists {
			t.Errorf("the source has the object: %t, %v", exists, err)
		}
	})
}

func TestDropInsRefuseWhatTheyCantQueue(t *testing.T) {
	log := &strings.Builder{}
	f := newFramework(t, framework.Config{Logger: logTo(t, log)}, &resource{name: "r"})
	f.UpdateFunc(nil, "not an object")
	own := newFramework(t, framework.Config{Logger: logTo(t, log), Source: informer.NewPush("own")}, &resource{name: "r"})
	own.DeleteFunc(configMap("a"))

	for _, want := range []string{"object was not taken", "string", "Source of its own"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
}

func TestInformerWhoseChannelsCloseIsWatchedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, log := &journal{}, &strings.Builder{}
		inf := &channels{events: func(n int, deleteChan, updateChan chan watch.Event, errChan chan error) {
			switch n {
			case 1:
				updateChan <- watch.Event{Type: watch.Added, Object: configMap("a")}
				updateChan <- watch.Event{Type: watch.Bookmark}
				updateChan <- watch.Event{Type: watch.Error, Object: &metav1.Status{Message: "too old"}}
				errChan <- errors.New("watch broke")
			case 2:
				deleteChan <- watch.Event{Type: watch.Deleted, Object: configMap("a")}
			}
		}}
		f := newFramework(t, framework.Config{Informer: inf, BackOffFactory: everyMinute, Logger: logTo(t, log)}, noting(calls))
		stop := running(t, f)
		time.Sleep(10*time.Minute + time.Second)
		stop()

		if diff := cmp.Diff([]string{"created a", "deleted a"}, calls.all()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if got := inf.watches.Load(); got != 11 {
			t.Errorf("watched %d times in ten minutes, want once a minute", got)
		}
		for _, want := range []string{"watch broke", "too old"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log lacks %q:\n%s", want, log)
			}
		}
	})
}

// slow is a source that takes a minute to sync.
type slow struct{ *informer.Push }

func (s slow) WaitForSync(ctx context.Context) error {
	select {
	case <-time.After(time.Minute):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func nothing(context.Context, any) []informer.Key { return nil }

func TestR3NoDeletionOfAnInformerIsLostBeforeTheSourcesAreSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const deletions = 40
		calls := &journal{}
		inf := &channels{events: func(n int, deleteChan, _ chan watch.Event, _ chan error) {
			if n == 1 {
				go func() {
					for i := range deletions {
						deleteChan <- watch.Event{Type: watch.Deleted, Object: configMap(strconv.Itoa(i))}
					}
					close(deleteChan)
				}()
			}
		}, open: true}
		f := newFramework(t, framework.Config{Informer: inf, BackOffFactory: everyMinute, Watches: []framework.Watch{{Source: slow{informer.NewPush("slow")}, Map: nothing}}},
			noting(calls))
		stop := running(t, f)
		time.Sleep(time.Hour)
		stop()

		if got := len(calls.all()); got != deletions {
			t.Errorf("%d deletions were processed, want %d", got, deletions)
		}
	})
}

func TestR3WhatIsHandedOverBeforeRunIsProcessed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &journal{}
		f := newFramework(t, framework.Config{Workers: 1}, noting(calls))
		f.DeleteFunc(configMap("never seen"))
		f.UpdateFunc(nil, configMap("seen"))
		f.DeleteFunc(configMap("seen"))
		f.DeleteFunc(configMap("made again"))
		f.UpdateFunc(nil, configMap("made again"))
		stop := running(t, f)
		time.Sleep(time.Hour)
		stop()

		got := calls.all()
		slices.Sort(got)
		if diff := cmp.Diff([]string{"created made again", "deleted never seen", "deleted seen"}, got); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

func TestTheBackoffOfAnInformerBeginsAnewWhenSomethingHasArrived(t *testing.T) {
	doubling := func() backoff.BackOff {
		return backoff.NewExponentialBackOff(backoff.WithInitialInterval(time.Minute), backoff.WithMultiplier(2),
			backoff.WithRandomizationFactor(0), backoff.WithMaxInterval(24*time.Hour), backoff.WithMaxElapsedTime(0))
	}
	for name, test := range map[string]struct {
		arrives bool
		want    int32
	}{
		"something arrives each time": {true, 11}, // at 0, 1, 2 … 10 minutes
		"nothing arrives":             {false, 4}, // at 0, 1, 3 and 7 minutes
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inf := &channels{events: func(_ int, _, updateChan chan watch.Event, _ chan error) {
					if test.arrives {
						updateChan <- watch.Event{Type: watch.Modified, Object: configMap("a")}
					}
				}}
				f := newFramework(t, framework.Config{Informer: inf, BackOffFactory: doubling}, &resource{name: "r"})
				stop := running(t, f)
				time.Sleep(10*time.Minute + time.Second)
				stop()
				if got := inf.watches.Load(); got != test.want {
					t.Errorf("watched %d times in ten minutes, want %d", got, test.want)
				}
			})
		})
	}
}

func TestWhatCantBeUsedIsToldOnce(t *testing.T) {
	log, calls := &strings.Builder{}, &journal{}
	synctest.Test(t, func(t *testing.T) {
		f := newFramework(t, framework.Config{Logger: logTo(t, log)}, noting(calls))
		stop := running(t, f)
		updates, deletions := make(chan watch.Event, 64), make(chan watch.Event, 64)
		for range 3 {
			updates <- watch.Event{Type: "STRANGE", Object: configMap("strange")}
			updates <- watch.Event{Type: watch.Added}
			updates <- watch.Event{Type: watch.Modified, Object: &metav1.Status{Message: "no metadata"}}
			deletions <- watch.Event{Type: watch.Deleted}
			deletions <- watch.Event{Type: watch.Deleted, Object: (*corev1.ConfigMap)(nil)}
		}
		updates <- watch.Event{Type: watch.Added, Object: configMap("good")}
		close(updates)
		close(deletions)
		f.ProcessEvents(t.Context(), deletions, updates, nil)
		f.UpdateFunc(nil, nil)
		f.UpdateFunc(nil, nil)
		synctest.Wait()
		if f.Sources()[0].Status().Unusable == nil {
			t.Error("the status of the source tells nothing")
		}
		stop()
	})
	if diff := cmp.Diff([]string{"created good"}, calls.all()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if got := strings.Count(log.String(), "not taken"); got != 6 {
		t.Errorf("%d messages, want one for each of six sorts:\n%s", got, log)
	}
	for _, want := range []string{"STRANGE", "<nil>", "Status"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
}

// shouting is a source that sends events of a type that nobody knows.
type shouting struct{ *informer.Push }

func (s shouting) Subscribe(h informer.Handler) func() {
	unsubscribe := s.Push.Subscribe(h)
	for range 2 {
		h(informer.Event{Type: 77, Key: keyOf("strange")})
	}
	return unsubscribe
}

func TestR4AnEventOfAnUnknownTypeIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &strings.Builder{}
		f := newFramework(t, framework.Config{Logger: logTo(t, log), Source: shouting{informer.NewPush("own")},
			Watches: []framework.Watch{{Source: shouting{informer.NewPush("watched")}, Map: nothing}}}, &resource{name: "r"})
		stop := running(t, f)
		synctest.Wait()
		stop()
		if got := strings.Count(log.String(), "its type is unknown"); got != 2 {
			t.Errorf("%d messages, want one for each source:\n%s", got, log)
		}
	})
}
