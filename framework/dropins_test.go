package framework_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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
}

func (c *channels) Watch(context.Context) (deleteChan, updateChan chan watch.Event, errChan chan error) {
	deleteChan, updateChan, errChan = make(chan watch.Event, 8), make(chan watch.Event, 8), make(chan error, 8)
	c.events(int(c.watches.Add(1)), deleteChan, updateChan, errChan)
	close(deleteChan)
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
