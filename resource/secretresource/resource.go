package secretresource

import (
	"context"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// Config configures a resource for primaries of type O. What is not said here is said at objectresource.Config.
type Config[O any] struct {
	// Name identifies the resource in logs, metrics and errors, and marks its objects. When it changes, the old one goes to
	// FormerNames. Required.
	Name string
	// FormerNames are names that the resource had before, or which that one had of which it was split off: secrets under them are
	// taken over. Default: none.
	FormerNames []string
	// Client reads from the API server and not from a cache, and writes. Required.
	Client client.Client
	// Logger receives a message for every secret that was written. Required.
	Logger micrologger.Logger
	// Desired returns the secrets that should be there for the primary. Those without a namespace get the primary's.
	// Required.
	Desired func(ctx context.Context, obj O) ([]*corev1.Secret, error)
	// Store is a source of secrets with the index of objectresource.OwnerIndexers, from which the current state is read.
	// Default: none, they are listed through the client in every reconciliation.
	Store objectresource.Store
	// Namespaces returns where the primary has or had secrets. Default: the namespace of the primary, or all for a
	// primary without one.
	Namespaces func(obj O) []string
	// Owner returns who the secrets belong to. Default: the primary, if it is a Kubernetes object of the client's scheme.
	Owner func(obj O) (objectresource.Owner, error)
	// FieldManager is the name under which fields are applied. Default: that of the mark, see identity.Mark.
	FieldManager string
	// Adopt lets the resource take over secrets that exist and belong to nobody. Default: false.
	Adopt bool
	// WaitForDeletion keeps the finalizer of the primary until its secrets are really gone. Default: false.
	WaitForDeletion bool
}

// New returns the resource, or an error for which framework.IsInvalidConfig holds and which names the fields at fault.
func New[O any](config Config[O]) (*framework.TypedCRUDResource[O, objectresource.State], error) {
	objects := objectresource.Config[O]{
		Name:            config.Name,
		FormerNames:     config.FormerNames,
		Client:          config.Client,
		Logger:          config.Logger,
		Kinds:           []client.Object{&corev1.Secret{}},
		Namespaces:      config.Namespaces,
		Owner:           config.Owner,
		FieldManager:    config.FieldManager,
		Adopt:           config.Adopt,
		WaitForDeletion: config.WaitForDeletion,
	}
	if config.Store != nil {
		objects.Stores = []objectresource.Store{config.Store}
	}
	if config.Desired != nil {
		objects.Desired = func(ctx context.Context, obj O) ([]client.Object, error) {
			secrets, err := config.Desired(ctx, obj)
			desired := make([]client.Object, 0, len(secrets))
			for _, secret := range secrets {
				desired = append(desired, secret)
			}
			return desired, err
		}
	}
	return objectresource.New(objects)
}
