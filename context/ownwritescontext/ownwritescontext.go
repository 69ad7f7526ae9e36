// Package ownwritescontext makes what a reconciliation writes a reason to reconcile its object again.
//
// A reconciliation is not woken by the events of what it has written itself: it has read its own writes already. A resource that reads
// what a later resource writes, and can't stand after it, asks for another look:
//
//	if !tokens.Issued() { // by a resource further down
//		ownwritescontext.SetKept(ctx)
//		return nil
//	}
//
// It holds for this reconciliation, and for what was written before SetKept as well. If nothing is written, there is no other look. To
// have it always, set OwnWrites of the framework.Watch or framework.Config. On a context without a reconciliation of a framework
// SetKept does nothing. It is safe for concurrent use.
package ownwritescontext

import "context"

// Keeper keeps the events of what was written for a reconciliation.
type Keeper interface {
	// KeepOwn makes them a reason to reconcile its object again.
	KeepOwn()
}

type key struct{}

// Key is the key under which the context of a reconciliation has its Keeper.
var Key any = key{}

// SetKept keeps the events of own writes for the current reconciliation.
func SetKept(ctx context.Context) {
	if k, ok := ctx.Value(Key).(Keeper); ok {
		k.KeepOwn()
	}
}
