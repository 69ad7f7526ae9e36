package deploymentresource

import (
	"context"

	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/internal/worklist"
)

// DefaultName is the name of a resource that is given none.
const DefaultName = api.DefaultResource

// Compute returns what there is to do for a primary: what Plan returns or, while the primary is being deleted, Removal. It changes
// nothing, and is called for plans too, for different primaries at the same time. Without work all is left as it is, and a deletion
// waits. The result is only read, and may be shared. ctx says whose the containers are: Plan and Removal are given it, or, by a resource
// with DefaultName and without FormerNames, one of the same reconciliation.
type Compute[O any] func(ctx context.Context, obj O) (*Work, error)

// Config configures a resource for primaries of type O.
type Config[O any] struct {
	// Name identifies the resource in logs, metrics and errors, and is on its containers, with the operator and the framework.
	// Default: DefaultName.
	Name string
	// FormerNames are names that the resource had before. The containers of its services that carry one of them are its own.
	// Default: none.
	FormerNames []string
	// Logger receives a message for every plan that was carried out, without values. Required.
	Logger micrologger.Logger
	// Compute says what there is to do. Required.
	Compute Compute[O]
	// Progress is told what happens while a plan is carried out, by one goroutine at a time for each primary, and holds it up.
	// Default: nobody is.
	Progress func(ctx context.Context, obj O, event deployment.ProgressEvent)
	// Done is told that a plan was carried out, or why it was not, or not to its end. It must be quick, and change nothing.
	// Default: nobody is.
	Done func(ctx context.Context, obj O, work *Work, err error)
}

// New returns the resource, or an error for which framework.IsInvalidConfig holds and which names the fields at fault.
func New[O any](config Config[O]) (*framework.TypedCRUDResource[O, State], error) {
	var wrong faults.List
	if config.Name == "" {
		config.Name = DefaultName
	}
	wrong.If(config.Logger == nil, "Logger must not be nil")
	wrong.If(config.Compute == nil, "Compute must not be nil")
	if err := wrong.Of("deploymentresource.Config"); err != nil {
		return nil, err
	}
	if config.Progress == nil {
		config.Progress = func(context.Context, O, deployment.ProgressEvent) {}
	}
	if config.Done == nil {
		config.Done = func(context.Context, O, *Work, error) {}
	}
	return worklist.New(config.Logger, &resource[O]{config})
}
