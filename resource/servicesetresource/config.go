package servicesetresource

import (
	"context"
	"errors"

	"github.com/giantswarm/micrologger"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset"
)

// DefaultName is the name of a resource that is given none.
const DefaultName = "servicesets"

// Config configures a resource for primaries of type O.
type Config[O any] struct {
	// Name identifies the resource in logs, metrics and errors. Default: DefaultName.
	Name string
	// Client writes the ServiceSets. Required.
	Client client.Client
	// Logger receives a message for every entry that was written. Required.
	Logger micrologger.Logger
	// Compute works out what has to be done with each ServiceSet of the primary, also while that is being deleted: see
	// serviceset.ComputeClusterOperations. It writes nothing. Required.
	Compute func(ctx context.Context, obj O) ([]serviceset.OwnerOperation, error)
}

// New returns the resource, or an error for which framework.IsInvalidConfig holds.
func New[O any](config Config[O]) (*framework.TypedCRUDResource[O, State], error) {
	if config.Name == "" {
		config.Name = DefaultName
	}
	if config.Client == nil || config.Compute == nil {
		return nil, errors.Join(framework.ErrInvalidConfig, errors.New("servicesetresource.Config: Client and Compute must not be nil"))
	}
	return framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[O, State]{
		Logger: config.Logger, Ops: &resource[O]{config},
	})
}
