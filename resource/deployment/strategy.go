package deployment

import (
	"context"
	"fmt"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// Strategy defines how a service should be deployed or updated.
type Strategy interface {
	// Type returns the type of the deployment strategy, such as rolling.
	Type() string
	// Plan returns the operations that bring a service to a specification, which is resolved. It changes nothing. A service that is
	// not known is nil.
	Plan(ctx context.Context, cli scheduler.Client, svc *api.Service, spec api.ServiceSpec) (Plan, error)
}

// RollingStrategy replaces containers a few at a time (Update.Parallelism).
type RollingStrategy struct {
	// State is what to plan for. Default: what is on the machines.
	State *scheduler.ClusterState
	// ForceRecreate replaces all containers, also those that are as they should be.
	ForceRecreate bool
}

// Type returns rolling.
func (s *RollingStrategy) Type() string { return "rolling" }

// Plan implements Strategy.
func (s *RollingStrategy) Plan(ctx context.Context, cli scheduler.Client, svc *api.Service, spec api.ServiceSpec) (Plan, error) {
	p, err := newPlanner(ctx, cli, s.State, svc, spec)
	if err != nil {
		return Plan{}, err
	}
	p.force = s.ForceRecreate
	if err := p.assign(); err != nil {
		return Plan{}, err
	}
	waves := p.inWaves(p.updates(), parallelism(&spec), 0)
	replacing := p.replacements()
	if p.exclusive && len(replacing) > 1 {
		// The old version must have stopped before anything else of the new one runs.
		waves = append(waves, p.inWaves(replacing[:1], 1, spec.Update.Delay.Duration)...)
		replacing = replacing[1:]
	}
	waves = append(waves, p.inWaves(replacing, parallelism(&spec), spec.Update.Delay.Duration)...)
	return p.plan(s.Type(), waves, failureAction(&spec, api.FailurePause)), nil
}

func parallelism(spec *api.ServiceSpec) int { return spec.Update.ParallelismOrDefault() }

func failureAction(spec *api.ServiceSpec, otherwise api.FailureAction) api.FailureAction {
	if spec.Update.FailureAction == "" {
		return otherwise
	}
	return spec.Update.FailureAction
}

// NotSideBySideError says that two versions of a service can't run at once, which a blue-green deployment needs.
type NotSideBySideError struct {
	Service string
	Reason  string
}

// Error says why.
func (e *NotSideBySideError) Error() string {
	return fmt.Sprintf("two versions of service %s can't run side by side, as blue-green needs it: %s; use a rolling update", e.Service, e.Reason)
}
