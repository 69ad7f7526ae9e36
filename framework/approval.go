package framework

import (
	"context"
	"fmt"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// approval lets a reconciliation do what a plan says, and nothing else.
type approval struct{ plan *plan.Plan }

type approvalKey struct{}

// approvalOf returns the approval that a context carries, or nil.
func approvalOf(ctx context.Context) *approval {
	a, _ := ctx.Value(approvalKey{}).(*approval)
	return a
}

// selfChecking is implemented by resources that compare what they are about to apply themselves.
type selfChecking interface{ checksApproval() }

func (r *TypedCRUDResource[O, S]) checksApproval() {}

// guarded returns ensure, a function of the resource in that place, with a comparison before it. A resource that compares
// itself is told that it has to.
func (a *approval) guarded(s *scope, resource Resource, ensure func(context.Context, any) error) func(context.Context, any) error {
	if _, ok := resource.(selfChecking); ok {
		s.approval = a
		return ensure
	}
	return func(ctx context.Context, obj any) error {
		p := plannerOf(resource)
		if p.plan == nil {
			return fmt.Errorf("%w: the resource can't tell what it would do", ErrPlanIncomplete)
		}
		now, err := p.plan(ctx, s.reconciliation.event, informer.Copy(obj))
		if err != nil {
			return err
		}
		if err := a.allows(s, now.changes); err != nil {
			return err
		}
		return ensure(ctx, obj)
	}
}

// approve is an error when a plan is being applied that does not say what the patch of a resource does.
func approve[S any](ctx context.Context, resource string, current S, patch *TypedPatch[S]) error {
	s := scopeOf(ctx)
	if s == nil || s.approval == nil || s.resource != resource {
		return nil
	}
	var changes []plan.Change
	if on, _ := proceed(ctx); on {
		changes, _ = changesOf(ctx, s.reconciliation.event, current, patch)
	}
	return s.approval.allows(s, changes)
}

// allows is an error unless the changes of a resource are those of the plan.
func (a *approval) allows(s *scope, changes []plan.Change) error {
	approved, now := &plan.Plan{}, &plan.Plan{Resources: []plan.Resource{{Name: s.resource, Changes: changes}}}
	if s.place < len(a.plan.Resources) {
		r := a.plan.Resources[s.place]
		approved.Resources = []plan.Resource{{Name: r.Name, Changes: r.Changes}}
	}
	if diff := plan.Difference(approved, now); diff != "" {
		return Permanent(fmt.Errorf("%w; this resource has changed nothing, earlier ones are done:\n%s", ErrPlanChanged, diff))
	}
	return nil
}
