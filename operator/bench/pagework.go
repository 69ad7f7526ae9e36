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

// The contenders of the row pagework: a page that people search while workers reconcile, all for the same or each for something else, and
// one that nobody looks at.
const (
	searchedForOne  = "searched for the same"
	searchedForMany = "searched for different things"
	unsearched      = "not searched"
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
	searches := map[string]func(person int) string{
		searchedForOne:  func(int) string { return failingSearch },
		searchedForMany: func(person int) string { return fmt.Sprintf("q=lease+object-%d", person) },
		unsearched:      nil,
	}
	var contenders []contender
	for _, name := range []string{searchedForOne, searchedForMany, unsearched} {
		contenders = append(contenders, contender{name, 1, e.pageAtWork(searches[name])})
	}
	s, err := e.compare(ctx, "pagework", contenders...)
	if err != nil {
		return nil, err
	}
	var lines []line
	for _, name := range []string{searchedForOne, searchedForMany} {
		what := fmt.Sprintf("page, %d failing objects %s by %d at once, while workers reconcile: ", e.failing, name, searchers)
		slowest := reportLine(what+"the slowest", inMicroseconds, series{operatorKit: s[name]}, extra(slowestSearch))
		reconciled := line{
			Measure: what + "reconciliations, to those without", Unit: inPercent,
			Figures: map[string]float64{operatorKit: 100 * s.ratio(name, unsearched, extra(reconciledAt))},
		}
		lines = append(lines, slowest.atMost(float64(500*time.Millisecond)), reconciled.atLeast(95))
	}
	return lines, nil
}

// pageAtWork reconciles some objects over and over, beside many that fail and that people search for, unless queries is nil.
func (e *environment) pageAtWork(queries func(person int) string) func(context.Context, *testing.B) error {
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
		if queries != nil {
			err = searchAtOnce(ctx, b, page, queries)
		} else {
			time.Sleep(atWork)
		}
		b.ReportMetric(float64(all.reconciled.Load()-before)/time.Since(start).Seconds(), reconciledAt)
		return errors.Join(err, stop())
	}
}

// searchAtOnce has people search, and reports how long the slowest search took.
func searchAtOnce(ctx context.Context, b *testing.B, page http.Handler, queries func(person int) string) error {
	server := httptest.NewServer(page)
	defer server.Close()
	slowest := make([]time.Duration, searchers)
	var people errgroup.Group
	for i := range slowest {
		people.Go(func() error {
			for range searchesEach {
				start := time.Now()
				if err := search(ctx, server, queries(i)); err != nil {
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
