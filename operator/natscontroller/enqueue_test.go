package natscontroller_test

import (
	"sync"
	"testing"
	"time"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/natscontroller"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestEnqueuedKeysAreHandledWhetherThereIsAnEntryOrNot(t *testing.T) {
	w := newWorld(t)
	w.createGateway("here")
	c := newClassic(w, w.config())
	synced := func(key string) func() bool {
		return func() bool { return c.calls.contains("sync " + key) }
	}
	c.EnqueueKey("early", natscontroller.OperationDelete)
	run(t, c.Start)
	operatortest.Eventually(t, "the backlog", synced("here"))
	operatortest.Eventually(t, "the key without an entry that was enqueued before the start", synced("early"))

	for _, operation := range []natscontroller.Operation{
		natscontroller.OperationPut, natscontroller.OperationDelete, natscontroller.OperationPurge, natscontroller.OperationSecondary,
	} {
		for _, key := range []string{"here", "gone"} {
			c.calls.take()
			c.EnqueueKey(key, operation)
			operatortest.Eventually(t, operation.String()+" "+key, synced(key))
		}
	}

	// The earliest of several delayed calls counts.
	for _, key := range []string{"here", "gone"} {
		c.calls.take()
		c.EnqueueKeyAfter(key, natscontroller.OperationPut, time.Hour)
		c.EnqueueKeyAfter(key, natscontroller.OperationPut, time.Millisecond)
		c.EnqueueKeyAfter(key, natscontroller.OperationPut, time.Hour)
		operatortest.Eventually(t, "the delayed call for "+key, synced(key))
	}
}

func TestDelayedCallHoldsAlthoughTheKeySucceedsInBetween(t *testing.T) {
	w := newWorld(t)
	w.createGateway("here")
	for _, key := range []string{"here", "gone"} {
		t.Run(key, func(t *testing.T) {
			config := w.config()
			config.Secondaries = nil
			c := newClassic(w, config)
			begun, release := make(chan struct{}), make(chan struct{})
			var first sync.Once
			c.fail = func(called string) error {
				if called == key {
					first.Do(func() { close(begun); <-release })
				}
				return nil
			}
			c.EnqueueKey("gone", natscontroller.OperationPurge)
			run(t, c.Start)
			<-begun
			// The call that has begun ends after this one was put off, and knows nothing of it.
			c.EnqueueKeyAfter(key, natscontroller.OperationPut, 300*time.Millisecond)
			close(release)
			operatortest.Eventually(t, "the delayed call", func() bool { return c.calls.count("sync "+key) >= 2 })
		})
	}
}

func TestDelayedCallFromBeforeTheStartHolds(t *testing.T) {
	w := newWorld(t)
	c := newClassic(w, w.config())
	c.EnqueueKeyAfter("gone", natscontroller.OperationPut, time.Millisecond)
	c.EnqueueKeyAfter("later", natscontroller.OperationPut, 300*time.Millisecond)
	run(t, c.Start)
	for _, key := range []string{"gone", "later"} {
		operatortest.Eventually(t, "the delayed call for "+key, func() bool { return c.calls.contains("sync " + key) })
	}
}

func TestKeyWithoutAnEntryIsHandledAgainForWhatHappensMeanwhileAndNotForEachCall(t *testing.T) {
	w := newWorld(t)
	c := newClassic(w, w.config())
	started, release := make(chan struct{}), make(chan struct{})
	first := true
	c.fail = func(string) error {
		if first {
			first = false
			close(started)
			<-release
			return errBroken
		}
		return nil
	}
	run(t, c.Start)
	c.EnqueueKey("gone", natscontroller.OperationPurge)
	<-started
	for range 100 {
		c.EnqueueKey("gone", natscontroller.OperationPurge)
	}
	close(release)
	w.createGateway("marker")
	operatortest.Eventually(t, "the calls", func() bool { return c.calls.contains("sync marker") && c.calls.count("sync gone") >= 3 })
	// The one that failed, its retry, and one for all that came meanwhile.
	if n := c.calls.count("sync gone"); n != 3 {
		t.Errorf("SyncHandler was called %d times, want 3", n)
	}
}

func TestAKeyThatGotItsEntryBeforeItsTurnIsHandledOnceItHasNoneAgain(t *testing.T) {
	w := newWorld(t)
	config := w.config()
	config.Secondaries, config.Workers = nil, 1
	c := newClassic(w, config)
	started, release := make(chan struct{}), make(chan struct{})
	c.fail = func(key string) error {
		if key == "busy" {
			started <- struct{}{}
			<-release
		}
		return nil
	}
	run(t, c.Start)
	handled := func() bool { return c.calls.contains("sync late") }
	for range 3 {
		c.EnqueueKey("busy", natscontroller.OperationPut)
		<-started
		c.EnqueueKey("late", natscontroller.OperationPut)
		w.createGateway("late")
		c.calls.take()
		release <- struct{}{}
		operatortest.Eventually(t, "the entry is handled", handled)
		w.deleteGateway("late")
		operatortest.Eventually(t, "the entry is gone", func() bool {
			_, exists, _ := config.Primary.Get(informer.Key{Name: "late"})
			return !exists && len(w.keys("gateways")) == 0
		})
	}
	c.calls.take()
	c.EnqueueKey("late", natscontroller.OperationPut)
	operatortest.Eventually(t, "the key is handled", handled)
}
