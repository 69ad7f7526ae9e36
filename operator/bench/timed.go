package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/operatorkit/operatorkit/framework"
)

// countdown is over when as much has happened as was expected. It is safe for concurrent use.
type countdown struct {
	left  atomic.Int64
	ended chan struct{}
}

func newCountdown(expected int) *countdown {
	c := &countdown{ended: make(chan struct{})}
	c.left.Store(int64(expected))
	return c
}

// one counts one. More than were expected do no harm.
func (c *countdown) one() {
	if c.left.Add(-1) == 0 {
		close(c.ended)
	}
}

var errEndedEarly = errors.New("it ended before its work was done")

// timed measures how long run takes to bring the countdown to its end. It stops run afterwards, and waits for that.
func timed(ctx context.Context, b *testing.B, run func(context.Context) error, done *countdown) error {
	stop, err := begin(ctx, b, run, done)
	return errors.Join(err, stop())
}

// processorNanoseconds is the name under which timed and begin report the processor time of the whole run.
const processorNanoseconds = "processor-ns"

// begin measures as timed does, and leaves run running until stop is called.
func begin(ctx context.Context, b *testing.B, run func(context.Context) error, done *countdown) (stop func() error, err error) {
	runCtx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	processorBefore := processorTime()
	b.StartTimer()
	go func() { ended <- run(runCtx) }()
	stop = func() error {
		cancel()
		return <-ended
	}
	select {
	case <-done.ended:
		b.StopTimer()
		b.ReportMetric(float64(processorTime()-processorBefore), processorNanoseconds)
		return stop, nil
	case err := <-ended:
		b.StopTimer()
		cancel()
		return func() error { return nil }, errors.Join(err, errEndedEarly)
	case <-ctx.Done():
		b.StopTimer()
		return stop, ctx.Err()
	}
}

// newFramework returns a framework of one resource set that holds no finalizers.
func newFramework(config framework.Config, resources ...framework.Resource) (*framework.Framework, error) {
	logger, err := operatorKitLogger()
	if err != nil {
		return nil, err
	}
	set, err := framework.NewResourceSet(framework.ResourceSetConfig{Handles: framework.HandlesType[any], Resources: resources})
	if err != nil {
		return nil, err
	}
	config.Logger, config.DisableFinalizer = logger, true
	config.ResourceRouter, err = framework.NewResourceRouter(framework.ResourceRouterConfig{
		Logger:       logger,
		ResourceSets: []*framework.ResourceSet{set},
	})
	if err != nil {
		return nil, err
	}
	return framework.New(config)
}
