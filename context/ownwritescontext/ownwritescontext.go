// Package ownwritescontext makes the own writes of a reconciliation a reason to reconcile its
// object again.
//
// A reconciliation is not woken by the events of its own writes, because it can already read them.
// A resource that depends on writes of a later resource, and can't be placed after it, requests
// another reconciliation:
//
//	if !tokens.Issued() { // by a resource further down
//		ownwritescontext.SetKept(ctx)
//		return nil
//	}
//
// It applies to this reconciliation, including its writes before SetKept. Without writes no further
// reconciliation happens. To have it always, set OwnWrites of the framework.Watch or
// framework.Config. On a context without a reconciliation of a framework SetKept does nothing. It
// is safe for concurrent use.
package ownwritescontext

import "context"

// Keeper keeps the events of a reconciliation's own writes.
type Keeper interface {
	// KeepOwn makes these writes a reason to reconcile the object again.
	KeepOwn()
}

type key struct{}

// Key is the context key of the Keeper of a reconciliation.
var Key any = key{}

// SetKept keeps the events of own writes for the current reconciliation.
func SetKept(ctx context.Context) {
	if k, ok := ctx.Value(Key).(Keeper); ok {
		k.KeepOwn()
	}
}
