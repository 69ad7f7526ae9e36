package worklist

import (
	"context"
	"fmt"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
)

// NewCheck returns a resource that changes nothing, and fails with what look returns: for an update, a deletion and a plan alike.
func NewCheck[O any](name string, look func(ctx context.Context, obj O) error) framework.Resource {
	return &check[O]{name, look}
}

type check[O any] struct {
	name string
	look func(ctx context.Context, obj O) error
}

var _ framework.Planner = (*check[any])(nil)

// Name implements framework.Resource.
func (c *check[O]) Name() string { return c.name }

// EnsureCreated implements framework.Resource.
func (c *check[O]) EnsureCreated(ctx context.Context, obj any) error {
	o, ok := obj.(O)
	if !ok {
		return framework.Permanent(fmt.Errorf("object is a %T, but the resource is for %T: check Handles of its resource set", obj, o))
	}
	return c.look(ctx, o)
}

// EnsureDeleted implements framework.Resource.
func (c *check[O]) EnsureDeleted(ctx context.Context, obj any) error {
	return c.EnsureCreated(ctx, obj)
}

// Plan implements framework.Planner.
func (c *check[O]) Plan(ctx context.Context, _ plan.Event, obj any) ([]plan.Change, error) {
	return nil, c.EnsureCreated(ctx, obj)
}

// ToMend makes one error of faults, which names them all; it is nil without any. When all are permanent, so is the error, and
// otherwise it is tried again with backoff, whatever is in it.
func ToMend(faults []error, permanent func(error) bool) error {
	var all error
	stays := true
	for _, fault := range faults {
		stays = stays && permanent(fault)
		if all != nil {
			fault = fmt.Errorf("%w; %w", all, fault)
		}
		all = fault
	}
	switch {
	case all == nil:
		return nil
	case stays:
		return framework.Permanent(all)
	}
	return Failures(all)
}
