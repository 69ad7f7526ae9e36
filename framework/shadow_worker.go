package framework

import (
	"context"
	"sync"

	"github.com/operatorkit/operatorkit/framework/internal/shadows"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// newShadows returns nil for a router without shadows.
func newShadows(config Config) *shadows.Comparisons {
	var sets []string
	for _, set := range config.ResourceRouter.shadows {
		sets = append(sets, set.name)
	}
	if len(sets) == 0 {
		return nil
	}
	return shadows.New(sets, config.ShadowQueue)
}

// follow decides what a reconciliation means for the comparisons with shadows: one that brought an object up to date, or
// planned it in plan mode, is followed by one, and an object that is not handled any more has none.
func (f *Framework) follow(key informer.Key, res result) {
	switch r := res.reconciliation; {
	case f.shadows == nil || r == nil || res.err != nil:
	case r.event == updateEvent && (res.outcome == Succeeded || res.outcome == Planned):
		f.shadows.Add(key)
	case r.event == deleteEvent || res.outcome == Ignored:
		f.shadows.Forget(key)
	}
}

// runShadows starts the workers that compare shadows, until stop is called. The comparison that is under way is cut short
// by the end of ctx: nothing is lost with it.
func (f *Framework) runShadows(ctx context.Context, workers *sync.WaitGroup) (stop func()) {
	if f.shadows == nil {
		return func() {}
	}
	for range f.config.ShadowWorkers {
		workers.Go(func() { f.shadowWorker(ctx, workers) })
	}
	return f.shadows.ShutDown
}

// shadowWorker compares objects when none waits for a reconciliation. A resource that ends its goroutine (runtime.Goexit)
// is replaced by another worker.
func (f *Framework) shadowWorker(ctx context.Context, workers *sync.WaitGroup) {
	complete := false
	defer func() {
		if !complete {
			workers.Go(func() { f.shadowWorker(ctx, workers) })
		}
	}()
	for ctx.Err() == nil {
		due, ok := f.shadows.Wait()
		switch {
		case !ok:
			complete = true
			return
		case due > 0:
			wait(ctx, due)
		case f.queue.UntilIdle():
			if work := f.shadows.Next(); work != nil {
				f.compareEntry(ctx, work)
			}
		}
	}
	complete = true
}

// compareEntry compares one object and keeps the result.
func (f *Framework) compareEntry(ctx context.Context, work *shadows.Work) {
	defer f.shadows.Done(work)
	comparisons := f.compareKey(ctx, work.Key)
	if ctx.Err() != nil {
		return
	}
	for _, c := range comparisons {
		f.metrics.shadows.compared(c.Shadow, c.Verdict())
	}
	for _, c := range f.shadows.Keep(work, comparisons) {
		f.log("warning", "shadow can't be compared", "shadow", c.Shadow, "object", c.Object.String(), "error", c.Error)
	}
}

// compareKey compares the object that the source holds under a key, if it is to stay. A panic of code that is not ours,
// outside of the shadows' resources, is logged.
func (f *Framework) compareKey(ctx context.Context, key informer.Key) (comparisons []*plan.Comparison) {
	err := Recovered(func() error {
		obj, exists, err := f.source.Get(key)
		if err != nil || !exists || paused(obj) {
			return nil
		}
		if s := subjectOf(obj); s.event == updateEvent {
			s.key = key
			comparisons, _ = f.compareSets(ctx, s)
		}
		return nil
	})
	if err != nil {
		f.metrics.panicked()
		f.log("error", "shadows can't be compared", "object", keyString(key), "error", err.Error(), "stack", stackOf(err))
	}
	return comparisons
}
