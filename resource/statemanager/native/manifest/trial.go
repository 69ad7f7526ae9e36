package manifest

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// tryOut asks the API server by a dry run whether it would create the object of a step. Pending tells that the definition of the object
// changes before.
func tryOut(ctx context.Context, cluster carrier.Cluster, service *carrier.Service, s *step, pending bool) error {
	err := apply(ctx, cluster, service, s.applied(), s.force, client.DryRunAll)
	later, err := carrier.TriedOut(ctx, cluster.Client(), s.manifest.Object, err, pending)
	if err != nil {
		return fault("create", s.manifest, err)
	}
	s.later = later
	if later && pending {
		s.afterDefinition()
	}
	return nil
}

// afterDefinition has a step tried out when the definition of its object is there.
func (s *step) afterDefinition() {
	s.later = true
	if s.reason != "" {
		s.reason += ", "
	}
	s.reason += carrier.AfterDefinition
}

// tryLater tries out what could not be tried out before its definition and its namespace were there, so that nothing else is written before
// a refusal.
func tryLater(ctx context.Context, cluster carrier.Cluster, service *carrier.Service, s step) error {
	if !s.later {
		return nil
	}
	err := carrier.Retry(ctx, func() error { return apply(ctx, cluster, service, s.applied(), s.force, client.DryRunAll) })
	if carrier.Refused(err) || apierrors.IsConflict(err) {
		return fault(string(s.action), s.manifest, err)
	}
	return nil
}
