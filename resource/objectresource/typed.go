package objectresource

import (
	"context"
	"fmt"
	"reflect"

	"github.com/giantswarm/micrologger"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
)

// TypedConfig configures a resource for primaries of type O whose objects are all of one Go type T, such as *corev1.ConfigMap. What is
// not said here is said at Config.
type TypedConfig[O any, T client.Object] struct {
	// Name identifies the resource in logs, metrics and errors, and marks its objects. When it changes, the old one goes to
	// FormerNames. Required.
	Name string
	// FormerNames are names that the resource had before, or which that one had of which it was split off: objects under them are
	// taken over. Default: none.
	FormerNames []string
	// Client reads from the API server and not from a cache, and writes. Required.
	Client client.Client
	// Logger receives a message for every object that was written. Required.
	Logger micrologger.Logger
	// Desired returns the objects that should be there for the primary. Those without a namespace get the primary's. Required.
	Desired func(ctx context.Context, obj O) ([]T, error)
	// Store is a source of such objects with the index of OwnerIndexers, from which the current state is read. Default: none, they are
	// listed through the client in every reconciliation.
	Store Store
	// Namespaces returns where the primary has or had objects. Default: the namespace of the primary, or all for a primary without
	// one.
	Namespaces func(obj O) []string
	// Owner returns who the objects belong to. Default: the primary, if it is a Kubernetes object of the client's scheme.
	Owner func(obj O) (Owner, error)
	// FieldManager is the name under which fields are applied. Default: that of the mark, see identity.Mark.
	FieldManager string
	// Adopt lets the resource take over objects that exist and belong to nobody. Default: false.
	Adopt bool
	// Replace has objects replaced whose update the API server refuses as invalid. Default: false, it is an error.
	Replace bool
	// WaitForDeletion keeps the finalizer of the primary until its objects are really gone. Default: false.
	WaitForDeletion bool
	// Sensitive tells that no value of a desired object may be shown. Default: those of Secrets must not, and all others may.
	Sensitive func(obj T) bool
}

// NewTyped is New for objects of one Go type.
func NewTyped[O any, T client.Object](config TypedConfig[O, T]) (*framework.TypedCRUDResource[O, State], error) {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer {
		return nil, fmt.Errorf("%w: objectresource.TypedConfig: %s must be a pointer to a Go type: use Config for objects of several",
			framework.ErrInvalidConfig, t)
	}
	objects := Config[O]{
		Name:            config.Name,
		FormerNames:     config.FormerNames,
		Client:          config.Client,
		Logger:          config.Logger,
		Kinds:           []client.Object{reflect.New(t.Elem()).Interface().(T)},
		Namespaces:      config.Namespaces,
		Owner:           config.Owner,
		FieldManager:    config.FieldManager,
		Adopt:           config.Adopt,
		WaitForDeletion: config.WaitForDeletion,
	}
	if config.Replace {
		objects.Replace = objects.Kinds
	}
	if config.Store != nil {
		objects.Stores = []Store{config.Store}
	}
	if config.Desired != nil {
		objects.Desired = func(ctx context.Context, obj O) ([]client.Object, error) {
			typed, err := config.Desired(ctx, obj)
			desired := make([]client.Object, 0, len(typed))
			for _, o := range typed {
				desired = append(desired, o)
			}
			return desired, err
		}
	}
	if config.Sensitive != nil {
		objects.Sensitive = func(o client.Object) bool {
			typed, ok := o.(T)
			return ok && config.Sensitive(typed)
		}
	}
	return New(objects)
}
