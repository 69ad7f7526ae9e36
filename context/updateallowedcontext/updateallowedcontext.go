// Package updateallowedcontext stores and accesses the signal that allows updates.
//
// Updates are allowed unless somebody forbids them: the InitCtx function of a resource set does by returning
// NewContext(ctx). From then on the update part of no patch is applied, until SetUpdateAllowed is called by InitCtx
// itself or by a resource earlier in the list. Create and delete parts are not affected.
//
//	InitCtx: func(ctx context.Context, obj any) (context.Context, error) {
//		ctx = updateallowedcontext.NewContext(ctx) // forbidden …
//		if inMaintenanceWindow(obj) {
//			updateallowedcontext.SetUpdateAllowed(ctx) // … but now
//		}
//		return ctx, nil
//	}
//
// On a context without the signal SetUpdateAllowed does nothing and IsUpdateAllowed is true.
package updateallowedcontext

import (
	"context"

	"github.com/operatorkit/operatorkit/context/signal"
)

// NewContext returns a child of ctx that carries the signal, not set.
func NewContext(ctx context.Context) context.Context {
	return signal.With(ctx, signal.UpdateAllowed)
}

// SetUpdateAllowed allows updates from now on in the current reconciliation.
func SetUpdateAllowed(ctx context.Context) {
	signal.Set(ctx, signal.UpdateAllowed)
}

// IsUpdateAllowed tells whether updates are allowed: nobody forbade them, or they were allowed since.
func IsUpdateAllowed(ctx context.Context) bool {
	set, carried := signal.Lookup(ctx, signal.UpdateAllowed)
	return set || !carried
}
