package servicesetresource

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset"
)

// DefaultCheckName is the name of a check that is given none.
const DefaultCheckName = "service-owners"

// CheckConfig configures a check for primaries of type O.
type CheckConfig[O any] struct {
	// Name identifies the resource in logs, metrics and errors. Default: DefaultCheckName.
	Name string
	// Compute is that of Config. A check that follows in the same reconciliation may be given the same answer. Required.
	Compute Compute[O]
}

// NewCheck returns a resource that changes nothing, and fails with what the owners of services have to mend: it names all of
// them. It is the last resource of its set, so that all that can be done is done before. The error says
// framework.IsPermanent for what a watch will tell of: dependencies that contradict each other, and a
// StateManagementProvider that does not exist. The rest is tried again with backoff.
//
// The error of NewCheck is one for which framework.IsInvalidConfig holds.
func NewCheck[O any](config CheckConfig[O]) (framework.Resource, error) {
	if config.Name == "" {
		config.Name = DefaultCheckName
	}
	if config.Compute == nil {
		return nil, fmt.Errorf("%w: servicesetresource.CheckConfig: Compute must not be nil", framework.ErrInvalidConfig)
	}
	return &check[O]{config}, nil
}

// check is a resource that only looks.
type check[O any] struct{ config CheckConfig[O] }

var _ framework.Planner = (*check[any])(nil)

// Name implements framework.Resource.
func (c *check[O]) Name() string { return c.config.Name }

// EnsureCreated implements framework.Resource.
func (c *check[O]) EnsureCreated(ctx context.Context, obj any) error { return c.look(ctx, obj) }

// EnsureDeleted implements framework.Resource.
func (c *check[O]) EnsureDeleted(ctx context.Context, obj any) error { return c.look(ctx, obj) }

// Plan implements framework.Planner.
func (c *check[O]) Plan(ctx context.Context, _ plan.Event, obj any) ([]plan.Change, error) {
	return nil, c.look(ctx, obj)
}

// look returns what is wrong with the owners.
func (c *check[O]) look(ctx context.Context, obj any) error {
	o, ok := obj.(O)
	if !ok {
		return framework.Permanent(fmt.Errorf("object is a %T, but the resource is for %T: check Handles of its resource set", obj, o))
	}
	operations, err := c.config.Compute(ctx, o)
	if err != nil {
		return err
	}
	var faults error
	told := true
	for i := range operations {
		fault := operations[i].Err
		if fault == nil {
			continue
		}
		told = told && watchTells(fault)
		if faults != nil {
			fault = fmt.Errorf("%w; %w", faults, fault)
		}
		faults = fault
	}
	if faults != nil && told {
		return framework.Permanent(faults)
	}
	return faults
}

// watchTells tells whether nothing has to be tried again before a watched object changes.
func watchTells(fault error) bool {
	var contradiction *serviceset.GraphError
	return errors.As(fault, &contradiction) || apierrors.IsNotFound(fault) || framework.IsPermanent(fault)
}
