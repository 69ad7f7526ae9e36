package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

// The contenders of the row pagework: a page that people search while workers reconcile, and one that nobody looks at.
const (
	searched   = "searched"
	unsearched = "not searched"
)

// What its contenders report: how long the slowest search took, and how many objects were reconciled in a second.
const (
	slowestSearch = "slowest-ns"
	reconciledAt  = "reconciled-per-second"
)

const (
	// searchers are people who search at once, each so often in a row.
	searchers, searchesEach = 20, 3
	// workingObjects is how many objects are reconciled over and over, by so many workers, who wait so long for each: as for an API server.
	workingObjects, workersAtWork, waited = 1000, 10, time.Millisecond
	// atWork is for how long it is counted what is reconciled while nobody searches.
	atWork = 2 * time.Second
)

// searchedAtWork measures searches of several people at once while workers reconcile: how long the slowest takes, and how much is reconciled
// meanwhile, to what is reconciled otherwise.
func searchedAtWork(ctx context.Context, e *environment) ([]line, error) {
	s, err := e.compare(ctx, "pagework", contender{searched, 1, e.pageAtWork(true)}, contender{unsearched, 1, e.pageAtWork(false)})
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("page, %d searches at once among %d failing objects, while workers reconcile: ", searchers, e.failing)
	slowest := reportLine(what+"the slowest", inMicroseconds, series{operatorKit: s[searched]}, extra(slowestSearch))
	reconciled := line{
		Measure: what + "reconciliations, to those without", Unit: inPercent,
		Figures: map[string]float64{operatorKit: 100 * s.ratio(searched, unsearched, extra(reconciledAt))},
	}
	return []line{slowest.atMost(float64(500 * time.Millisecond)), reconciled.atLeast(95)}, nil
}

// pageAtWork reconciles some objects over and over, beside many that fail and that may be searched.
func (e *environment) pageAtWork(search bool) func(context.Context, *testing.B) error {
	return func(ctx context.Context, b *testing.B) error {
		page, fill, err := failingInspector(e.failing)
		if err != nil {
			return err
		}
		if err := fill(); err != nil {
			return err
		}
		source := informer.NewPush("working")
		for n := range workingObjects {
			if err := source.Update(newPrimary("working", n)); err != nil {
				return err
			}
		}
		all := &restless{first: newCountdown(workingObjects)}
		f, err := newFramework(framework.Config{Name: "working", Source: source, Observer: page, Workers: workersAtWork}, all)
		if err != nil {
			return err
		}
		all.framework = f
		page.Watch(f)
		stop, err := begin(ctx, b, f.Run, all.first)
		if err != nil {
			return errors.Join(err, stop())
		}
		before, start := all.reconciled.Load(), time.Now()
		if search {
			err = searchAtOnce(ctx, b, page)
		} else {
			time.Sleep(atWork)
		}
		b.ReportMetric(float64(all.reconciled.Load()-before)/time.Since(start).Seconds(), reconciledAt)
		return errors.Join(err, stop())
	}
}

// searchAtOnce has people search, and reports how long the slowest search took.
func searchAtOnce(ctx context.Context, b *testing.B, page http.Handler) error {
	server := httptest.NewServer(page)
	defer server.Close()
	slowest := make([]time.Duration, searchers)
	var people errgroup.Group
	for i := range slowest {
		people.Go(func() error {
			for range searchesEach {
				start := time.Now()
				if err := search(ctx, server, failingSearch); err != nil {
					return err
				}
				slowest[i] = max(slowest[i], time.Since(start))
			}
			return nil
		})
	}
	err := people.Wait()
	b.ReportMetric(float64(slices.Max(slowest)), slowestSearch)
	return err
}

// restless is a resource that waits for a moment, and has its object reconciled again.
type restless struct {
	framework  *framework.Framework
	first      *countdown
	reconciled atomic.Int64
}

// Name implements framework.Resource.
func (*restless) Name() string { return "restless" }

// EnsureCreated implements framework.Resource.
func (r *restless) EnsureCreated(_ context.Context, obj any) error {
	time.Sleep(waited)
	r.reconciled.Add(1)
	r.first.one()
	r.framework.Enqueue(client.ObjectKeyFromObject(obj.(*corev1.ConfigMap)))
	return nil
}

// EnsureDeleted implements framework.Resource.
func (*restless) EnsureDeleted(context.Context, any) error { return nil }
