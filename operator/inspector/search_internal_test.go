package inspector

import (
	"io"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

// TestSearchNeedsNothingThatRecordingHolds has a search end while somebody records for as long as it takes.
func TestSearchNeedsNothingThatRecordingHolds(t *testing.T) {
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	i, err := New(Config{Name: "o", Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	source := informer.NewPush("sites")
	f, err := framework.New(framework.Config{Name: "sites", Source: source, Logger: logger, Observer: i, Resources: []framework.Resource{idle{}}})
	if err != nil {
		t.Fatal(err)
	}
	i.Watch(f)
	for _, name := range []string{"a", "b", "gone"} {
		i.Observe(&framework.Record{Framework: "sites", Key: informer.Key{Name: name}, Outcome: framework.Failed, Error: "no"})
	}
	for _, name := range []string{"a", "b"} {
		if err := source.Update(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}

	i.memory.mu.Lock()
	defer i.memory.mu.Unlock()
	found := make(chan int, 1)
	go func() {
		list, _ := i.list(t.Context(), query{words: [][]byte{[]byte("no")}, limit: defaultLimit})
		found <- list.Total
	}()
	select {
	case n := <-found:
		if n != 3 {
			t.Errorf("%d objects are found, want 3", n)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("a search waits for those who record, and so they would for it")
	}
}

// idle is a resource that does nothing.
type idle struct{ framework.Resource }

func (idle) Name() string { return "idle" }
