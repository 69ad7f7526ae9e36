package native

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// payload is what CarryOut needs of a Compute.
type payload struct {
	by      carrier.Carrier
	service *resolved
	result  *carrier.Result
}

// CarryOut implements statemanager.StateManager.
func (m *Manager) CarryOut(ctx context.Context, set *statemanager.Set, operation *statemanager.Operation) error {
	what, ok := operation.Payload.(*payload)
	if !ok {
		return framework.Permanent(fmt.Errorf("the operation of service %s is none of the state manager %s", operation.Service, m.Name()))
	}
	memory := m.memoryOf(set)
	cluster, err := m.config.Clusters.Acquire(memory.cluster, ownKey(set))
	if err != nil {
		return fmt.Errorf("use the cluster of ServiceSet %s: %w", ownKey(set), err)
	}
	kept := memory.service(what.service.Key)
	kept.freshness.wrote()
	as, _, err := acting(cluster, what.service.Service, &kept.freshness)
	if err != nil {
		return err
	}
	err = lacking(what.service.Service, what.by.CarryOut(ctx, as, what.service.Service, what.result))
	if err == nil {
		// The last failure counts until the service is there, or gone: what was carried out may only have begun a hook.
		if memory.progress(1); kept.failure != nil {
			kept.failure.begun = true
		}
		return nil
	}
	// It is told in other reconciliations, which may not know what is secret in it.
	err = secretscontext.ScrubError(ctx, what.service.hider.Error(err))
	if ctx.Err() != nil || carrier.Unanswered(err) || apierrors.IsUnauthorized(err) || stale(err) {
		// It says nothing about the service: it is worked out anew.
		return err
	}
	failed := &failure{
		Failure: carrier.Failure{Message: statemanager.FirstLine(err.Error()), Time: m.config.Clock.Now()},
		err:     err, fingerprint: what.service.Fingerprint, generation: set.ServiceSet.Generation, trial: trialOf(set, what.service.Entry),
		failures: 1, since: memory.progress(0),
	}
	if last := kept.failed(what.service.Fingerprint); last != nil && last.trial == failed.trial {
		failed.Count, failed.failures, failed.since = last.Count, last.failures+1, last.since
	}
	if !carrier.Passing(err) {
		failed.Count++
	}
	kept.failure = failed
	return err
}

// stale tells whether an error only says that something has changed meanwhile.
func stale(err error) bool { return apierrors.IsConflict(err) && !carrier.IsConflict(err) }
