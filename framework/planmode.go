package framework

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework/internal/keyed"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/cut"
	"github.com/operatorkit/operatorkit/internal/panics"
)

// PlanAnnotation makes the framework only plan for an object, also for its deletion, while its
// value is "true". An event, the metrics and Config.PlanReporter report what would change. Neither
// the object nor the things made for it are changed.
const PlanAnnotation = "operatorkit.io/plan"

// PlanReporter is called with the plan of an object that is only planned, once for each different
// plan, and also when nothing is left to do. It may report the plan in the object's status, and
// should change nothing else. The object is the reporter's own copy. An error is an error of the
// reconciliation, which is retried with backoff. It is called for different objects at the same
// time.
type PlanReporter func(ctx context.Context, obj any, p *plan.Plan) error

// PlanOnly reports whether the framework only plans.
func (f *Framework) PlanOnly() bool { return f.config.PlanOnly }

// onlyPlanned reports whether an object is only planned, and not reconciled.
func (f *Framework) onlyPlanned(obj any) bool {
	if f.config.PlanOnly {
		return true
	}
	m, ok := metaOf(obj)
	return ok && m.GetAnnotations()[PlanAnnotation] == "true"
}

// planInstead plans for an object instead of reconciling it. Gone is true for an object that is no
// longer in the source.
func (f *Framework) planInstead(ctx context.Context, s subject, gone bool) result {
	key, obj := s.key, s.obj
	r := f.newReconciliation(ctx, s)
	planning, plans := f.newPlanning(ctx, s.event, key, obj), f.planThere
	planning.activity = r.activity
	if gone {
		plans = f.planSet
	}
	p, err := plans(planning, informer.Copy(obj))
	if err != nil {
		return result{reconciliation: r, outcome: Failed, err: r.errorf("plan: %w", err)}
	}
	switch p.Outcome {
	case plan.Failed:
		return result{reconciliation: r, plan: p, outcome: Failed, err: r.errorf("plan: %w", planning.failure)}
	case plan.Ignored:
		f.reportedPlans.Delete(key)
		return result{reconciliation: r, plan: p, outcome: Ignored, reason: p.Reason}
	}
	if err := f.reportPlan(ctx, key, obj, p); err != nil {
		return result{reconciliation: r, plan: p, outcome: Failed, err: r.errorf("report the plan: %w", err)}
	}
	if gone {
		f.reportedPlans.Delete(key)
	}
	return result{reconciliation: r, plan: p, outcome: Planned}
}

// reportPlan reports a plan unless it is the last reported one. A first plan with nothing to do
// causes no event.
func (f *Framework) reportPlan(ctx context.Context, key informer.Key, obj any, p *plan.Plan) error {
	last, known := f.reportedPlans.Get(key)
	now := reportedPlan{fingerprint(p), p.Counts()}
	if known && last.print == now.print {
		return nil
	}
	if report := f.config.PlanReporter; report != nil {
		if err := panics.Recovered(func() error { return report(ctx, informer.Copy(obj), p) }); err != nil {
			return err
		}
	}
	f.reportedPlans.Set(key, now)
	if known || p.MayChange() {
		f.reporter.planned(obj, p)
	}
	f.log("info", "planned", "event", string(p.Event), "object", describe(obj, key), "plan", p.Counts().String())
	return nil
}

// ReasonPlanned is the reason of the events about objects that are only planned.
const ReasonPlanned = "Planned"

// reportedPlans remembers the last reported plan of each object that is only planned.
type reportedPlans struct{ keyed.Map[reportedPlan] }

type reportedPlan struct {
	print  [sha256.Size]byte
	counts plan.Counts
}

// count returns the numbers of objects for which something would be created, updated or deleted,
// and the number of objects with nothing to do.
func (r *reportedPlans) count() (objects plan.Counts, nothing int) {
	for last := range r.Values {
		objects = objects.Add(plan.Counts{
			Create: min(last.counts.Create, 1), Update: min(last.counts.Update, 1), Delete: min(last.counts.Delete, 1),
		})
		if !last.counts.Any() {
			nothing++
		}
	}
	return objects, nothing
}

// fingerprint is the same for plans that differ at most in the versions of objects.
func fingerprint(p *plan.Plan) [sha256.Size]byte {
	return digest(p.Bare())
}

// digest returns the hash of plans or changes.
func digest(of any) [sha256.Size]byte {
	data, err := json.Marshal(of)
	if err != nil {
		// Values of plans are JSON values. Those from an author's own Planner may not be.
		data = fmt.Appendf(nil, "%v", of)
	}
	return sha256.Sum256(data)
}

// planned writes an event about the changes: which objects, and which of their fields, but no
// values.
func (r *reporter) planned(obj any, p *plan.Plan) {
	if record := r.recordOn(obj); record != nil {
		record(corev1.EventTypeNormal, ReasonPlanned, cut.Text(summary(p), maxEventMessage))
	}
}

// summary returns a plan on one line.
func summary(p *plan.Plan) string {
	var parts []string
	for _, r := range p.Resources {
		if r.Opaque {
			parts = append(parts, fmt.Sprintf("resource %s can't tell", r.Name))
		}
		for _, c := range r.Changes {
			part := string(c.Action) + " " + c.Object.String()
			if c.Action == plan.Update && len(c.Fields) > 0 {
				part += " (" + paths(c.Fields) + ")"
			}
			parts = append(parts, part)
		}
		for _, v := range r.Verdicts {
			parts = append(parts, v.String())
		}
	}
	line := p.Counts().String()
	if len(parts) > 0 {
		line += ": " + strings.Join(parts, "; ")
	}
	return line
}

func paths(fields []plan.FieldChange) string {
	var names []string
	for _, f := range fields {
		names = append(names, f.Path)
	}
	return strings.Join(names, ", ")
}
