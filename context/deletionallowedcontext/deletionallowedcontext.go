// Package deletionallowedcontext stores and accesses the signal that allows the deletion of an
// object.
//
// Deletion is allowed unless the InitCtx function of a resource set forbids it by returning
// NewContext(ctx). Then, while an object is being deleted, the delete part of a patch is not
// applied and the finalizer stays, until InitCtx itself or a resource earlier in the list calls
// SetDeletionAllowed. A deletion that was held back is retried with backoff. Plain resources must
// call IsDeletionAllowed themselves.
//
//	InitCtx: func(ctx context.Context, obj any) (context.Context, error) {
//		ctx = deletionallowedcontext.NewContext(ctx)
//		if !protected(obj) {
//			deletionallowedcontext.SetDeletionAllowed(ctx)
//		}
//		return ctx, nil
//	}
//
// On a context without the signal SetDeletionAllowed does nothing and IsDeletionAllowed is true.
package deletionallowedcontext

import (
	"context"

	"github.com/operatorkit/operatorkit/context/signal"
)

// NewContext returns a child of ctx that carries the signal, not set.
func NewContext(ctx context.Context) context.Context {
	return signal.With(ctx, signal.DeletionAllowed)
}

// SetDeletionAllowed allows the deletion from now on in the current reconciliation.
func SetDeletionAllowed(ctx context.Context) {
	signal.Set(ctx, signal.DeletionAllowed)
}

// IsDeletionAllowed reports whether the deletion is allowed: it was not forbidden, or has been
// allowed since.
func IsDeletionAllowed(ctx context.Context) bool {
	set, carried := signal.Lookup(ctx, signal.DeletionAllowed)
	return set || !carried
}
