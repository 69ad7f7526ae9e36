package retryresource_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/giantswarm/micrologger"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/resource/retryresource"
)

// world is a framework of one worker, and when its resource was called.
type world struct {
	t      *testing.T
	source *informer.Push
	log    *locked
	start  time.Time
	ensure func(obj *corev1.ConfigMap, call int) error

	mu              sync.Mutex
	calls           map[string][]string
	reconciliations int
}

// locked is what was logged.
type locked struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// newWorld runs a framework whose resources are wrapped by those backoffs, the first of which is the innermost, until stop is called.
func newWorld(t *testing.T, ensure func(obj *corev1.ConfigMap, call int) error, backOffs ...func() backoff.BackOff) (w *world, stop func()) {
	t.Helper()
	w = &world{t: t, source: informer.NewPush("objects"), start: time.Now(), ensure: ensure, log: &locked{}, calls: map[string][]string{}}
	log, err := micrologger.New(micrologger.Config{IOWriter: w.log})
	if err != nil {
		t.Fatal(err)
	}
	resources := []framework.Resource{&plain{name: "plain", ensure: w.call}}
	for _, b := range backOffs {
		resources, err = retryresource.Wrap(resources, retryresource.Config{Logger: log, BackOffFactory: b})
		if err != nil {
			t.Fatal(err)
		}
	}
	f, err := framework.New(framework.Config{Source: w.source, Workers: 1, Logger: log, Resources: resources, Observer: w,
		BackOffFactory: func() backoff.BackOff { return backoff.NewConstantBackOff(time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	return w, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func (w *world) Observe(*framework.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reconciliations++
}

func (w *world) call(_ context.Context, obj any) error {
	w.mu.Lock()
	cm := obj.(*corev1.ConfigMap)
	w.calls[cm.Name] = append(w.calls[cm.Name], time.Since(w.start).String())
	n := len(w.calls[cm.Name])
	w.mu.Unlock()
	return w.ensure(cm, n)
}

func (w *world) put(name string) {
	w.t.Helper()
	if err := w.source.Update(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		w.t.Fatal(err)
	}
}

// times returns how many more tries there are, each after the same pause.
func times(n uint64, pause time.Duration) func() backoff.BackOff {
	return func() backoff.BackOff { return backoff.WithMaxRetries(backoff.NewConstantBackOff(pause), n) }
}

func alwaysFails(*corev1.ConfigMap, int) error { return errFlaky }

func TestALongWaitGivesTheWorkerBackAndTheTriesCountOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, stop := newWorld(t, func(obj *corev1.ConfigMap, _ int) error {
			if obj.Name == "good" {
				return nil
			}
			return errFlaky
		}, times(4, 3*time.Second))
		w.put("bad")
		time.Sleep(time.Second)
		w.put("good")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		early := w.log.String()
		if strings.Contains(early, "reconciliation failed") {
			t.Errorf("a failure was told although there are tries left:\n%s", early)
		}
		time.Sleep(10 * time.Minute)
		stop()
		want := map[string][]string{"bad": {"0s", "3s", "6s", "9s", "12s"}, "good": {"1s"}}
		if diff := cmp.Diff(want, w.calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if got := strings.Count(w.log.String(), "reconciliation failed"); got != 1 || !strings.Contains(w.log.String(), "attempt 5: flaky") {
			t.Errorf("the failure was told %d times:\n%s", got, w.log)
		}
	})
}

func TestShortWaitsStayInTheStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, stop := newWorld(t, alwaysFails, times(12, 300*time.Millisecond))
		w.put("bad")
		time.Sleep(10 * time.Minute)
		stop()
		// Three waits fit into a second.
		if got := len(w.calls["bad"]); got != 13 || w.reconciliations != 4 {
			t.Errorf("%d calls in %d reconciliations, want 13 in 4: %v", got, w.reconciliations, w.calls)
		}
		if last := w.calls["bad"][12]; last != "3.6s" {
			t.Errorf("the last call came after %s, want 3.6s", last)
		}
	})
}

func TestTriesBeginAnewAfterASuccessAndAfterTheirEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, stop := newWorld(t, func(_ *corev1.ConfigMap, call int) error {
			if call == 3 {
				return nil
			}
			return errFlaky
		}, times(2, 3*time.Second))
		w.put("bad")
		time.Sleep(time.Minute)
		w.put("bad")
		time.Sleep(90 * time.Minute)
		stop()
		want := []string{"0s", "3s", "6s", "1m0s", "1m3s", "1m6s", "1h1m6s", "1h1m9s", "1h1m12s"}
		if diff := cmp.Diff(want, w.calls["bad"]); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

func TestNestedWrappersBothCountOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, stop := newWorld(t, alwaysFails, times(1, 3*time.Second), times(1, 5*time.Second))
		w.put("bad")
		time.Sleep(10 * time.Minute)
		stop()
		if diff := cmp.Diff([]string{"0s", "3s", "8s", "11s"}, w.calls["bad"]); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

func TestAStepWithoutABackOffHasTheDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		none := func() backoff.BackOff { return nil }
		err := framework.ProcessUpdate(t.Context(), "x", wrap(t, &plain{name: "plain", ensure: func(context.Context, any) error {
			if calls++; calls < 3 {
				return errFlaky
			}
			return nil
		}}, none))
		if err != nil || calls != 3 {
			t.Errorf("got %v after %d calls", err, calls)
		}
	})
}
