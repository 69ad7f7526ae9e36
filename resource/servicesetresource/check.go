package servicesetresource

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/internal/worklist"
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
	return worklist.NewCheck(config.Name, func(ctx context.Context, obj O) error {
		operations, err := config.Compute(ctx, obj)
		if err != nil {
			return err
		}
		var faults []error
		for i := range operations {
			if fault := operations[i].Err; fault != nil {
				faults = append(faults, fault)
			}
		}
		return worklist.ToMend(faults, watchTells)
	}), nil
}

// watchTells tells whether nothing has to be tried again before a watched object changes.
func watchTells(fault error) bool {
	var contradiction *serviceset.GraphError
	var disorder *serviceset.DependencyError
	return errors.As(fault, &contradiction) || errors.As(fault, &disorder) || apierrors.IsNotFound(fault) || framework.IsPermanent(fault)
}
