package framework

import (
	"context"

	"github.com/operatorkit/operatorkit/framework/plan"
)

// planner is what planning knows of a resource: it tells what would change, and has no way to change it.
type planner struct {
	name string
	// plan returns what the resource would do. It is nil for resources that can't tell.
	plan func(ctx context.Context, e event, obj any) (intent, error)
}

// intent is what a resource would do, and what it would leave alone.
type intent struct {
	changes []plan.Change
	notes   []string
	// skipped says why it would not run, or not to its end.
	skipped string
}

// plannable is implemented by the resources of this package.
type plannable interface{ planner() planner }

func plannersOf(resources []Resource) []planner {
	planners := make([]planner, 0, len(resources))
	for _, r := range resources {
		planners = append(planners, plannerOf(r))
	}
	return planners
}

func plannerOf(r Resource) planner {
	switch p := r.(type) {
	case plannable:
		return p.planner()
	case Planner:
		return planner{name: r.Name(), plan: func(ctx context.Context, e event, obj any) (intent, error) {
			changes, err := p.Plan(ctx, plan.Event(e), obj)
			return intent{changes: changes}, err
		}}
	}
	return planner{name: r.Name()}
}

func (w *wrapped) planner() planner { return plannerOf(w.Resource) }

func (r *TypedCRUDResource[O, S]) planner() planner {
	return planner{name: r.Name(), plan: r.computation.plan}
}

// plan returns the parts of the patch that would be applied, and what the desired state says about the rest.
func (c computation[O, S]) plan(ctx context.Context, e event, obj any) (intent, error) {
	step := stepOf(e)
	o, err := typed[O](c.ops.Name(), obj, step)
	if err != nil {
		return intent{}, err
	}
	states, patch, err := c.patch(ctx, o, step)
	if err != nil {
		return intent{}, err
	}
	if on, err := proceed(ctx); !on {
		return intent{}, err
	}
	told := intent{notes: plan.Notes(states.desired)}
	told.changes, told.skipped = changesOf(ctx, e, states.current, patch)
	return told, nil
}

// changesOf returns the parts of a patch that would be applied, and why one of them would not be.
func changesOf[S any](ctx context.Context, e event, current S, patch *TypedPatch[S]) (changes []plan.Change, skipped string) {
	if change, ok := patch.CreateChange(); ok {
		changes = append(changes, plan.Describe(plan.Create, change, current)...)
	}
	if change, ok := patch.UpdateChange(); ok && updateAllowed(ctx) {
		changes = append(changes, plan.Describe(plan.Update, change, current)...)
	} else if ok {
		skipped = reasonNoUpdates
	}
	if change, ok := patch.DeleteChange(); ok && (e != deleteEvent || deletionAllowed(ctx)) {
		changes = append(changes, plan.Describe(plan.Delete, change, current)...)
	} else if ok {
		skipped = reasonNoDeletion
	}
	return changes, skipped
}

// stepOf is the step of a plain resource for an event.
func stepOf(e event) Step {
	if e == deleteEvent {
		return StepEnsureDeleted
	}
	return StepEnsureCreated
}
