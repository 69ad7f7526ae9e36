package framework

import (
	"context"
	"errors"
	"fmt"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// PlanAnnotation makes the framework only plan for an object, its deletion included, while its value is "true". What would
// change is told by an event, the metrics and Config.PlanReporter; neither the object nor what comes of it is changed.
const PlanAnnotation = "operatorkit.io/plan"

// PlanReporter is told what would change for an object that is only planned for, once for each different plan, and also
// when there is nothing to do any more. It may say so in the object's status, and should change nothing else: the object
// is the reporter's own. An error is one of the reconciliation: it is tried again with backoff. It is called for different
// objects at the same time.
type PlanReporter func(ctx context.Context, obj any, p *plan.Plan) error

// PlanOnly tells whether the framework only plans.
func (f *Framework) PlanOnly() bool { return f.config.PlanOnly }

// onlyPlanned tells whether an object is to be planned for, and not reconciled.
func (f *Framework) onlyPlanned(obj any) bool {
	if f.config.PlanOnly {
		return true
	}
	m, ok := metaOf(obj)
	return ok && m.GetAnnotations()[PlanAnnotation] == "true"
}

// planInstead plans for an object in place of reconciling it. Gone is true for one that is not in the source any more.
func (f *Framework) planInstead(ctx context.Context, key informer.Key, obj any, gone bool) result {
	e := updateEvent
	if m, ok := metaOf(obj); gone || ok && m.GetDeletionTimestamp() != nil {
		e = deleteEvent
	}
	r := f.newReconciliation(ctx, e, key, obj)
	p, err := f.planFor(ctx, key, informer.Copy(obj), gone)
	if err != nil {
		return result{reconciliation: r, outcome: Failed, err: r.errorf("plan: %w", err)}
	}
	r.recording.planned(p)
	switch p.Outcome {
	case plan.Failed:
		return result{reconciliation: r, outcome: Failed, err: r.errorf("plan: %w", failureOf(p))}
	case plan.Ignored:
		f.planned.forget(key)
		return result{reconciliation: r, outcome: Ignored, reason: p.Reason}
	}
	if err := f.tellPlan(ctx, key, obj, p); err != nil {
		return result{reconciliation: r, outcome: Failed, err: r.errorf("report the plan: %w", err)}
	}
	if gone {
		f.planned.forget(key)
	}
	return result{reconciliation: r, outcome: Planned}
}

// planFor plans for an object, which is given away.
func (f *Framework) planFor(ctx context.Context, key informer.Key, obj any, gone bool) (*plan.Plan, error) {
	if gone {
		return f.planSet(ctx, deleteEvent, key, obj)
	}
	return f.PlanObject(ctx, obj)
}

// tellPlan tells everybody about a plan who wants to know, unless it is the one that was told last. A first plan in which
// there is nothing to do is no news for an event.
func (f *Framework) tellPlan(ctx context.Context, key informer.Key, obj any, p *plan.Plan) error {
	print, known := f.planned.last(key)
	now := fingerprint(p)
	if known && print == now {
		return nil
	}
	if report := f.config.PlanReporter; report != nil {
		if err := Recovered(func() error { return report(ctx, informer.Copy(obj), p) }); err != nil {
			return err
		}
	}
	f.planned.remember(key, now, p)
	if known || mayChange(p) {
		f.reporter.planned(obj, p)
	}
	f.log("info", "planned", "event", string(p.Event), "object", describe(obj, key), "plan", p.Counts().String())
	return nil
}

// mayChange tells whether a plan has changes, or a resource that can't tell whether it has any.
func mayChange(p *plan.Plan) bool {
	for _, r := range p.Resources {
		if r.Opaque {
			return true
		}
	}
	return p.Counts().Any()
}

// failureOf is the error of a plan that failed.
func failureOf(p *plan.Plan) error {
	for _, r := range p.Resources {
		if r.Error != "" {
			return errors.New(r.Error)
		}
	}
	return fmt.Errorf("%w: %s", ErrExecutionFailed, p.Reason)
}
