package signal_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/operatorkit/operatorkit/context/deletionallowedcontext"
	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/context/resourcecanceledcontext"
	"github.com/operatorkit/operatorkit/context/signal"
	"github.com/operatorkit/operatorkit/context/updateallowedcontext"
	"github.com/operatorkit/operatorkit/context/updatenecessarycontext"
)

var packages = map[string]struct {
	signal     signal.Signal
	newContext func(context.Context) context.Context
	set        func(context.Context)
	is         func(context.Context) bool
	absent     bool
}{
	"deletionallowed": {signal.DeletionAllowed, deletionallowedcontext.NewContext, deletionallowedcontext.SetDeletionAllowed,
		deletionallowedcontext.IsDeletionAllowed, true},
	"finalizerskept": {signal.FinalizersKept, finalizerskeptcontext.NewContext, finalizerskeptcontext.SetKept, finalizerskeptcontext.IsKept, false},
	"reconciliationcanceled": {signal.ReconciliationCanceled, reconciliationcanceledcontext.NewContext, reconciliationcanceledcontext.SetCanceled,
		reconciliationcanceledcontext.IsCanceled, false},
	"resourcecanceled": {signal.ResourceCanceled, resourcecanceledcontext.NewContext, resourcecanceledcontext.SetCanceled,
		resourcecanceledcontext.IsCanceled, false},
	"updateallowed": {signal.UpdateAllowed, updateallowedcontext.NewContext, updateallowedcontext.SetUpdateAllowed,
		updateallowedcontext.IsUpdateAllowed, true},
	"updatenecessary": {signal.UpdateNecessary, updatenecessarycontext.NewContext, updatenecessarycontext.SetUpdateNecessary,
		updatenecessarycontext.IsUpdateNecessary, false},
}

func TestR8SignalIsHarmlessOnAContextWithoutIt(t *testing.T) {
	for name, p := range packages {
		t.Run(name, func(t *testing.T) {
			p.set(t.Context())
			if got := p.is(t.Context()); got != p.absent {
				t.Errorf("without the signal it is %v, want %v", got, p.absent)
			}
		})
	}
}

func TestAScopeTellsWhetherAnythingIsSetInIt(t *testing.T) {
	for name, p := range packages {
		outer, inner := &signal.Scope{}, &signal.Scope{}
		outer.Init(t.Context(), p.signal)
		inner.Init(outer)
		p.set(inner)
		if !outer.IsAnySet() || inner.IsAnySet() {
			t.Errorf("%s: after the signal of the outer scope was set it is %v there and %v in the inner one", name, outer.IsAnySet(), inner.IsAnySet())
		}
	}
	scope := &signal.Scope{}
	scope.Init(t.Context())
	scope.CarryRequeue()
	if scope.IsAnySet() {
		t.Error("something is set in a new scope")
	}
	requeuecontext.SetAfter(scope, time.Second)
	if !scope.IsAnySet() {
		t.Error("nothing is set in a scope with a requeue")
	}
}

func TestSignalIsSeenUpTheContextAndNowhereElse(t *testing.T) {
	for name, p := range packages {
		scope := &signal.Scope{}
		scope.Init(t.Context(), p.signal)
		for kind, ctx := range map[string]context.Context{"single": p.newContext(t.Context()), "scope": scope} {
			t.Run(name+" "+kind, func(t *testing.T) {
				if p.is(ctx) {
					t.Error("a new signal is set")
				}
				inner := p.newContext(ctx)
				p.set(inner)
				if p.is(ctx) || !p.is(inner) {
					t.Error("a signal set in an inner scope is not that scope's alone")
				}
				child, cancel := context.WithCancel(ctx)
				defer cancel()
				p.set(child)
				if !p.is(ctx) || !p.is(child) {
					t.Error("a signal set further down is not seen")
				}
				for other, q := range packages {
					if other != name && q.is(ctx) != q.absent {
						t.Errorf("it sets %s as well", other)
					}
				}
			})
		}
	}
}

func TestSignalsAreSafeForConcurrentUse(t *testing.T) {
	ctx := requeuecontext.NewContext(resourcecanceledcontext.NewContext(t.Context()))
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			resourcecanceledcontext.SetCanceled(ctx)
			resourcecanceledcontext.IsCanceled(ctx)
			requeuecontext.SetAfter(ctx, time.Duration(i+1)*time.Second)
		})
	}
	wg.Wait()
	if after, ok := requeuecontext.After(ctx); !ok || after != time.Second {
		t.Errorf("got %v, want the shortest, 1s", after)
	}
}

func TestRequeue(t *testing.T) {
	requeuecontext.SetAfter(t.Context(), time.Second)
	if _, ok := requeuecontext.After(t.Context()); ok {
		t.Error("a context without the request has one")
	}
	ctx := requeuecontext.NewContext(t.Context())
	if _, ok := requeuecontext.After(ctx); ok {
		t.Error("a new context has a request")
	}
	requeuecontext.SetAfter(ctx, 0)
	if after, ok := requeuecontext.After(ctx); !ok || after > time.Millisecond {
		t.Errorf("got %v and %v, want a request for at once", after, ok)
	}
}
