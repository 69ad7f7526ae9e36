package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// steady is how primaries change that have all that they should.
type steady struct {
	// rate is how many changes somebody makes in a second, and duration for how long.
	rate     int
	duration time.Duration
}

const (
	// steadyProcessor is the name under which contenders report the processor time of the process while primaries change.
	steadyProcessor = "steady-processor-ns"
	// steadyWorkers is how many objects are reconciled at the same time.
	steadyWorkers = 10
	// steadyPause is between two changes, of which so many are made at once as keep the rate.
	steadyPause = 10 * time.Millisecond
)

// steadyStates measures the processor time that an operator takes for changes that somebody else makes of its primaries, and after which
// there is nothing to do. Who makes the changes does so in this process: what that takes alone is taken off.
func steadyStates(ctx context.Context, e *environment) ([]line, error) {
	work, err := e.withPrimaries(ctx, "steady")
	if err != nil {
		return nil, err
	}
	work.workers, work.then = steadyWorkers, func(ctx context.Context, b *testing.B) error { return e.steady.change(ctx, b, work) }
	s, err := e.fewRounds().compare(ctx, "steady",
		contender{bareLoop, e.steady.changes(), work.then},
		contender{controllerRuntime, e.steady.changes(), work.cleared(work.withControllerRuntime)},
		contender{operatorKit, e.steady.changes(), work.cleared(work.withOperatorKit)},
	)
	if err != nil {
		return nil, err
	}
	taken := func(name string) (each []sample) {
		for round, one := range s[name] {
			alone := s[bareLoop][round]
			each = append(each, sample{Processor: (one.Extra[steadyProcessor] - alone.Extra[steadyProcessor]) / float64(e.steady.changes())})
		}
		return each
	}
	alone := series{controllerRuntime: taken(controllerRuntime), operatorKit: taken(operatorKit)}
	what := fmt.Sprintf("%d foreign changes a second of %d primaries, each: processor time", e.steady.rate, e.primaries)
	return []line{compareLine(what, inMicroseconds, alone, processor).ratioAtMost(0.6)}, nil
}

func (s steady) changes() int { return int(float64(s.rate) * s.duration.Seconds()) }

// change changes primaries in turns, at the rate, and reports the processor time until what comes of it has ended.
func (s steady) change(ctx context.Context, b *testing.B, work coldStart) error {
	b.StartTimer()
	defer b.StopTimer()
	before := processorTime()
	pace := time.NewTicker(steadyPause)
	defer pace.Stop()
	atOnce := max(1, int(float64(s.rate)*steadyPause.Seconds()))
	for n := 0; n < s.changes(); n += atOnce {
		<-pace.C
		var changes errgroup.Group
		for i := n; i < min(n+atOnce, s.changes()); i++ {
			changes.Go(func() error {
				primary := work.primaries[i%len(work.primaries)].DeepCopy()
				patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/change":"%d"}}}`, i)
				return work.client.Patch(ctx, primary, client.RawPatch(types.MergePatchType, patch))
			})
		}
		if err := errors.Join(changes.Wait(), ctx.Err()); err != nil {
			return fmt.Errorf("change primaries: %w", err)
		}
	}
	time.Sleep(quiet)
	b.ReportMetric(float64(processorTime()-before), steadyProcessor)
	return nil
}
