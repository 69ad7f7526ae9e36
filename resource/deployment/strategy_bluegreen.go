package deployment

import (
	"context"
	"time"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// BlueGreenStrategy runs all containers of the new version beside those of the old one, and removes the old ones when all of the new
// ones work. It takes twice the room. What two versions can't have at once is a *NotSideBySideError.
//
// One new container that fails is too many, because all old ones go at once: Update.MaxFailurePercent does not matter, and
// Update.FailureAction is rollback, which removes the new version again and is the default, or pause; continue is pause. Update.Order
// and Update.Delay don't matter, and Update.Parallelism limits how many new containers start at once; the default is DefaultLimit
// here.
type BlueGreenStrategy struct {
	// State is what to plan for. Default: what is on the machines.
	State *scheduler.ClusterState
	// ForceRecreate replaces all containers, also those that are as they should be.
	ForceRecreate bool
	// Hold is how long both versions run before the old one is removed. The new one is looked at again after it. Default: not at
	// all.
	Hold time.Duration
}

// Type returns blue-green.
func (s *BlueGreenStrategy) Type() string { return "blue-green" }

// Plan implements Strategy.
func (s *BlueGreenStrategy) Plan(ctx context.Context, cli scheduler.Client, svc *api.Service, spec api.ServiceSpec) (Plan, error) {
	p, err := newPlanner(ctx, cli, s.State, svc, spec)
	if err != nil {
		return Plan{}, err
	}
	p.force, p.sideBySide = s.ForceRecreate, true
	if err := p.assign(); err != nil {
		return Plan{}, err
	}
	limit := spec.Update.Parallelism
	if limit == 0 {
		limit = DefaultLimit
	}
	waves := p.inWaves(p.updates(), limit, 0)
	green := p.inWaves(p.replacements(), limit, 0)
	if s.Hold > 0 && len(green) > 0 {
		last := &green[len(green)-1]
		last.Pause, last.Verify = s.Hold, true
	}
	action := failureAction(&spec, api.FailureRollback)
	if action == api.FailureContinue {
		action = api.FailurePause
	}
	p.spec.Update.MaxFailurePercent = 0
	return p.plan(s.Type(), append(waves, green...), action), nil
}
