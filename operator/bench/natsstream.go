package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// The names under which the stream reports what became of it.
const (
	keysLost   = "keys-lost"
	heapBefore = "heap-before-bytes"
	perSecond  = "changes-per-second"
)

// stream is how primaries change.
type stream struct {
	// keys is how many primaries there are; they change in turns.
	keys int
	// rate is how many changes there are in a second.
	rate int
	// warmUp and duration are how long they change before what is on the heap is looked at for the first time, and from then
	// on until it is looked at for the second time.
	warmUp, duration time.Duration
}

// natsStream is the row's work: primaries that change all the time, and each have a child that has to keep up.
type natsStream struct {
	stream
	*natsServer
	primaries []*entry
	bucket    jetstream.KeyValue
	children  jetstream.KeyValue
}

// natsStreams measures whether an operator keeps up with a stream of changes without losing one or growing. It runs once,
// however many rounds the other rows have.
func natsStreams(ctx context.Context, e *environment) (lines []line, err error) {
	server, err := newNATSServer(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.close()) }()
	single := *e
	single.rounds = 1
	work := &natsStream{stream: e.stream, natsServer: server}
	s, err := single.compare(ctx, "natsstream", contender{operatorKit, work.changes(work.duration), work.withOperatorKit})
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("NATS stream of %d changes a second for %s: ", work.rate, work.duration)
	growth := func(one sample) float64 { return 100 * one.Extra[heapBytes] / one.Extra[heapBefore] }
	return []line{
		reportLine(what+"keys lost", counted, s, extra(keysLost)).atMost(0),
		reportLine(what+"heap at the end, of that at the start", inPercent, s, growth).atMost(110),
		reportLine(what+"changes a second", counted, s, extra(perSecond)).atLeast(0.99 * float64(work.rate)),
		reportLine(what+reconciliations+" for each", counted, s, func(one sample) float64 {
			return one.Extra[reconciliations] / float64(work.changes(work.duration))
		}),
		reportLine(what+"processor time", inMicroseconds, s, processor),
	}, nil
}

// changes is how many changes there are in that time.
func (s stream) changes(d time.Duration) int { return int(float64(s.rate) * d.Seconds()) }

func (w *natsStream) withOperatorKit(ctx context.Context, b *testing.B) (err error) {
	if w.primaries, err = w.fill(ctx, w.keys); err != nil {
		return err
	}
	if w.bucket, err = w.js.KeyValue(ctx, primariesBucket); err != nil {
		return err
	}
	if w.children, err = w.fresh(ctx, childrenBucket); err != nil {
		return err
	}
	keeper, err := w.childKeeper(natsWorkers)
	if err != nil {
		return err
	}
	running, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- keeper.framework.Run(running) }()
	defer func() {
		cancel()
		err = errors.Join(err, <-ended)
	}()

	if err := w.change(ctx, w.changes(w.warmUp)); err != nil {
		return err
	}
	lost, err := w.settle(ctx)
	if err != nil {
		return err
	}
	if lost > 0 {
		return fmt.Errorf("%d keys did not settle after the warm-up", lost)
	}
	b.ReportMetric(float64(heap()), heapBefore)

	count, used := keeper.counter.count.Load(), processorTime()
	b.StartTimer()
	if err := w.change(ctx, w.changes(w.duration)); err != nil {
		return err
	}
	b.StopTimer()
	b.ReportMetric(float64(w.changes(w.duration))/b.Elapsed().Seconds(), perSecond)
	lost, err = w.settle(ctx)
	b.ReportMetric(float64(lost), keysLost)
	b.ReportMetric(float64(processorTime()-used), processorNanoseconds)
	b.ReportMetric(float64(keeper.counter.count.Load()-count), reconciliations)
	b.ReportMetric(float64(heap()), heapBytes)
	return err
}

// change changes the primaries in turns, at the rate of the stream.
func (w *natsStream) change(ctx context.Context, n int) error {
	start := time.Now()
	for i := range n {
		due := start.Add(time.Duration(i) * time.Second / time.Duration(w.rate))
		if wait := time.Until(due); wait > 0 {
			time.Sleep(wait)
		}
		primary := w.primaries[i%len(w.primaries)]
		primary.Page = "Page " + strconv.Itoa(i)
		data, err := json.Marshal(primary)
		if err != nil {
			return err
		}
		if _, err := w.bucket.Put(ctx, primary.Name, data); err != nil {
			return fmt.Errorf("change %s: %w", primary.Name, err)
		}
	}
	return nil
}

// settle waits until each child is as its primary was left, and returns for how many keys that did not come about.
func (w *natsStream) settle(ctx context.Context) (lost int, err error) {
	err = until(ctx, func(ctx context.Context) (bool, error) {
		lost, err = w.differing(ctx)
		return lost == 0, err
	})
	if lost > 0 && ctx.Err() == nil {
		return lost, nil
	}
	return lost, err
}

// differing counts the primaries whose child is not there or not as it should be.
func (w *natsStream) differing(ctx context.Context) (n int, err error) {
	for _, primary := range w.primaries {
		stored, err := w.children.Get(ctx, primary.Name)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			n++
			continue
		}
		if err != nil {
			return n, err
		}
		var child entry
		if err := json.Unmarshal(stored.Value(), &child); err != nil {
			return n, err
		}
		if child.Page != primary.Page {
			n++
		}
	}
	return n, nil
}
