package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// reconciliations is the name under which the contenders report how many there were.
	reconciliations = "reconciliations"
	// throughput is the name of a contender's speed as percentage of the bare loop's.
	throughput = "throughput"
	// watchingLoop is the contender that knows the primaries as an operator does: it lists them, and watches them and the children.
	watchingLoop = "bare loop that watches"

	// quiet is how long nothing has to happen before the reconciliations are counted.
	quiet = 500 * time.Millisecond
	// pollInterval is how often conditions are looked at that nothing tells of.
	pollInterval = 50 * time.Millisecond
	// conditionTimeout ends the wait for a condition that will never hold.
	conditionTimeout = 2 * time.Minute
)

// coldStart is the row's work: primaries that exist, and want a child each.
type coldStart struct {
	*cluster
	namespace string
	primaries []*corev1.ConfigMap
	workers   int
	// inspected has operatorkit's reconciliations recorded.
	inspected bool
	// then is what is measured of an operator that has become quiet; nil is nothing.
	then func(context.Context, *testing.B) error
}

// coldStarts measures how fast an operator that starts creates a child for each of its primaries: from its start,
// with empty stores, to the last child's creation.
func coldStarts(ctx context.Context, e *environment) ([]line, error) {
	work, err := e.withPrimaries(ctx, "coldstart")
	if err != nil {
		return nil, err
	}
	var lines []line
	for _, workers := range e.workers {
		work.workers = workers
		s, err := e.compare(ctx, fmt.Sprintf("coldstart with %d workers", workers),
			contender{bareLoop, e.primaries, work.cleared(work.withBareLoop)},
			contender{watchingLoop, e.primaries, work.cleared(work.withWatchingLoop)},
			contender{controllerRuntime, e.primaries, work.cleared(work.withControllerRuntime)},
			contender{operatorKit, e.primaries, work.cleared(work.withOperatorKit)},
		)
		if err != nil {
			return nil, err
		}
		lines = append(lines, coldStartLines(s, e.primaries, workers)...)
	}
	return lines, nil
}

// withPrimaries makes the primaries of a row, in a namespace of their own.
func (e *environment) withPrimaries(ctx context.Context, row string) (coldStart, error) {
	namespace, err := e.cluster.namespace(ctx, row)
	if err != nil {
		return coldStart{}, err
	}
	e.say("%s: create %d primaries", row, e.primaries)
	work := coldStart{cluster: e.cluster, namespace: namespace, primaries: make([]*corev1.ConfigMap, e.primaries)}
	err = inParallel(ctx, 10, e.primaries, func(ctx context.Context, i int) error {
		work.primaries[i] = newPrimary(namespace, i)
		return e.cluster.client.Create(ctx, work.primaries[i])
	})
	if err != nil {
		err = fmt.Errorf("create primaries: %w", err)
	}
	return work, err
}

func coldStartLines(s series, primaries, workers int) []line {
	names := []string{bareLoop, controllerRuntime, operatorKit}
	times := line{Measure: fmt.Sprintf("cold start of %d primaries, %d workers: time for each", primaries, workers), Unit: inMicroseconds, Figures: map[string]float64{}}
	speeds := line{Measure: fmt.Sprintf("cold start of %d primaries, %d workers: %s", primaries, workers, throughput), Unit: inPercent, Figures: map[string]float64{}}
	for _, name := range names {
		times.Figures[name] = s.median(name, nanoseconds)
		speeds.Figures[name] = 100 * s.ratio(bareLoop, name, nanoseconds)
	}
	times.Ratio = s.ratio(operatorKit, controllerRuntime, nanoseconds)
	watching := line{
		Measure: fmt.Sprintf("cold start of %d primaries, %d workers: %s, to a bare loop that lists and watches", primaries, workers, throughput),
		Unit:    inPercent, Figures: map[string]float64{},
	}
	for _, name := range names {
		watching.Figures[name] = 100 * s.ratio(watchingLoop, name, nanoseconds)
	}
	counts := compareLine(fmt.Sprintf("cold start of %d primaries, %d workers: %s", primaries, workers, reconciliations), counted, s, extra(reconciliations))
	return []line{times, speeds.atLeast(97), watching, counts.atMost(float64(primaries))}
}

// cleared lets run begin and end without children.
func (w coldStart) cleared(run func(context.Context, *testing.B) error) func(context.Context, *testing.B) error {
	return func(ctx context.Context, b *testing.B) error {
		return errors.Join(run(ctx, b), w.deleteChildren(ctx))
	}
}

func (w coldStart) deleteChildren(ctx context.Context) error {
	children := client.MatchingLabels{roleLabel: roleChild}
	if err := w.client.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(w.namespace), children); err != nil {
		return fmt.Errorf("delete children: %w", err)
	}
	return until(ctx, func(ctx context.Context) (bool, error) {
		var left corev1.ConfigMapList
		err := w.client.List(ctx, &left, client.InNamespace(w.namespace), children, client.Limit(1))
		return len(left.Items) == 0, err
	})
}

// withBareLoop is what the API server and a client can do.
func (w coldStart) withBareLoop(ctx context.Context, b *testing.B) error {
	done := newCountdown(len(w.primaries))
	create := creator(w.client, done)
	return timed(ctx, b, func(ctx context.Context) error {
		err := inParallel(ctx, w.workers, len(w.primaries), func(ctx context.Context, i int) error {
			return create(ctx, desiredChild(w.primaries[i], "-child"))
		})
		if err == nil {
			<-ctx.Done()
		}
		return err
	}, done)
}

// withWatchingLoop is what is left of that to whoever has to hear of the primaries and of what was written.
func (w coldStart) withWatchingLoop(ctx context.Context, b *testing.B) error {
	done := newCountdown(len(w.primaries))
	create := creator(w.client, done)
	return timed(ctx, b, func(ctx context.Context) error {
		_, stopChildren, err := w.listAndWatch(ctx, roleChild)
		if err != nil {
			return err
		}
		defer stopChildren()
		primaries, stopPrimaries, err := w.listAndWatch(ctx, rolePrimary)
		if err != nil {
			return err
		}
		defer stopPrimaries()
		err = inParallel(ctx, w.workers, len(primaries), func(ctx context.Context, i int) error {
			return create(ctx, desiredChild(&primaries[i], "-child"))
		})
		if err == nil {
			<-ctx.Done()
		}
		return err
	}, done)
}

// listAndWatch lists the objects of a role, and receives what becomes of them until it is stopped.
func (w coldStart) listAndWatch(ctx context.Context, role string) (listed []corev1.ConfigMap, stop func(), err error) {
	var list corev1.ConfigMapList
	selected := []client.ListOption{client.InNamespace(w.namespace), client.MatchingLabels{roleLabel: role}}
	if err := w.client.List(ctx, &list, selected...); err != nil {
		return nil, nil, fmt.Errorf("list what is a %s: %w", role, err)
	}
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}}
	watching, err := w.client.Watch(ctx, &corev1.ConfigMapList{}, append(selected, from)...)
	if err != nil {
		return nil, nil, fmt.Errorf("watch what is a %s: %w", role, err)
	}
	var received sync.WaitGroup
	received.Go(func() {
		for range watching.ResultChan() {
		}
	})
	return list.Items, func() {
		watching.Stop()
		received.Wait()
	}, nil
}

// counted measures an operator until all children are there, and then waits for it to become quiet in order to report
// how many reconciliations that were.
func (w coldStart) counted(ctx context.Context, b *testing.B, run func(context.Context) error, done *countdown, count *atomic.Int64) error {
	stop, err := begin(ctx, b, run, done)
	if err == nil {
		err = untilQuiet(ctx, count)
		b.ReportMetric(float64(count.Load()), reconciliations)
	}
	if err == nil && w.then != nil {
		err = w.then(ctx, b)
	}
	return errors.Join(err, stop())
}

// untilQuiet waits until the count has not changed for a while.
func untilQuiet(ctx context.Context, count *atomic.Int64) error {
	last, since := count.Load(), time.Now()
	return until(ctx, func(context.Context) (bool, error) {
		if now := count.Load(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) >= quiet, nil
	})
}

func until(ctx context.Context, condition wait.ConditionWithContextFunc) error {
	return untilWithin(ctx, conditionTimeout, condition)
}

func untilWithin(ctx context.Context, timeout time.Duration, condition wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, pollInterval, timeout, true, condition)
}
