package deployment

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// CanaryStep is a part of a canary deployment.
type CanaryStep struct {
	// Percent is how many of the containers are of the new version after the step, from 1 to 100, rounded up.
	Percent int
	// Pause is how long they are watched before the next step.
	Pause time.Duration
}

// CanaryStrategy gives some containers the new version, waits, looks whether they still work, and goes on with more.
//
// Within a step containers are replaced as in a rolling update. Update.FailureAction is rollback by default. A deployment that was
// cut off goes on with the step that it was in.
type CanaryStrategy struct {
	// State is what to plan for. Default: what is on the machines.
	State *scheduler.ClusterState
	// ForceRecreate replaces all containers, also those that are as they should be.
	ForceRecreate bool
	// Steps come with growing percentages; a last one of 100 is added if it is missing. Default: 10 % and 50 %, each with a pause
	// of a minute.
	Steps []CanaryStep
}

// Type returns canary.
func (s *CanaryStrategy) Type() string { return "canary" }

// Plan implements Strategy.
func (s *CanaryStrategy) Plan(ctx context.Context, cli scheduler.Client, svc *api.Service, spec api.ServiceSpec) (Plan, error) {
	steps, err := s.steps()
	if err != nil {
		return Plan{}, err
	}
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
	all := len(p.kept) + len(replacing)
	done := len(p.kept)
	for _, step := range steps {
		until := (step.Percent*all + 99) / 100
		if until <= done {
			continue
		}
		waves = append(waves, p.canary(replacing[:until-done], step, until == all)...)
		replacing, done = replacing[until-done:], until
	}
	return p.plan(s.Type(), waves, failureAction(&spec, api.FailureRollback)), nil
}

func (p *planner) canary(operations []Operation, step CanaryStep, last bool) []Wave {
	limit := parallelism(&p.spec)
	if p.exclusive {
		limit = 1
	}
	waves := p.inWaves(operations, limit, p.spec.Update.Delay.Duration)
	end := &waves[len(waves)-1]
	end.Pause, end.Verify = 0, false
	if !last {
		end.Pause, end.Verify = step.Pause, true
	}
	return waves
}

func (s *CanaryStrategy) steps() ([]CanaryStep, error) {
	if len(s.Steps) == 0 {
		return []CanaryStep{{Percent: 10, Pause: time.Minute}, {Percent: 50, Pause: time.Minute}, {Percent: 100}}, nil
	}
	steps := slices.Clone(s.Steps)
	for i, step := range steps {
		if step.Percent < 1 || step.Percent > 100 || step.Pause < 0 || i > 0 && step.Percent <= steps[i-1].Percent {
			return nil, fmt.Errorf("step %d of the canary strategy, %d %% and %s: percentages must grow from 1 to 100, and pauses must not be negative",
				i+1, step.Percent, step.Pause)
		}
	}
	if slices.MaxFunc(steps, func(a, b CanaryStep) int { return cmp.Compare(a.Percent, b.Percent) }).Percent < 100 {
		steps = append(steps, CanaryStep{Percent: 100})
	}
	return steps, nil
}
