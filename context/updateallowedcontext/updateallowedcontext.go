// Package updateallowedcontext stores and accesses the signal that allows updates.
//
// Updates are allowed unless the InitCtx function of a resource set forbids them by returning
// NewContext(ctx). Then the update part of a patch is not applied, until InitCtx itself or a
// resource earlier in the list calls SetUpdateAllowed. Create and delete parts are not affected.
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

// IsUpdateAllowed reports whether updates are allowed: they were not forbidden, or have been
// allowed since.
func IsUpdateAllowed(ctx context.Context) bool {
	set, carried := signal.Lookup(ctx, signal.UpdateAllowed)
	return set || !carried
}
