package natscontroller_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// looking is a controller that counts how often it looks at a gateway, and writes to it and to its route. With slow, of an event of somebody
// else's it hands on the state before it only when the look has begun that the state after it has caused.
type looking struct {
	*copying
	looks atomic.Int64
	slow  atomic.Bool
	begun chan struct{}
}

func newLooking(w *world) *looking {
	w.t.Helper()
	own := openWorld(w.t, w.js, nil)
	config := own.config()
	config.Workers = 1 // What was enqueued earlier is looked at earlier.
	l := &looking{begun: make(chan struct{}, 1), copying: &copying{
		ControllerRuntime: own.controller(config), gateways: own.gateways, routes: own.routes, suffixes: []string{""},
	}}
	l.SetCustomController(l)
	return l
}

func (l *looking) SyncHandlerContext(ctx context.Context, key string) error {
	l.looks.Add(1)
	if l.slow.CompareAndSwap(true, false) {
		l.begun <- struct{}{}
	}
	gateway, err := l.gateways.Get(ctx, key)
	if err == nil && gateway.Annotations == nil {
		gateway.Annotations = map[string]string{"looked": "at"}
		if err := l.gateways.Update(ctx, gateway); err != nil {
			return err
		}
	}
	return l.copying.SyncHandlerContext(ctx, key)
}

func (l *looking) HandleSecondary(obj any) {
	waits := l.slow.Load() && obj.(*Route).Host == "theirs"
	l.ControllerRuntime.HandleSecondary(obj)
	if waits {
		<-l.begun
	}
}

func TestR11OwnWritesWakeNobodyAndThoseOfOthersDo(t *testing.T) {
	w := newWorld(t)
	l := newLooking(w)
	run(t, l.Start)
	has := func(name, host string) {
		t.Helper()
		operatortest.Eventually(t, "the route of "+name+" to "+host, func() bool {
			route, err := w.routes.Get(t.Context(), name)
			return err == nil && route.Host == host
		})
	}
	const gateways = 20
	for i := range gateways {
		name := "gateway-" + strconv.Itoa(i)
		w.createGateway(name, "a")
		has(name, "a")
	}
	// A change of somebody else is looked at once, although the route names its owner before and after it.
	route, err := w.routes.Get(t.Context(), "gateway-0")
	if err != nil {
		t.Fatal(err)
	}
	route.Host = "theirs"
	l.slow.Store(true)
	if err := w.routes.Update(t.Context(), route); err != nil {
		t.Fatal(err)
	}
	has("gateway-0", "a")
	w.deleteGateway("gateway-1")
	operatortest.Eventually(t, "the route of gateway-1 is gone", func() bool {
		_, err := w.routes.Get(t.Context(), "gateway-1")
		return apierrors.IsNotFound(err)
	})
	// Of two that come later the second is looked at after all that the earlier ones have caused.
	for _, name := range []string{"last", "very-last"} {
		w.createGateway(name, "a")
		has(name, "a")
	}
	// Each new one once, one change of a route, and one deletion.
	if looks, want := l.looks.Load(), int64(gateways+2+1+1); looks != want {
		t.Errorf("%d looks, want %d", looks, want)
	}
}
