package statuses

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
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

// Router returns a router with one resource set, for the objects that handles holds for; nil is all. Compute works out what Get returns to its
// resources, and gets a copy of the object.
func Router[O client.Object, T any](
	d *operator.Dependencies, handles func(obj any) bool, memo Memo[T], compute func(context.Context, O) (T, error), resources ...framework.Resource,
) (*framework.ResourceRouter, error) {
	if handles == nil {
		handles = framework.HandlesType[O]
	}
	set, err := framework.NewResourceSet(framework.ResourceSetConfig{
		Handles: handles, Logger: d.Logger, Resources: resources,
		InitCtx: func(ctx context.Context, obj any) (context.Context, error) {
			o := obj.(O).DeepCopyObject().(O)
			return memo.With(ctx, func(ctx context.Context) (T, error) { return compute(ctx, o) }), nil
		},
	})
	if err != nil {
		return nil, err
	}
	return framework.NewResourceRouter(framework.ResourceRouterConfig{Logger: d.Logger, ResourceSets: []*framework.ResourceSet{set}})
}
