package statemanagerresource

import (
	"context"
	"fmt"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/internal/worklist"
)

// DefaultCheckName is the name of a check that is given none.
const DefaultCheckName = "service-faults"

// CheckConfig configures a check for primaries of type O.
type CheckConfig[O any] struct {
	// Name identifies the resource in logs, metrics and errors. Default: DefaultCheckName.
	Name string
	// Compute is that of Config. Required.
	Compute Compute[O]
}

// NewCheck returns a resource that changes nothing, and fails with what keeps operations from being worked out: it names all of
// them. It is the last resource of its set, so that all that can be done is done before. When framework.IsPermanent holds
// for each, it does for the error; otherwise it is tried again with backoff.
//
// The error of NewCheck is one for which framework.IsInvalidConfig holds.
func NewCheck[O any](config CheckConfig[O]) (framework.Resource, error) {
	if config.Name == "" {
		config.Name = DefaultCheckName
	}
	if config.Compute == nil {
		return nil, fmt.Errorf("%w: statemanagerresource.CheckConfig: Compute must not be nil", framework.ErrInvalidConfig)
	}
	return worklist.NewCheck(config.Name, func(ctx context.Context, obj O) error {
		_, work, err := config.Compute(ctx, obj)
		if err != nil || work == nil {
			return err
		}
		var faults []error
		for i := range work.Operations {
			if o := &work.Operations[i]; o.Err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", subject(o), o.Err))
			}
		}
		return worklist.ToMend(faults, framework.IsPermanent)
	}), nil
}
