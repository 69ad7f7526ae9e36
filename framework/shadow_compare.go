package framework

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/framework/internal/shadows"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/panics"
)

// maxComparisons is the number of tries of a comparison if the state changes meanwhile.
const maxComparisons = 3

// compareSets compares the shadows that handle an object with its active set. The error is that of
// ctx. The sets share their known secret values, so that they redact the same values.
func (f *Framework) compareSets(ctx context.Context, s subject) ([]*plan.Comparison, error) {
	ctx = secretscontext.NewContext(ctx)
	var comparisons []*plan.Comparison
	var active *plan.Plan
	for _, set := range f.config.ResourceRouter.shadows {
		handles := false
		err := panics.Recovered(func() error {
			handles = f.config.ResourceRouter.shadowHandles(set, s.obj)
			return nil
		})
		switch {
		case err != nil:
			err = fmt.Errorf("ask the shadow whether it handles the object: %w", err)
			comparisons = append(comparisons, f.incomparable(s, set, err))
			continue
		case !handles:
			continue
		case active == nil:
			active = f.planActive(ctx, s)
		}
		if active.Outcome == plan.Ignored {
			return nil, ctx.Err()
		}
		var c *plan.Comparison
		start := time.Now()
		c, active = f.compareSet(ctx, s, set, active)
		f.metrics.shadows.took(set.name, time.Since(start))
		comparisons = append(comparisons, c)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return comparisons, nil
}

// compareSet compares one shadow with the plan of the active set. The two are computed one after
// the other, and the state may change in between. So a difference counts only if the active set's
// plan is still the same afterwards; otherwise they are compared again. It also returns the newest
// plan of the active set.
func (f *Framework) compareSet(
	ctx context.Context, s subject, set *setPlanner, active *plan.Plan,
) (*plan.Comparison, *plan.Plan) {
	for attempt := 1; ; attempt++ {
		c := plan.Compare(active, f.planShadow(ctx, s, set))
		if attempt == maxComparisons || c.Verdict() != plan.Differs || ctx.Err() != nil {
			return c, active
		}
		before := active
		active = f.planActive(ctx, s)
		if plan.Compare(before, active).Verdict() == plan.Agrees {
			return c, active
		}
	}
}

// planActive plans with the resource set that handles the object.
func (f *Framework) planActive(ctx context.Context, s subject) *plan.Plan {
	return f.inTime(ctx, func(ctx context.Context) *plan.Plan {
		// Failures are in the plan. inTime checks whether ctx has ended.
		p, _ := f.planSet(f.newPlanning(ctx, s.event, s.key, s.obj), informer.Copy(s.obj))
		return p
	})
}

// planShadow plans with a shadow resource set.
func (f *Framework) planShadow(ctx context.Context, s subject, set *setPlanner) *plan.Plan {
	return f.inTime(ctx, func(ctx context.Context) *plan.Plan {
		obj := informer.Copy(s.obj)
		r := f.newPlanning(ctx, s.event, s.key, obj)
		p := newPlan(r)
		f.planWith(p, r, set.of(s.event), obj)
		return p
	})
}

// inTime makes a plan within Config.ShadowTimeout. A plan that took longer has failed.
func (f *Framework) inTime(ctx context.Context, compute func(context.Context) *plan.Plan) *plan.Plan {
	ctx, cancel := context.WithTimeout(ctx, f.config.ShadowTimeout)
	defer cancel()
	p := compute(ctx)
	if ctx.Err() != nil {
		p.Resources = nil
		return endPlan(p, plan.Failed, fmt.Sprintf("planning took longer than %s", f.config.ShadowTimeout))
	}
	return p
}

// incomparable returns the comparison with a shadow that failed before planning.
func (f *Framework) incomparable(s subject, set *setPlanner, err error) *plan.Comparison {
	return &plan.Comparison{
		Framework: f.Name(),
		Object:    objectOf(s.obj, s.key),
		Event:     plan.Event(s.event.String()),
		Shadow:    set.name,
		Error:     err.Error(),
	}
}

// newShadows returns nil for a router without shadows.
func newShadows(config Config) *shadows.Comparisons {
	var sets []string
	for _, set := range config.ResourceRouter.shadows {
		sets = append(sets, set.name)
	}
	if len(sets) == 0 {
		return nil
	}
	return shadows.New(sets)
}

// shadowRequests decides how a reconciliation affects the comparisons with shadows. One that
// brought an object up to date, or planned it in plan mode, is followed by a comparison. An object
// that is no longer handled has none.
type shadowRequests struct {
	shadows *shadows.Comparisons
	unobserved
}

func (s shadowRequests) ended(e ended) {
	switch r := e.reconciliation; {
	case r == nil || e.err != nil:
	case r.event == updateEvent && (e.outcome == Succeeded || e.outcome == Planned):
		s.shadows.Add(e.key)
	case r.event == deleteEvent || e.outcome == Ignored:
		s.shadows.Forget(e.key)
	}
}

// runShadows compares objects with their shadows until ctx ends. Comparisons in progress are then
// interrupted; nothing is lost.
func (f *Framework) runShadows(ctx context.Context, workers *sync.WaitGroup) {
	if f.shadows == nil {
		return
	}
	keys := make(chan informer.Key)
	workers.Go(func() {
		defer close(keys)
		for ctx.Err() == nil {
			wait(ctx, shadows.Pause/10)
			for _, key := range f.shadows.Due() {
				keys <- key
			}
		}
	})
	for range f.config.ShadowWorkers {
		busyCtx, activity := f.activities.add(ctx, true)
		workers.Go(func() {
			defer activity.end()
			for key := range keys {
				f.compareLater(busyCtx, key, activity)
			}
		})
	}
}

// compareLater compares one object when none waits for a reconciliation, and keeps the result.
func (f *Framework) compareLater(ctx context.Context, key informer.Key, activity *activity) {
	var comparisons []*plan.Comparison
	if f.queue.UntilIdle() && ctx.Err() == nil {
		activity.begin(key, f.metrics.now())
		comparisons = f.compareKey(ctx, key)
		activity.end()
	}
	ended := ctx.Err() == nil
	for _, c := range f.shadows.Keep(key, comparisons, ended) {
		f.log("warning", "shadow can't be compared", "shadow", c.Shadow, "object", c.Object.String(), "error", c.Error)
	}
	if ended {
		for _, c := range comparisons {
			f.metrics.shadows.compared(c.Shadow, c.Verdict())
		}
	}
}

// compareKey compares the object that the source holds under a key, unless it is being deleted. A
// panic of foreign code, outside the shadows' resources, is logged.
func (f *Framework) compareKey(ctx context.Context, key informer.Key) (comparisons []*plan.Comparison) {
	err := panics.Recovered(func() error {
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
		f.log("error", "shadows can't be compared",
			"object", keyString(key), "error", err.Error(), "stack", stackOf(err))
	}
	return comparisons
}
