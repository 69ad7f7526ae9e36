package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/natsresource"
)

// manyEntriesRepeated is how often the primary with the most entries is reconciled in a run.
const manyEntriesRepeated = 5

// natsEntries measures what a reconciliation takes that finds all entries of a primary in order, and how that grows with their
// number. Nothing is sent: the entries are read from a source that runs.
func natsEntries(ctx context.Context, e *environment) (lines []line, err error) {
	server, err := newNATSServer(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.close()) }()
	most := e.owned[len(e.owned)-1]
	contenders := make([]contender, len(e.owned))
	for i, n := range e.owned {
		e.say("natsentries: create %d entries of one primary", n)
		owner, err := server.ownerOf(ctx, n)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, owner.stop()) }()
		contenders[i] = owner.reconciling(manyEntriesRepeated * most / n)
	}
	s, err := e.compare(ctx, "natsentries", contenders...)
	if err != nil {
		return nil, err
	}
	for _, n := range e.owned {
		what := fmt.Sprintf("no-op of one primary with %d NATS entries: ", n)
		one := series{operatorKit: s[ofEntries(n)]}
		lines = append(lines,
			reportLine(what+"time", inMicroseconds, one, nanoseconds),
			reportLine(what+"allocations", counted, one, allocations),
		)
	}
	few := e.owned[0]
	ratio := func(what string, figure func(sample) float64) line {
		return line{
			Measure: fmt.Sprintf("no-op of one primary with %d NATS entries to one with %d: %s", most, few, what),
			Unit:    counted,
			Ratio:   s.ratio(ofEntries(most), ofEntries(few), figure),
		}
	}
	return append(lines,
		ratio("time", nanoseconds).ratioAtMost(1.1*float64(most)/float64(few)),
		ratio("processor time", processor),
	), nil
}

func ofEntries(n int) string { return fmt.Sprintf("%d entries", n) }

// entryOwner is a primary that has its entries, and the resource that keeps them.
type entryOwner struct {
	primary   *entry
	entries   int
	resources []framework.Resource
	stop      func() error
}

// ownerOf makes a bucket with that many entries of one primary, and runs a source of it.
func (s *natsServer) ownerOf(ctx context.Context, n int) (_ *entryOwner, err error) {
	name := fmt.Sprintf("entries-%d", n)
	if _, err := s.fresh(ctx, name); err != nil {
		return nil, err
	}
	bucket, err := s.bucket(name)
	if err != nil {
		return nil, err
	}
	source, err := s.source(bucket)
	if err != nil {
		return nil, err
	}
	logger, err := operatorKitLogger()
	if err != nil {
		return nil, err
	}
	desired := make([]*entry, n)
	for i := range desired {
		desired[i] = newEntry(i, fmt.Sprintf("Page %d", i))
	}
	kept, err := natsresource.New(natsresource.Config[*entry, *entry]{
		Name: "entries", Kind: entryKind, Bucket: bucket, Source: source, Logger: logger,
		Desired: func(context.Context, *entry) ([]*entry, error) { return desired, nil },
	})
	if err != nil {
		return nil, err
	}
	o := &entryOwner{primary: newEntry(0, ""), entries: n, resources: []framework.Resource{kept}}

	running, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- source.Run(running) }()
	o.stop = func() error {
		cancel()
		return <-ended
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.stop())
		}
	}()
	if err := source.WaitForSync(ctx); err != nil {
		return nil, err
	}
	if err := framework.ProcessUpdate(ctx, o.primary, o.resources); err != nil {
		return nil, err
	}
	return o, o.settled(ctx)
}

// settled is an error unless all entries are there and as they should be.
func (o *entryOwner) settled(ctx context.Context) error {
	current, err := framework.PlanUpdate(ctx, o.primary, o.resources)
	if err != nil {
		return err
	}
	if r := current.Resources[0]; r.Error != "" || current.Counts().Any() {
		return fmt.Errorf("the primary with %d entries is not as it should be: %+v %s", o.entries, current.Counts(), r.Error)
	}
	return nil
}

// reconciling finds the entries in order that many times.
func (o *entryOwner) reconciling(times int) contender {
	return contender{ofEntries(o.entries), times, func(ctx context.Context, b *testing.B) error {
		before := processorTime()
		b.StartTimer()
		for range times {
			if err := framework.ProcessUpdate(ctx, o.primary, o.resources); err != nil {
				return err
			}
		}
		b.StopTimer()
		b.ReportMetric(float64(processorTime()-before), processorNanoseconds)
		return nil
	}}
}
