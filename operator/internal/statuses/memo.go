package statuses

import (
	"context"
	"sync"
)

// Memo holds what the resources of one reconciliation look at, so that all of them see the same, and it is worked out once.
type Memo[T any] struct{}

// With returns a context in which Get returns what compute does.
func (m Memo[T]) With(ctx context.Context, compute func(context.Context) (T, error)) context.Context {
	return context.WithValue(ctx, m, sync.OnceValues(func() (T, error) { return compute(ctx) }))
}

// Get returns what was worked out in the reconciliation of ctx.
func (m Memo[T]) Get(ctx context.Context) (T, error) {
	return ctx.Value(m).(func() (T, error))()
}
