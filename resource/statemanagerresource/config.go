package statemanagerresource

import (
	"context"

	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/resource/internal/worklist"
	"github.com/operatorkit/operatorkit/resource/statemanager"
)

// DefaultName is the name of a resource that is given none.
const DefaultName = "services"

// Compute works out what has to be done for a primary, also while that is being deleted. It changes nothing, and is called for
// plans too, for different primaries at the same time. Without work, all is left as it is, and nothing else is known. The
// results are only read, and may be shared.
type Compute[O any] func(ctx context.Context, obj O) (*statemanager.Set, *statemanager.Work, error)

// Done is told that an operation was carried out, or that it failed. It must be quick, and change nothing.
type Done[O any] func(ctx context.Context, obj O, operation *statemanager.Operation, err error)

// Config configures a resource for primaries of type O.
type Config[O any] struct {
	// Name identifies the resource in logs, metrics and errors. Default: DefaultName.
	Name string
	// Manager carries operations out: its CarryOut is called, for those that Compute returned. Required.
	Manager statemanager.StateManager
	// Logger receives a message for every operation that was carried out, without values. Required.
	Logger micrologger.Logger
	// Compute works out what has to be done. Required.
	Compute Compute[O]
	// Done is told of every operation. Default: nobody is.
	Done Done[O]
}

// New returns the resource, or an error for which framework.IsInvalidConfig holds and which names the fields at fault.
func New[O any](config Config[O]) (*framework.TypedCRUDResource[O, State], error) {
	var wrong faults.List
	if config.Name == "" {
		config.Name = DefaultName
	}
	wrong.If(config.Manager == nil, "Manager must not be nil")
	wrong.If(config.Logger == nil, "Logger must not be nil")
	wrong.If(config.Compute == nil, "Compute must not be nil")
	if err := wrong.Of("statemanagerresource.Config"); err != nil {
		return nil, err
	}
	if config.Done == nil {
		config.Done = func(context.Context, O, *statemanager.Operation, error) {}
	}
	return worklist.New(config.Logger, &resource[O]{config})
}
