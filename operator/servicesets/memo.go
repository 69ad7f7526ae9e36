package servicesets

import (
	"context"
	"sync"
)

// memo holds what the resources of one reconciliation look at, so that all of them see the same, and it is worked out once.
type memo[T any] struct{}

// with returns a context in which get returns what compute does.
func (m memo[T]) with(ctx context.Context, compute func(context.Context) (T, error)) context.Context {
	return context.WithValue(ctx, m, sync.OnceValues(func() (T, error) { return compute(ctx) }))
}

// get returns what was worked out in the reconciliation of ctx.
func (m memo[T]) get(ctx context.Context) (T, error) {
	return ctx.Value(m).(func() (T, error))()
}
