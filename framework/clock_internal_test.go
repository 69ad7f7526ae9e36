package framework

import (
	"context"
	"io"
	"testing"
	"time"
	"unsafe"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/informer"
)

// beforeClockWasSet returns the moment as the clock showed it before it was set to an hour later. It knows the layout of time.Time.
func beforeClockWasSet(moment time.Time) time.Time {
	const secondsAt = 30
	parts := (*struct {
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&moment))
	parts.wall -= 3600 << secondsAt
	return moment
}

type observed chan Record

func (o observed) Observe(r *Record) { o <- *r }

func TestTimesAreThoseOfTheClockAlsoAfterItWasSet(t *testing.T) {
	records := make(observed, 1)
	source := informer.NewPush("objects")
	if err := source.Update(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	resource, err := NewCRUDResource(CRUDResourceConfig{Logger: logger, Ops: settledOps{"settled"}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := New(Config{Source: source, Resources: []Resource{resource}, Logger: logger, Observer: records})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now().Round(0)
	f.metrics.epoch = beforeClockWasSet(f.metrics.epoch)
	if apart := begin.Sub(f.metrics.epoch.Round(0)); apart < time.Hour {
		t.Fatalf("the clock was set by %s only", apart)
	}

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	record := <-records
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]time.Time{
		"the record's start":  record.Started,
		"when it was queued":  wallTime(beforeClockWasSet(time.Now())),
		"last reconciliation": time.Unix(0, f.metrics.lastRun.Load()),
		"last success":        time.Unix(0, f.metrics.lastGood.Load()),
	} {
		if at.Round(0).Before(begin) {
			t.Errorf("%s is %s, %s before the test began", name, at, begin.Sub(at.Round(0)))
		}
	}
}
