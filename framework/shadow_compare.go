package framework

import (
	"context"
	"fmt"
	"time"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// maxLooks is how often a comparison is made anew because the world changed while it was made.
const maxLooks = 3

// subject is what is planned: an object, and what its reconciliation is about.
type subject struct {
	event event
	key   informer.Key
	obj   any
}

// subjectOf takes the event and the key from the object.
func subjectOf(obj any) subject {
	s := subject{event: updateEvent, obj: obj}
	m, ok := metaOf(obj)
	if !ok {
		return s
	}
	s.key = informer.Key{Namespace: m.GetNamespace(), Name: m.GetName()}
	if m.GetDeletionTimestamp() != nil {
		s.event = deleteEvent
	}
	return s
}

// compareSets compares the shadows that handle an object with its active set. The error is that of ctx.
func (f *Framework) compareSets(ctx context.Context, s subject) ([]*plan.Comparison, error) {
	var comparisons []*plan.Comparison
	var active *plan.Plan
	for _, set := range f.config.ResourceRouter.shadows {
		handles := false
		err := Recovered(func() error { handles = set.handles(s.obj); return nil })
		switch {
		case err != nil:
			comparisons = append(comparisons, f.incomparable(s, set, fmt.Errorf("ask the shadow whether it handles the object: %w", err)))
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

// compareSet compares one shadow with the plan of the active set. Both are computed one after the other, and the world may
// change in between. So what differs counts only if the active set's plan is still the same afterwards; otherwise both are
// compared again. It returns the newest plan of the active set too.
func (f *Framework) compareSet(ctx context.Context, s subject, set *outline, active *plan.Plan) (*plan.Comparison, *plan.Plan) {
	for look := 1; ; look++ {
		c := plan.Compare(active, f.planShadow(ctx, s, set))
		if look == maxLooks || c.Verdict() != plan.Differs || ctx.Err() != nil {
			return c, active
		}
		before := active
		active = f.planActive(ctx, s)
		if plan.Compare(before, active).Verdict() == plan.Agrees {
			return c, active
		}
	}
}

// planActive plans with the resource set that is in charge of the object.
func (f *Framework) planActive(ctx context.Context, s subject) *plan.Plan {
	return f.inTime(ctx, func(ctx context.Context) *plan.Plan {
		// What goes wrong is in the plan; that ctx has ended is looked at by inTime.
		p, _ := f.planSet(ctx, s.event, s.key, informer.Copy(s.obj))
		return p
	})
}

// planShadow plans with a resource set that is only tried.
func (f *Framework) planShadow(ctx context.Context, s subject, set *outline) *plan.Plan {
	return f.inTime(ctx, func(ctx context.Context) *plan.Plan {
		obj := informer.Copy(s.obj)
		r := f.newPlanning(ctx, s.event, s.key, obj)
		p := newPlan(r)
		f.planWith(p, r, set, obj)
		return p
	})
}

// inTime makes a plan within Config.ShadowTimeout. One that took longer is a failed one.
func (f *Framework) inTime(ctx context.Context, compute func(context.Context) *plan.Plan) *plan.Plan {
	ctx, cancel := context.WithTimeout(ctx, f.config.ShadowTimeout)
	defer cancel()
	p := compute(ctx)
	if ctx.Err() != nil {
		p.Resources = nil
		return settle(p, plan.Failed, fmt.Sprintf("planning took longer than %s", f.config.ShadowTimeout))
	}
	return p
}

// incomparable is the comparison with a shadow that can't even be asked.
func (f *Framework) incomparable(s subject, set *outline, err error) *plan.Comparison {
	return &plan.Comparison{
		Framework: f.Name(), Object: objectOf(s.obj, s.key), Event: plan.Event(s.event), Shadow: set.name, Error: err.Error(),
	}
}
