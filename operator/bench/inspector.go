package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/inspector"
)

// The contenders of the row inspector: operatorkit with every reconciliation recorded for the inspector, and without.
const (
	inspected   = "inspected"
	uninspected = "not inspected"
)

// inspectorWorkers is how many objects are reconciled at the same time in the cold start.
const inspectorWorkers = 10

// inspectedReconciliations measures what recording costs: in a cold start, in which every reconciliation creates a child
// and its record says what that is, and where there is nothing but the recording, in empty reconciliations and in those of
// three CRUD resources that find everything in order.
func inspectedReconciliations(ctx context.Context, e *environment) ([]line, error) {
	cold, err := e.inspectedColdStart(ctx)
	if err != nil {
		return nil, err
	}
	empty, err := e.compare(ctx, "inspector, empty",
		contender{inspected, e.keys, e.inspectedEmpty(true)}, contender{uninspected, e.keys, e.inspectedEmpty(false)})
	if err != nil {
		return nil, err
	}
	noop, err := e.inspectedNoops(ctx)
	if err != nil {
		return nil, err
	}
	return []line{
		inspectorLine(fmt.Sprintf("cold start of %d primaries, inspected: time for each", e.primaries), cold, nanoseconds).ratioAtMost(1.01),
		inspectorLine(fmt.Sprintf("cold start of %d primaries, inspected: processor time", e.primaries), cold, processor),
		inspectorLine("no-op of three CRUD resources, inspected: time", noop, nanoseconds).ratioAtMost(1.1),
		inspectorLine("empty reconciliation, inspected: time", empty, nanoseconds).ratioAtMost(1.3),
		inspectorLine("empty reconciliation, inspected: processor time", empty, processor),
	}, nil
}

// inspectorLine is a line whose ratio is that to operatorkit without an inspector.
func inspectorLine(measure string, s series, figure func(sample) float64) line {
	return line{
		Measure: measure, Unit: inMicroseconds,
		Figures: map[string]float64{operatorKit: s.median(inspected, figure)}, Ratio: s.ratio(inspected, uninspected, figure),
	}
}

func (e *environment) inspectedColdStart(ctx context.Context) (series, error) {
	work, err := e.withPrimaries(ctx, "inspector")
	if err != nil {
		return nil, err
	}
	work.workers = inspectorWorkers
	watched := work
	watched.inspected = true
	return e.compare(ctx, "inspector, cold start",
		contender{inspected, e.primaries, work.cleared(watched.withOperatorKit)},
		contender{uninspected, e.primaries, work.cleared(work.withOperatorKit)})
}

func (e *environment) inspectedEmpty(inspected bool) func(context.Context, *testing.B) error {
	return func(ctx context.Context, b *testing.B) error {
		return e.empty(ctx, b, inspected)
	}
}

func (e *environment) inspectedNoops(ctx context.Context) (series, error) {
	primaries, resources, err := e.settledObjects()
	if err != nil {
		return nil, err
	}
	run := func(inspected bool) func(context.Context, *testing.B) error {
		return func(ctx context.Context, b *testing.B) error {
			return e.queueAll(ctx, b, primaries, resources, inspected)
		}
	}
	return e.compare(ctx, "inspector, noop", contender{inspected, e.noops, run(true)}, contender{uninspected, e.noops, run(false)})
}

// newInspectedFramework is newFramework, with an inspector if it is to be inspected.
func newInspectedFramework(config framework.Config, watch bool, resources ...framework.Resource) (*framework.Framework, error) {
	if !watch {
		return newFramework(config, resources...)
	}
	logger, err := operatorKitLogger()
	if err != nil {
		return nil, err
	}
	i, err := inspector.New(inspector.Config{Name: "bench", Logger: logger})
	if err != nil {
		return nil, err
	}
	config.Observer = i
	f, err := newFramework(config, resources...)
	if err == nil {
		i.Watch(f)
	}
	return f, err
}
