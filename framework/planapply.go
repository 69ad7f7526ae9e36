package framework

import (
	"context"
	"errors"
	"fmt"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// These are the reasons for which a plan is not applied, or not completely. Check for them with
// errors.Is.
var (
	// ErrPlanChanged: the reconciliation would differ from the plan, because the object or
	// something else has changed since.
	ErrPlanChanged = errors.New("the plan is not the same any more")
	// ErrPlanIncomplete: the plan does not have everything that the reconciliation would do.
	ErrPlanIncomplete = errors.New("the plan is not complete")
	// ErrDeletionUnfinished: the plan was applied, but the deletion of the object waits for
	// something: a resource cancelled it, keeps the finalizer, or is not allowed to delete.
	ErrDeletionUnfinished = errors.New("the deletion is not finished")
	// ErrUpdateUnfinished: a part of the plan was applied. Then a resource cancelled the
	// reconciliation while it was applied, or a Policy held changes of a resource.
	ErrUpdateUnfinished = errors.New(
		"the reconciliation was cancelled or held, and not all that the plan says was done")
)

// CheckPlan implements access.Engine.
func (f engine) CheckPlan(ctx context.Context, saved *plan.Plan) error {
	_, err := f.check(ctx, saved)
	return err
}

// check checks a plan for CheckPlan. It also returns the object that the plan was checked for.
func (f *Framework) check(ctx context.Context, saved *plan.Plan) (obj any, err error) {
	if err := f.complete(saved); err != nil {
		return nil, fmt.Errorf("plan of %s: %w", saved.Object, err)
	}
	key := informer.Key{Namespace: saved.Object.Namespace, Name: saved.Object.Name}
	obj, exists, err := f.source.Get(key)
	if err != nil {
		return nil, fmt.Errorf("read %s from source %q: %w", keyString(key), f.source.Name(), err)
	}
	if !exists {
		return nil, fmt.Errorf("plan of %s: %w: there is no such object", saved.Object, ErrPlanChanged)
	}
	if obj, err = f.liveOf(ctx, key, obj); err != nil {
		return nil, err
	}
	now, err := f.PlanObject(ctx, informer.Copy(obj))
	if err != nil {
		return nil, fmt.Errorf("plan of %s: %w", saved.Object, err)
	}
	if diff := plan.Difference(saved, now); diff != "" {
		return nil, fmt.Errorf("plan of %s: %w:\n%s", saved.Object, ErrPlanChanged, diff)
	}
	return obj, nil
}

// complete returns an error for incomplete plans.
func (f *Framework) complete(saved *plan.Plan) error {
	if saved.Framework != f.Name() {
		return fmt.Errorf("%w: it is one of framework %q, not of %q", ErrExecutionFailed, saved.Framework, f.Name())
	}
	if saved.Outcome == plan.Failed {
		return fmt.Errorf("%w: %s", ErrPlanIncomplete, saved.Reason)
	}
	if opaque := saved.Opaque(); len(opaque) > 0 {
		return fmt.Errorf("%w: resource %q can't tell what it would do: let it implement framework.Planner",
			ErrPlanIncomplete, opaque[0])
	}
	return nil
}

// ApplyPlan executes the reconciliation of one object, including finalizers, if it does exactly
// what a plan describes. Everything is computed again and compared twice. First the whole plan is
// compared, before anything is done: if it differs, nothing has been changed, and the error has
// ErrPlanChanged in its chain and describes the difference. Then every resource is compared again
// at its turn, and a CRUD resource applies exactly the compared patch. A resource with different
// changes by then changes nothing and ends the reconciliation with such an error. This happens to a
// resource that depends on changes of an earlier one: plan again, and apply the rest. A Concluder
// is not compared again: it writes the actual outcome.
//
// If a resource cancels the reconciliation although its plan does not say so, the error has
// ErrUpdateUnfinished in its chain, or in a deletion ErrDeletionUnfinished. Plan again, and apply
// the rest.
//
// Applying an ignored plan does nothing. Plans that failed, or that have opaque resources, are
// refused with ErrPlanIncomplete.
//
// The sources must be synced. The framework must not run, neither before nor at the same time: it
// would reconcile the object. ApplyPlan may be called for different objects at the same time.
func (f *Framework) ApplyPlan(ctx context.Context, saved *plan.Plan) error {
	if f.begun.Load() {
		return fmt.Errorf("apply plan of %s: %w: the framework is run and reconciles the object itself",
			saved.Object, ErrExecutionFailed)
	}
	key := informer.Key{Namespace: saved.Object.Namespace, Name: saved.Object.Name}
	ctx = sharingSecrets(ctx, key)
	obj, err := f.check(ctx, saved)
	if err != nil || saved.Outcome == plan.Ignored {
		return err
	}
	s := subjectOf(obj)
	s.confirmed, s.approval = true, &approval{saved}
	res := f.reconcileSubject(ctx, s)
	switch {
	case res.err != nil:
		return fmt.Errorf("apply plan: %w", res.err)
	case res.outcome == Ignored:
		return fmt.Errorf("apply plan of %s: %w: %s", saved.Object, ErrPlanChanged, res.reason)
	case res.outcome == Waiting && saved.Event == plan.DeleteEvent:
		return fmt.Errorf("apply plan of %s: %w: plan again when what it waits for is gone, and apply the rest",
			saved.Object, ErrDeletionUnfinished)
	case res.outcome == Waiting, res.outcome == Canceled && saved.Outcome != plan.Canceled:
		return fmt.Errorf("apply plan of %s: %w: plan again, and apply the rest", saved.Object, ErrUpdateUnfinished)
	}
	return nil
}

// approval lets a reconciliation do what a plan describes, and nothing else.
type approval struct{ plan *plan.Plan }

// Admit denies changes that are not in the plan. The steps of a CRUD resource inside another
// resource are compared as changes of the outer one. A Concluder is not compared.
func (a *approval) Admit(ctx context.Context, p Proposal) Verdict {
	s := scopeOf(ctx)
	if s.concludes || !p.plain && (!s.crud || s.resource != p.Resource) {
		return Go()
	}
	if p.Opaque {
		return Deny(fmt.Errorf("%w: the resource can't tell what it would do", ErrPlanIncomplete))
	}
	changes, err := p.Changes()
	if err != nil {
		return Deny(err)
	}
	approved := &plan.Plan{}
	now := &plan.Plan{Resources: []plan.Resource{{Name: s.resource, Changes: s.reconciliation.shown(changes)}}}
	if place := int(s.place); place < len(a.plan.Resources) {
		r := a.plan.Resources[place]
		approved.Resources = []plan.Resource{{Name: r.Name, Changes: r.Changes}}
	}
	if diff := plan.Difference(approved, now); diff != "" {
		return Deny(Permanent(fmt.Errorf(
			"%w; this resource has changed nothing, earlier ones are done: plan again, and apply the rest:\n%s",
			ErrPlanChanged, diff)))
	}
	return Go()
}
