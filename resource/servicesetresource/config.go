package servicesetresource

import (
	"context"

	"github.com/giantswarm/micrologger"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer/notfound"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/resource/internal/worklist"
	"github.com/operatorkit/operatorkit/resource/serviceset"
)

// DefaultName is the name of a resource that is given none.
const DefaultName = "servicesets"

// Compute works out what has to be done with each ServiceSet of a primary, also while that is being deleted:
// serviceset.ComputeClusterOperations does. It writes nothing, and is called for plans too, for different primaries at the
// same time. What somebody has to mend before a set can be worked out is the Err of its operation; a failure to read is the
// error, and is retried. The results are only read, and may be shared.
type Compute[O any] func(ctx context.Context, obj O) ([]serviceset.OwnerOperation, error)

// Config configures a resource for primaries of type O.
type Config[O any] struct {
	// Name identifies the resource in logs, metrics and errors. Default: DefaultName.
	Name string
	// Client writes ServiceSets, for which it needs the verbs create, update and delete. Required.
	Client client.Client
	// Logger receives a message for every service whose entry was written. Required.
	Logger micrologger.Logger
	// Compute works out what has to be done. Required.
	Compute Compute[O]
	// Left tells whether the API server has a set of a primary that is being deleted, for which Compute finds none. It is asked before the
	// primary may go: what Compute reads may lack one, which nobody could clean up then. Default: Compute is believed.
	Left func(ctx context.Context, obj O) (bool, error)
}

// New returns the resource, or an error for which framework.IsInvalidConfig holds and which names the fields at fault.
func New[O any](config Config[O]) (*framework.TypedCRUDResource[O, State], error) {
	var wrong faults.List
	if config.Name == "" {
		config.Name = DefaultName
	}
	wrong.If(config.Client == nil, "Client must not be nil")
	wrong.If(config.Logger == nil, "Logger must not be nil")
	wrong.If(config.Compute == nil, "Compute must not be nil")
	if err := wrong.Of("servicesetresource.Config"); err != nil {
		return nil, err
	}
	config.Client = notfound.Checked(config.Client)
	return worklist.New(config.Logger, &resource[O]{config})
}
