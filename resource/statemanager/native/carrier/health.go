package carrier

import (
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// HealthChecks reads the expressions by which services say how objects of their own kinds are. Package health has one.
type HealthChecks interface {
	// Compile reads expressions. The error is permanent, and names the expression and the place in it.
	Compile(expressions []v1alpha1.HealthCheckExpr) (HealthCheck, error)
}

// HealthCheck tells how an object is that a cluster has; nil for a kind of which nothing is said.
type HealthCheck func(object *unstructured.Unstructured) *status.Result

// StatusOf tells how an object is that a cluster has: as the expressions of the service say, and else as kstatus does.
func (s *Service) StatusOf(object *unstructured.Unstructured) (*status.Result, error) {
	if s.HealthCheck != nil && object.GetDeletionTimestamp() == nil {
		if found := s.HealthCheck(object); found != nil {
			return found, nil
		}
	}
	return status.Compute(object)
}
