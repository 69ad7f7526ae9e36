// Package resourcecanceledcontext stores and accesses the signal that cancels the rest of one
// resource.
//
// A resource that has nothing more to do calls SetCanceled and returns nil. The remaining steps of
// this resource are skipped; the next resource runs as usual. The framework gives every resource
// its own signal.
//
//	func (r *Resource) GetCurrentState(ctx context.Context, obj any) (any, error) {
//		if !ready(obj) {
//			resourcecanceledcontext.SetCanceled(ctx)
//			return nil, nil
//		}
//		...
//	}
//
// On a context without the signal SetCanceled does nothing and IsCanceled is false.
package resourcecanceledcontext

import (
	"context"

	"github.com/operatorkit/operatorkit/context/signal"
)

// NewContext returns a child of ctx that carries the signal, not set.
func NewContext(ctx context.Context) context.Context {
	return signal.With(ctx, signal.ResourceCanceled)
}

// SetCanceled cancels the rest of the current resource.
func SetCanceled(ctx context.Context) {
	signal.Set(ctx, signal.ResourceCanceled)
}

// IsCanceled reports whether the rest of the current resource is cancelled.
func IsCanceled(ctx context.Context) bool {
	set, _ := signal.Lookup(ctx, signal.ResourceCanceled)
	return set
}
