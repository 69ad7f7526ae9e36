package machines

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// checkStrategy returns every fault of a strategy. The server refuses most of them, but not in what it has from before it did.
func checkStrategy(s *v1alpha1.Strategy) error {
	var errs field.ErrorList
	p := field.NewPath("strategy")
	wait := func(p *field.Path, d time.Duration) {
		if d < 0 || d > api.MaxWait {
			errs = append(errs, field.Invalid(p, d.String(), "must be from 0s to "+api.MaxWait.String()))
		}
	}
	if s.Hold != nil {
		wait(p.Child("hold"), s.Hold.Duration)
	}
	for i, step := range s.Steps {
		at := p.Child("steps").Index(i)
		wait(at.Child("pause"), step.Pause.Duration)
		if i > 0 && step.Percent <= s.Steps[i-1].Percent {
			errs = append(errs, field.Invalid(at.Child("percent"), step.Percent, fmt.Sprintf("must be more than the %d of the step before", s.Steps[i-1].Percent)))
		}
	}
	return errs.ToAggregate()
}

// strategyOf returns the strategy that a service asks for.
func strategyOf(s *v1alpha1.Strategy) deployment.Strategy {
	switch s.Type {
	case v1alpha1.StrategyBlueGreen:
		strategy := &deployment.BlueGreenStrategy{}
		if s.Hold != nil {
			strategy.Hold = s.Hold.Duration
		}
		return strategy
	case v1alpha1.StrategyCanary:
		strategy := &deployment.CanaryStrategy{}
		for _, step := range s.Steps {
			strategy.Steps = append(strategy.Steps, deployment.CanaryStep{Percent: step.Percent, Pause: step.Pause.Duration})
		}
		return strategy
	}
	return &deployment.RollingStrategy{}
}
