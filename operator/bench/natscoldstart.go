package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/resource/natsresource"
)

// natsWorkers is how many workers the contenders have.
const natsWorkers = framework.DefaultWorkers

// natsColdStart is the row's work: primaries in a bucket that want a child each in another bucket.
type natsColdStart struct {
	*natsServer
	primaries []*entry
	workers   int
}

// natsColdStarts measures how fast an operator that starts creates a child for each of its primaries: from its start,
// with empty stores, until it has seen the last child in the bucket. Once it does so with the server a network away, which
// sets the pace, and once with the server at hand, where the processors do, which the server shares.
func natsColdStarts(ctx context.Context, e *environment) ([]line, error) {
	away, err := e.natsColdStart(ctx, fmt.Sprintf("natscoldstart %s away", e.roundTrip), e.roundTrip)
	if err != nil {
		return nil, err
	}
	near, err := e.natsColdStart(ctx, "natscoldstart at hand", 0)
	if err != nil {
		return nil, err
	}
	away[0] = away[0].ratioAtMost(1.1)
	return append(away, near...), nil
}

func (e *environment) natsColdStart(ctx context.Context, what string, roundTrip time.Duration) (lines []line, err error) {
	server, err := newNATSServer(ctx, roundTrip)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.close()) }()
	e.say("%s: create %d primaries", what, e.entries)
	work := natsColdStart{natsServer: server, workers: natsWorkers}
	if work.primaries, err = server.fill(ctx, e.entries); err != nil {
		return nil, fmt.Errorf("create primaries: %w", err)
	}
	s, err := e.compare(ctx, what,
		contender{bareLoop, e.entries, work.withBareLoop},
		contender{operatorKit, e.entries, work.withOperatorKit},
	)
	if err != nil {
		return nil, err
	}
	what = fmt.Sprintf("%s, %d entries, %d workers: ", what, e.entries, work.workers)
	return []line{
		againstBareLoop(what+"time for each", inMicroseconds, s, nanoseconds),
		againstBareLoop(what+"processor time", inMicroseconds, s, processor),
		againstBareLoop(what+"allocations", counted, s, allocations),
		reportLine(what+reconciliations, counted, s, extra(reconciliations)),
	}, nil
}

// againstBareLoop is a line with operatorkit's figure and that of the bare loop, and their ratio.
func againstBareLoop(measure string, u unit, s series, figure func(sample) float64) line {
	return line{
		Measure: measure,
		Unit:    u,
		Figures: map[string]float64{bareLoop: s.median(bareLoop, figure), operatorKit: s.median(operatorKit, figure)},
		Ratio:   s.ratio(operatorKit, bareLoop, figure),
	}
}

// withBareLoop is what the server and a client can do: it reads the primaries, and does the same writes.
func (w natsColdStart) withBareLoop(ctx context.Context, b *testing.B) error {
	primaries, err := w.js.KeyValue(ctx, primariesBucket)
	if err != nil {
		return err
	}
	children, err := w.fresh(ctx, childrenBucket)
	if err != nil {
		return err
	}
	done := newCountdown(len(w.primaries))
	return timed(ctx, b, func(ctx context.Context) error {
		watch, err := primaries.WatchAll(ctx) // It ends with ctx.
		if err != nil {
			return err
		}
		err = inParallel(ctx, w.workers, len(w.primaries), func(ctx context.Context, _ int) error {
			err := createChild(ctx, children, <-watch.Updates())
			done.one()
			return err
		})
		if err == nil {
			<-ctx.Done()
		}
		return err
	}, done)
}

// madeByTheKeeper is what a childKeeper writes into its children.
var madeByTheKeeper = fmt.Sprintf("%s %s", identity.Form, identity.Mark{Operator: identity.Program(), Framework: keeperName, Resource: "child"})

// createChild writes what the resource of the operator writes.
func createChild(ctx context.Context, children jetstream.KeyValue, read jetstream.KeyValueEntry) error {
	if read == nil {
		return errors.New("the watch of the primaries has ended early")
	}
	var primary entry
	if err := json.Unmarshal(read.Value(), &primary); err != nil {
		return err
	}
	child := childOf(&primary)
	child.OwnerKind, child.OwnerKey = entryKind, primary.Name
	child.Annotations = map[string]string{
		natsresource.MadeByAnnotation:  madeByTheKeeper,
		natsresource.AppliedAnnotation: child.Name + "#",
	}
	data, err := json.Marshal(child)
	if err != nil {
		return err
	}
	_, err = children.Create(ctx, child.Name, data)
	return err
}

// withOperatorKit is a framework with a ready-made resource, and both buckets as its sources.
func (w natsColdStart) withOperatorKit(ctx context.Context, b *testing.B) error {
	if _, err := w.fresh(ctx, childrenBucket); err != nil {
		return err
	}
	c, err := w.childKeeper(w.workers)
	if err != nil {
		return err
	}
	done := newCountdown(len(w.primaries))
	c.children.Subscribe(func(e informer.Event) {
		if e.Type == informer.Added {
			done.one()
		}
	})
	stop, err := begin(ctx, b, c.framework.Run, done)
	if err == nil {
		err = untilQuiet(ctx, &c.counter.count)
		b.ReportMetric(float64(c.counter.count.Load()), reconciliations)
	}
	return errors.Join(err, stop())
}
