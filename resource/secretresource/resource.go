package secretresource

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// Config configures a resource for primaries of type O: its Desired returns the secrets.
type Config[O any] = objectresource.TypedConfig[O, *corev1.Secret]

// New returns the resource, or an error for which framework.IsInvalidConfig holds and which names the fields at fault.
func New[O any](config Config[O]) (*framework.TypedCRUDResource[O, objectresource.State], error) {
	return objectresource.NewTyped(config)
}
