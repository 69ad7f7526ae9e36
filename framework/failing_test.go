package framework_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/access"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestStatusCountsTheObjectsThatFailAndTellsSinceWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		var broken atomic.Bool
		broken.Store(true)
		f := newFramework(t, framework.Config{Source: source, BackOffFactory: everyMinute},
			&resource{name: "r", created: func(_ context.Context, obj any) error {
				if broken.Load() && obj.(*corev1.ConfigMap).Name != "fine" {
					return errBoom
				}
				return nil
			}})
		defer running(t, f)()
		fail := func(want int) {
			t.Helper()
			synctest.Wait()
			if got := f.Status().Failing; got != want {
				t.Errorf("%d objects fail, want %d", got, want)
			}
		}
		began := time.Now()
		for _, name := range []string{"a", "b", "fine"} {
			put(t, source, configMap(name))
		}
		fail(2)
		time.Sleep(90 * time.Second) // one more try
		if since, fails := access.EngineOf(f).FailingSince(keyOf("a")); !fails || !since.Equal(began) {
			t.Errorf("a fails: %t since %s, want since %s", fails, since, began)
		}
		if _, fails := access.EngineOf(f).FailingSince(keyOf("fine")); fails {
			t.Error("an object fails that succeeded")
		}
		remove(t, source, configMap("b"))
		fail(1)
		broken.Store(false)
		time.Sleep(time.Minute)
		fail(0)
	})
}

// counted is an EventRecorder that only counts.
type counted struct{ events atomic.Int64 }

func (c *counted) Event(apiruntime.Object, string, string, string) { c.events.Add(1) }

func TestTextsOfErrorsAreNotKeptForTheEventsAboutThem(t *testing.T) {
	const objects, length = 4000, 1000
	// grown is by how many bytes the heap grows while all objects fail with texts of that length.
	grown := func(length int) int64 {
		source, recorder := informer.NewPush("objects"), &counted{}
		for i := range objects {
			put(t, source, configMap(fmt.Sprintf("object-%d", i)))
		}
		f := newFramework(t, framework.Config{Source: source, Recorder: recorder, BackOffFactory: everyMinute, Workers: 1},
			&resource{name: "r", created: func(_ context.Context, obj any) error {
				return framework.Permanent(errors.New(obj.(*corev1.ConfigMap).Name + strings.Repeat("x", length)))
			}})
		before := heap()
		stop := running(t, f)
		defer stop()
		operatortest.Eventually(t, "all objects have failed", func() bool { return recorder.events.Load() == objects && f.Status().Active == 0 })
		after := heap()
		runtime.KeepAlive(source)
		return after - before
	}
	short, long := grown(1), grown(length)
	if texts := int64(objects * length); long-short > texts/4 {
		t.Errorf("texts of %d bytes take %d bytes of memory", texts, long-short)
	}
}

// heap is how many bytes are in use. What pools had is kept by one collection and dropped by the next.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
