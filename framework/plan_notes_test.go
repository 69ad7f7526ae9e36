package framework_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/context/resourcecanceledcontext"
	"github.com/operatorkit/operatorkit/context/updateallowedcontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
)

// waiting is a state that says what waits.
type waiting struct{ changes, notes []string }

func (w waiting) Changes() []plan.Change {
	var changes []plan.Change
	for _, name := range w.changes {
		changes = append(changes, plan.Change{Object: plan.Object{Name: name}})
	}
	return changes
}

func (w waiting) Notes() []string { return w.notes }

// waitingOps have one thing to update, and note what their notes are.
type waitingOps struct {
	notes []string
	// on is called when a patch is computed.
	on func(ctx context.Context) error
}

func (o *waitingOps) Name() string { return "waiting" }

func (o *waitingOps) GetCurrentState(context.Context, *corev1.ConfigMap) (waiting, error) {
	return waiting{notes: []string{"a current state has no notes"}}, nil
}

func (o *waitingOps) GetDesiredState(context.Context, *corev1.ConfigMap) (waiting, error) {
	return waiting{notes: o.notes}, nil
}

func (o *waitingOps) patch(ctx context.Context) (*framework.TypedPatch[waiting], error) {
	p := framework.NewTypedPatch[waiting]()
	p.SetUpdateChange(waiting{changes: []string{"a"}, notes: []string{"a part of a patch has no notes"}})
	if o.on == nil {
		return p, nil
	}
	return p, o.on(ctx)
}

func (o *waitingOps) NewUpdatePatch(ctx context.Context, _ *corev1.ConfigMap, _, _ waiting) (*framework.TypedPatch[waiting], error) {
	return o.patch(ctx)
}

func (o *waitingOps) NewDeletePatch(ctx context.Context, _ *corev1.ConfigMap, _, _ waiting) (*framework.TypedPatch[waiting], error) {
	return o.patch(ctx)
}

func (o *waitingOps) ApplyCreateChange(context.Context, *corev1.ConfigMap, waiting) error { return nil }
func (o *waitingOps) ApplyUpdateChange(context.Context, *corev1.ConfigMap, waiting) error { return nil }
func (o *waitingOps) ApplyDeleteChange(context.Context, *corev1.ConfigMap, waiting) error { return nil }

func newWaiting(t testing.TB, o *waitingOps) framework.Resource {
	t.Helper()
	r, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[*corev1.ConfigMap, waiting]{Logger: quiet(t), Ops: o})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPlanHasTheNotesOfTheDesiredState(t *testing.T) {
	notes := []string{"b waits for a"}
	for name, tc := range map[string]struct {
		on   func(ctx context.Context) error
		ctx  func(context.Context) context.Context
		want []string
	}{
		"beside a change":              {want: notes},
		"beside one that is skipped":   {ctx: updateallowedcontext.NewContext, want: notes},
		"not of a resource that fails": {on: func(context.Context) error { return errors.New("no") }},
		"not of a resource that is cancelled": {on: func(ctx context.Context) error {
			resourcecanceledcontext.SetCanceled(ctx)
			return nil
		}},
		"not of a reconciliation that is cancelled": {on: func(ctx context.Context) error {
			reconciliationcanceledcontext.SetCanceled(ctx)
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newWaiting(t, &waitingOps{notes: notes, on: tc.on})
			for event, planned := range map[string]func(context.Context, any, []framework.Resource) (*plan.Plan, error){
				"update": framework.PlanUpdate, "delete": framework.PlanDelete,
			} {
				ctx := t.Context()
				if tc.ctx != nil {
					ctx = tc.ctx(ctx)
				}
				p, err := planned(ctx, &corev1.ConfigMap{}, []framework.Resource{framework.WrapSteps(r, passing), &resource{name: "after"}})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, p.Resources[0].Notes); diff != "" {
					t.Errorf("%s (-want +got):\n%s", event, diff)
				}
			}
		})
	}
}

// passing is a middleware that only passes on.
func passing(ctx context.Context, _ framework.StepInfo, next func(context.Context) error) error {
	return next(ctx)
}

// What waits may be something else by the time: the plan is the same.
func TestAPlanIsAppliedWhateverItsNotes(t *testing.T) {
	o := &waitingOps{notes: []string{"b waits for a"}}
	s := newSaving(t, configMap("a"), newWaiting(t, o))
	p, err := s.Plan(t.Context(), keyOf("a"))
	if err != nil {
		t.Fatal(err)
	}
	o.notes = []string{"c waits for a"}
	if err := s.ApplyPlan(t.Context(), p); err != nil {
		t.Error(err)
	}
}
