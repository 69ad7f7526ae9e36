package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/operatorkit/operatorkit/internal/crowd"
)

// stalePlans is the name under which the row reports how many of the plans that were run were stale.
const stalePlans = "percent-stale"

// manyPlans is how many services are deployed at once on how many machines.
type manyPlans struct{ services, workers, machines int }

// plansThatGoStale measures how many of the plans for services are stale when they are run, because another worker has changed something
// since: on machines that are a model in memory, because it is only counted.
func plansThatGoStale(ctx context.Context, e *environment) ([]line, error) {
	s, err := e.compare(ctx, "staleplans", contender{operatorKit, e.plans.services, e.plans.deploy})
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%d services planned by %d workers on %d machines: plans that go stale", e.plans.services, e.plans.workers, e.plans.machines)
	return []line{reportLine(what, inPercent, s, extra(stalePlans)).atMost(5)}, nil
}

// deploy deploys the services on machines of their own.
func (p manyPlans) deploy(ctx context.Context, b *testing.B) error {
	specs := crowd.Services(p.services, modelImage)
	for i := range specs {
		specs[i].Update.Monitor = &modelMonitor
	}
	c := &crowd.Crowd{Client: newModelMachines(p.machines), Workers: p.workers, Later: 50 * time.Millisecond, Again: 100 * time.Millisecond}
	b.StartTimer()
	c.Deploy(ctx, specs)
	b.StopTimer()
	var errs []error
	for name, err := range c.Errors {
		errs = append(errs, fmt.Errorf("deploy %s: %w", name, err))
	}
	b.ReportMetric(100*float64(c.Stale)/float64(c.Plans), stalePlans)
	return errors.Join(errs...)
}
