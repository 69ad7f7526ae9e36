package natscontroller_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/natscontroller"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestANilCustomControllerIsAnError(t *testing.T) {
	for name, custom := range map[string]natscontroller.IController{"nil": nil, "a pointer that is nil": (*classic)(nil)} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.controller(w.config())
			c.SetCustomController(custom)
			errCh := make(chan error, 1)
			c.Run(1, make(chan struct{}), errCh)
			if err := <-errCh; !framework.IsInvalidConfig(err) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestAKeyThatNoEntryCanHaveIsDroppedWithAMessage(t *testing.T) {
	w := newWorld(t)
	c := newClassic(w, w.config())
	c.EnqueueKey("not a key", natscontroller.OperationPut)
	c.EnqueueKeyAfter("ends.with.", natscontroller.OperationPut, 0)
	run(t, c.Start)
	c.EnqueueKey("", natscontroller.OperationPut)
	c.EnqueueKey("a key", natscontroller.OperationSecondary)
	c.EnqueueKey("last", natscontroller.OperationPut)
	operatortest.Eventually(t, "the key that can be one", func() bool { return c.calls.contains("sync last") })
	if got := w.log.count("enqueued key dropped"); got != 4 {
		t.Errorf("%d were dropped, want 4", got)
	}
	if got := w.log.count("invalid key"); got != 0 {
		t.Errorf("%d attempts with an invalid key", got)
	}
}

func TestOneOddOwnerDoesNotStopTheSearchForGarbage(t *testing.T) {
	w := newWorld(t)
	w.createRoute("odd", kind, "not a key")
	w.createRoute("orphan", kind, "gone")
	config := w.config()
	config.Garbage.Interval = searchesOften
	run(t, w.controller(config).Start)
	operatortest.Eventually(t, "the orphan is collected", w.hasRoutes("odd"))
	if !w.log.contains("can't be the key of an entry") {
		t.Error("nobody was told of the odd one")
	}
}

func TestOneOddKeyDoesNotStopTheSearchForGarbage(t *testing.T) {
	w := newWorld(t)
	w.createRoute("orphan", kind, "gone")
	kv, err := w.js.KeyValue(t.Context(), "routes")
	if err != nil {
		t.Fatal(err)
	}
	orphan, err := kv.Get(t.Context(), "orphan")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.js.Publish(t.Context(), "$KV.routes.a:b", orphan.Value()); err != nil {
		t.Fatal(err)
	}
	config := w.config()
	config.Garbage.Interval = searchesOften
	run(t, w.controller(config).Start)
	operatortest.Eventually(t, "the orphan is collected", w.hasRoutes("a:b"))
	if !w.log.contains("its name can't be the key of an entry") {
		t.Error("nobody was told of the odd one")
	}
}

// contextual has SyncHandlerContext.
type contextual struct {
	*classic
	called atomic.Int32
}

func (c *contextual) SyncHandlerContext(ctx context.Context, key string) error {
	c.calls.add("context " + key)
	if c.called.Add(1) == 1 {
		requeuecontext.SetAfter(ctx, time.Millisecond)
	}
	return ctx.Err()
}

func TestSyncHandlerContextIsCalledInPlaceOfSyncHandler(t *testing.T) {
	w := newWorld(t)
	w.createGateway("here")
	c := &contextual{classic: newClassic(w, w.config())}
	c.SetCustomController(c)
	run(t, c.Start)
	operatortest.Eventually(t, "it is called again because it has asked for that", func() bool { return c.calls.count("context here") >= 2 })
	c.EnqueueKey("gone", natscontroller.OperationPut)
	operatortest.Eventually(t, "a key without an entry", func() bool { return c.calls.contains("context gone") })
	if calls := c.calls.all(); slices.Contains(calls, "sync here") || slices.Contains(calls, "sync gone") {
		t.Errorf("the calls are %q", calls)
	}
}

// patient has a SyncHandlerContext that goes on until its context ends.
type patient struct {
	*classic
	begun, ended chan struct{}
}

func (p *patient) SyncHandlerContext(ctx context.Context, _ string) error {
	close(p.begun)
	<-ctx.Done()
	close(p.ended)
	return ctx.Err()
}

func TestTheContextOfASyncHandlerContextEndsWhenTheControllerHadToStopAndItsTimeIsOver(t *testing.T) {
	w := newWorld(t)
	w.createGateway("here")
	config := w.config()
	config.ShutdownTimeout = time.Millisecond
	p := &patient{classic: newClassic(w, config), begun: make(chan struct{}), ended: make(chan struct{})}
	p.SetCustomController(p)
	running := run(t, p.Start)
	<-p.begun
	if err := running.stop(); err != nil {
		t.Error(err)
	}
	select {
	case <-p.ended:
	default:
		t.Error("the controller has ended, and the call goes on")
	}
}

func TestTheSecondariesOfAPrimaryWhoseDeletionNothingProcessesAreGarbage(t *testing.T) {
	w := newWorld(t)
	w.createGateway("unhandled")
	w.createRoute("route", kind, "unhandled")
	set, err := framework.NewResourceSet(framework.ResourceSetConfig{
		Handles:   func(obj any) bool { return obj.(*Gateway).Name != "unhandled" },
		Resources: []framework.Resource{&mirroring{writer: "c", routes: w.routes}},
	})
	if err != nil {
		t.Fatal(err)
	}
	config := w.config()
	config.Garbage.Interval = searchesOften
	config.ResourceSets = []*framework.ResourceSet{set}
	running := run(t, w.controller(config).Start)
	operatortest.Eventually(t, "the controller knows the primary", func() bool { return config.Primary.Status().Synced })
	w.deleteGateway("unhandled")
	operatortest.Eventually(t, "the route is collected", w.hasRoutes())
	if err := running.stop(); err != nil {
		t.Fatal(err)
	}
}
