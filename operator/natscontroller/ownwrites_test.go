package natscontroller_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// looking is a controller that counts how often it looks at a gateway, and writes to it and to its route.
type looking struct {
	*copying
	looks atomic.Int64
}

func (l *looking) SyncHandlerContext(ctx context.Context, key string) error {
	l.looks.Add(1)
	gateway, err := l.gateways.Get(ctx, key)
	if err == nil && gateway.Annotations == nil {
		gateway.Annotations = map[string]string{"looked": "at"}
		if err := l.gateways.Update(ctx, gateway); err != nil {
			return err
		}
	}
	return l.copying.SyncHandlerContext(ctx, key)
}

func TestR11OwnWritesWakeNobodyAndThoseOfOthersDo(t *testing.T) {
	w := newWorld(t)
	own := openWorld(t, w.js, nil)
	l := &looking{copying: &copying{ControllerRuntime: own.controller(own.config()), gateways: own.gateways, routes: own.routes}}
	l.SetCustomController(l)
	run(t, l.Start)
	hostOf := func(name, host string) func() bool {
		return func() bool {
			route, err := w.routes.Get(t.Context(), name)
			return err == nil && route.Host == host
		}
	}
	const gateways = 20
	for i := range gateways {
		name := "gateway-" + strconv.Itoa(i)
		w.createGateway(name, "a")
		operatortest.Eventually(t, "the route of "+name, hostOf(name, "a"))
	}
	// A change of somebody else comes through the same watch: what the earlier ones cause stands before it.
	route, err := w.routes.Get(t.Context(), "gateway-0")
	if err != nil {
		t.Fatal(err)
	}
	route.Host = "theirs"
	if err := w.routes.Update(t.Context(), route); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the change of another is put right", hostOf("gateway-0", "a"))
	// An own write that the watch shows beside something of which nobody can tell whose it is may wake its author once more.
	if looks := l.looks.Load(); looks < gateways+1 || looks > gateways+gateways/4 {
		t.Errorf("%d looks at %d gateways and one change", looks, gateways)
	}
}
