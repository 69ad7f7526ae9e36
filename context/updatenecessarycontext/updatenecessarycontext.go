// Package updatenecessarycontext stores and accesses the signal by which a resource informs the
// later ones of the same reconciliation that an update is necessary. The framework provides it in
// every reconciliation and does not interpret it.
//
//	if outdated(current, desired) {
//		updatenecessarycontext.SetUpdateNecessary(ctx) // the drainer, later in the list, starts now
//	}
//
// On a context without the signal SetUpdateNecessary does nothing and IsUpdateNecessary is false.
package updatenecessarycontext

import (
	"context"

	"github.com/operatorkit/operatorkit/context/signal"
)

// NewContext returns a child of ctx that carries the signal, not set.
func NewContext(ctx context.Context) context.Context {
	return signal.With(ctx, signal.UpdateNecessary)
}

// SetUpdateNecessary informs the later resources that an update is necessary.
func SetUpdateNecessary(ctx context.Context) {
	signal.Set(ctx, signal.UpdateNecessary)
}

// IsUpdateNecessary reports whether a resource has found that an update is necessary.
func IsUpdateNecessary(ctx context.Context) bool {
	set, _ := signal.Lookup(ctx, signal.UpdateNecessary)
	return set
}
