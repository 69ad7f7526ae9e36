package framework

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/context/resourcecanceledcontext"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// Planner is implemented by plain resources that can predict their changes. CRUD resources need not
// implement it: they have patches.
type Planner interface {
	// Plan returns what EnsureCreated (plan.UpdateEvent) or EnsureDeleted (plan.DeleteEvent) would
	// change, or ErrOpaque if that is unknown. It must not change anything. It may be called at the
	// same time as these.
	Plan(ctx context.Context, event plan.Event, obj any) ([]plan.Change, error)
}

// PlanUpdate returns what ProcessUpdate would change, and changes nothing. Failures of resources
// are in the plan. It returns an error only if resources is empty or ctx has ended; the plan is
// then unusable.
//
// The signals of the context have the same effect as in ProcessUpdate, except signals that are set
// while changes are applied. If the state of a resource depends on changes of an earlier one, its
// plan ignores these changes: it uses the present state.
func PlanUpdate(ctx context.Context, obj any, resources []Resource) (*plan.Plan, error) {
	return planAlone(ctx, updateEvent, obj, resources)
}

// PlanDelete returns what ProcessDelete would change, as PlanUpdate does.
func PlanDelete(ctx context.Context, obj any, resources []Resource) (*plan.Plan, error) {
	return planAlone(ctx, deleteEvent, obj, resources)
}

func planAlone(ctx context.Context, e event, obj any, resources []Resource) (*plan.Plan, error) {
	r := newAlone(ctx, e, obj, resources)
	r.plans = true
	if len(resources) == 0 {
		return nil, r.errorf("plan: %w: there are no resources", ErrExecutionFailed)
	}
	p := newPlan(r)
	planInto(r, p, r, informer.Copy(obj), plannersOf(resources))
	return p, ctx.Err()
}

// Plan returns what the next reconciliation of an object of the source would change. It changes
// nothing: neither the object, nor its finalizers, nor the state of the framework. Failures are in
// the plan. The error is that of ctx, or, if apierrors.IsNotFound holds for it, says that the
// object does not exist. Plan may be called at any time and for any number of objects at once, once
// the sources are synced.
func (f *Framework) Plan(ctx context.Context, key informer.Key) (*plan.Plan, error) {
	if last, ok := f.tombstones.first(key); ok {
		return f.planSet(f.newPlanning(ctx, deleteEvent, key, last.obj), informer.Copy(last.obj))
	}
	obj, exists, err := f.source.Get(key)
	if err != nil {
		r := f.newPlanning(ctx, updateEvent, key, nil)
		reason := fmt.Sprintf("read %s from source %q: %s", keyString(key), f.source.Name(), err)
		return endPlan(newPlan(r), plan.Failed, reason), nil
	}
	if !exists {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: f.source.Name()}, keyString(key))
	}
	return f.PlanObject(ctx, obj)
}

// PlanObject is Plan for an object that need not be in the source, such as one that is not created
// yet. The object belongs to the framework afterwards.
func (f *Framework) PlanObject(ctx context.Context, obj any) (*plan.Plan, error) {
	s := subjectOf(obj)
	return f.planThere(f.newPlanning(ctx, s.event, s.key, obj), obj)
}

// planThere plans for an existing object, unless it would be ignored. It takes ownership of the
// object.
func (f *Framework) planThere(r *reconciliation, obj any) (*plan.Plan, error) {
	if reason := f.ignoreReason(r.event, r.key, obj); reason != "" {
		return endPlan(newPlan(r), plan.Ignored, reason), nil
	}
	return f.planSet(r, obj)
}

// subject is an object to reconcile or plan, with its event and key.
type subject struct {
	event event
	key   informer.Key
	obj   any
	// confirmed is true after a live read of the object.
	confirmed bool
	// approval is nil unless a plan is being applied.
	approval *approval
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

// ignoreReason says why an object would be ignored. It is empty if the object would be reconciled.
func (f *Framework) ignoreReason(e event, key informer.Key, obj any) string {
	switch {
	case paused(obj):
		return reasonPaused
	case e == deleteEvent && f.usesFinalizer() && !f.hasFinalizer(obj):
		return reasonNotOurs
	case e == deleteEvent && f.tombstones.isProcessed(key, obj):
		return reasonProcessed
	}
	return ""
}

// planSet plans with the resource set of the object. It takes ownership of the object.
func (f *Framework) planSet(r *reconciliation, obj any) (*plan.Plan, error) {
	p := newPlan(r)
	set, err := f.resourceSet(r, obj)
	switch {
	case IsNoResourceSet(err):
		return endPlan(p, plan.Ignored, reasonNoResourceSet), nil
	case err != nil:
		r.failure = err
		return endPlan(p, plan.Failed, err.Error()), nil
	}
	f.planWith(p, r, &set.setPlanner, obj)
	return p, r.Err()
}

// planWith plans with a resource set. It takes ownership of the object.
func (f *Framework) planWith(p *plan.Plan, r *reconciliation, set *setPlanner, obj any) {
	p.ResourceSet = set.name
	r.set = set
	ctx, err := f.initCtx(r, set, obj)
	if err != nil {
		r.failure = err
		endPlan(p, plan.Failed, err.Error())
		return
	}
	planInto(ctx, p, r, obj, set.planners)
}

// planInto plans the resources one after the other, with the signals of ctx, which is r or a child
// of it. It takes ownership of the object: the last resource gets it, the others get copies.
func planInto(ctx context.Context, p *plan.Plan, r *reconciliation, obj any, planners []planner) {
	p.Outcome = plan.Planned
	for i, planner := range planners {
		switch {
		case p.Outcome == plan.Failed:
			p.Resources = append(p.Resources, plan.Resource{
				Name:    planner.name,
				Skipped: "not reached: an earlier resource fails",
			})
			continue
		case reconciliationcanceledcontext.IsCanceled(ctx):
			endPlan(p, plan.Canceled, "a resource or the context cancels the reconciliation")
			p.Resources = append(p.Resources, plan.Resource{
				Name:    planner.name,
				Skipped: "not reached: the reconciliation is cancelled",
			})
			continue
		}
		own := obj
		if i < len(planners)-1 || r.isGuarded() { // guards look at the object as it was read
			own = informer.Copy(obj)
		}
		resource := r.plan(ctx, i, planner, own)
		if r.isGuarded() && !planner.concludes && (resource.Opaque || len(resource.Changes) > 0) {
			for _, found := range r.judge(r.newScope(ctx, i, planner.name), planner.name, resource.Changes, resource.Opaque) {
				resource.Verdicts = append(resource.Verdicts, found.GuardVerdict)
			}
		}
		if resource.Error != "" {
			endPlan(p, plan.Failed, fmt.Sprintf("resource %q fails", planner.name))
		}
		p.Resources = append(p.Resources, resource)
	}
	if p.Outcome == plan.Planned && reconciliationcanceledcontext.IsCanceled(ctx) {
		endPlan(p, plan.Canceled, "the last resource cancels the reconciliation")
	}
	r.scrubPlan(p)
}

// plan plans one resource, which is at that place in its set, in its own scope.
func (r *reconciliation) plan(ctx context.Context, place int, p planner, obj any) plan.Resource {
	result := plan.Resource{Name: p.name, Opaque: p.plan == nil}
	if result.Opaque {
		return result
	}
	s := r.newScope(ctx, place, p.name)
	err := stepError(StepInfo{p.name, StepPlan}, callStep(s, func(ctx context.Context) (err error) {
		would, err := p.plan(ctx, r.event, obj)
		result.Changes, result.Notes, result.Skipped = would.changes, would.notes, would.skipped
		return err
	}))
	switch {
	case errors.Is(err, ErrOpaque):
		return plan.Resource{Name: p.name, Opaque: true}
	case IsPartial(err):
		r.failure, result.Error = err, err.Error()
	case err != nil:
		r.failure = err
		result.Changes, result.Notes, result.Error = nil, nil, err.Error()
	case resourcecanceledcontext.IsCanceled(s):
		result.Skipped = reasonResourceCanceled
	case reconciliationcanceledcontext.IsCanceled(s):
		result.Skipped = reasonReconciliationCanceled
	}
	return result
}

// newPlanning is newReconciliation for a plan: it has neither a number nor metrics.
func (f *Framework) newPlanning(ctx context.Context, e event, key informer.Key, obj any) *reconciliation {
	r := &reconciliation{event: e, object: obj, key: key, framework: f, plans: true}
	r.init(ctx)
	return r
}

func newPlan(r *reconciliation) *plan.Plan {
	p := &plan.Plan{Event: plan.Event(r.event.String()), Object: objectOf(r.object, r.key)}
	if r.framework != nil {
		p.Framework = r.framework.Name()
	}
	return p
}

// endPlan ends a plan early.
func endPlan(p *plan.Plan, outcome plan.Outcome, reason string) *plan.Plan {
	p.Outcome, p.Reason = outcome, reason
	return p
}

// planner is a resource for planning: it returns what would change, and can't change it.
type planner struct {
	name string
	// plan returns the changes of the resource. It is nil for opaque resources.
	plan func(ctx context.Context, e event, obj any) (intent, error)
	// concludes is true for a Concluder.
	concludes bool
}

// intent has the changes of a resource, and notes about the rest.
type intent struct {
	changes []plan.Change
	notes   []string
	// skipped says why it would not run, or not completely.
	skipped string
}

// plannable is implemented by the resources of this package.
type plannable interface{ planner() planner }

func plannersOf(resources []Resource) []planner {
	planners := make([]planner, 0, len(resources))
	for _, r := range resources {
		p := plannerOf(r)
		p.concludes = concludes(r)
		planners = append(planners, p)
	}
	return planners
}

func plannerOf(r Resource) planner {
	if p, ok := r.(plannable); ok && !embeds(r) {
		return p.planner()
	}
	if p, ok := r.(Planner); ok {
		return planner{name: r.Name(), plan: func(ctx context.Context, e event, obj any) (intent, error) {
			changes, err := p.Plan(ctx, plan.Event(e.String()), obj)
			return intent{changes: plan.Describe("", plannedChanges(changes), nil)}, err
		}}
	}
	return planner{name: r.Name()}
}

func (w *wrapped) planner() planner { return plannerOf(w.Resource) }

func (r *TypedCRUDResource[O, S]) planner() planner {
	return planner{name: r.Name(), plan: r.computation.plan}
}

// plan returns the parts of the patch that would be applied, and the notes of the desired state.
func (c computation[O, S]) plan(ctx context.Context, e event, obj any) (intent, error) {
	step := stepOf(e)
	o, err := typed[O](c.ops.Name(), obj, step)
	if err != nil {
		return intent{}, err
	}
	states, patch, fault := c.patch(ctx, o, step)
	if fault != nil && !IsPartial(fault) {
		return intent{}, fault
	}
	if on, err := proceed(ctx); !on {
		return intent{}, joinPartial(fault, err)
	}
	signalled := bySignals(ctx, step.event(), patch.set())
	return intent{
		changes: changesOf(states.current, patch.without(signalled.held)),
		notes:   plan.Notes(states.desired),
		skipped: signalled.reason,
	}, fault
}

// changesOf returns the parts of a patch in the form of plans.
func changesOf[S any](current S, patch *TypedPatch[S]) (changes []plan.Change) {
	if change, ok := patch.CreateChange(); ok {
		changes = append(changes, plan.Describe(plan.Create, change, current)...)
	}
	if change, ok := patch.UpdateChange(); ok {
		changes = append(changes, plan.Describe(plan.Update, change, current)...)
	}
	if change, ok := patch.DeleteChange(); ok {
		changes = append(changes, plan.Describe(plan.Delete, change, current)...)
	}
	return changes
}

// event returns the event of a reconciliation with that step of a plain resource.
func (s Step) event() plan.Event {
	if s == StepEnsureDeleted {
		return plan.DeleteEvent
	}
	return plan.UpdateEvent
}

// stepOf returns the step of a plain resource for an event.
func stepOf(e event) Step {
	if e == deleteEvent {
		return StepEnsureDeleted
	}
	return StepEnsureCreated
}
