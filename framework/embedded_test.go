package framework_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
)

// around embeds a CRUD resource and does something of its own before it.
type around struct {
	*framework.TypedCRUDResource[any, string]
	calls *journal
}

func (a *around) EnsureCreated(ctx context.Context, obj any) error {
	a.calls.add("around")
	return a.TypedCRUDResource.EnsureCreated(ctx, obj)
}

// telling says what it would do.
type telling struct{ around }

func (*telling) Plan(context.Context, plan.Event, any) ([]plan.Change, error) {
	return []plan.Change{{Action: plan.Update, Object: plan.Object{Name: "around"}}}, nil
}

// stepping has its steps wrapped, and stays what it is.
type stepping struct{ around }

func (s *stepping) WrapSteps(m framework.Middleware) framework.Resource {
	inner := s.TypedCRUDResource.WrapSteps(m).(*framework.TypedCRUDResource[any, string])
	return &stepping{around{inner, s.calls}}
}

// inner are the steps of the CRUD resource that is embedded. It finds nothing to do.
type inner struct{ calls *journal }

func (inner) Name() string { return "inner" }
func (i inner) GetCurrentState(context.Context, any) (string, error) {
	i.calls.add("current")
	return "", nil
}
func (inner) GetDesiredState(context.Context, any) (string, error) { return "", nil }
func (inner) NewUpdatePatch(context.Context, any, string, string) (*framework.TypedPatch[string], error) {
	return nil, nil
}
func (inner) NewDeletePatch(context.Context, any, string, string) (*framework.TypedPatch[string], error) {
	return nil, nil
}
func (inner) ApplyCreateChange(context.Context, any, string) error { return nil }
func (inner) ApplyUpdateChange(context.Context, any, string) error { return nil }
func (inner) ApplyDeleteChange(context.Context, any, string) error { return nil }

func embedding(t *testing.T) (around, *journal) {
	t.Helper()
	calls := &journal{}
	r, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[any, string]{Logger: quiet(t), Ops: inner{calls}})
	if err != nil {
		t.Fatal(err)
	}
	return around{r, calls}, calls
}

func TestATypeThatEmbedsACRUDResourceKeepsItsOwnEnsureCreatedWhenItIsWrapped(t *testing.T) {
	for name, test := range map[string]struct {
		resource func(outer around) framework.Resource
		want     []string
	}{
		"as a whole": {
			func(outer around) framework.Resource { return &outer },
			[]string{"wrapped ensure_created", "around", "current"},
		},
		"by a WrapSteps of its own": {
			func(outer around) framework.Resource { return &stepping{outer} },
			[]string{"around", "wrapped get_current_state", "current", "wrapped get_desired_state", "wrapped new_update_patch"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			outer, calls := embedding(t)
			r := framework.WrapSteps(test.resource(outer), func(ctx context.Context, info framework.StepInfo, next func(context.Context) error) error {
				calls.add("wrapped " + string(info.Step))
				return next(ctx)
			})
			if err := framework.ProcessUpdate(t.Context(), "x", []framework.Resource{r}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, calls.all()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestThePlanOfATypeThatEmbedsACRUDResourceIsItsOwn(t *testing.T) {
	outer, _ := embedding(t)
	pass := func(ctx context.Context, _ framework.StepInfo, next func(context.Context) error) error {
		return next(ctx)
	}
	for name, test := range map[string]struct {
		resource framework.Resource
		want     plan.Resource
	}{
		"it can't tell":              {&outer, plan.Resource{Name: "inner", Opaque: true}},
		"it can't tell when wrapped": {framework.WrapSteps(&outer, pass), plan.Resource{Name: "inner", Opaque: true}},
		"it tells": {&telling{outer}, plan.Resource{Name: "inner", Changes: []plan.Change{
			{Action: plan.Update, Object: plan.Object{Name: "around"}}}}},
		"the resource itself": {outer.TypedCRUDResource, plan.Resource{Name: "inner"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := framework.PlanUpdate(t.Context(), "x", []framework.Resource{test.resource})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]plan.Resource{test.want}, p.Resources); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestASavedPlanIsNotAppliedByATypeThatEmbedsACRUDResourceAndDoesSomethingElse(t *testing.T) {
	outer, calls := embedding(t)
	tells := &telling{outer}
	s := newSaving(t, configMap("a"), tells)
	p := s.saved(t)
	p.Resources[0].Changes = nil // what the embedded resource alone would do
	if err := s.ApplyPlan(t.Context(), p); !errors.Is(err, framework.ErrPlanChanged) {
		t.Errorf("got %v, want that the plan has changed", err)
	}
	if got := strings.Join(calls.all(), " "); strings.Contains(got, "around") {
		t.Errorf("it did what the plan does not say: %s", got)
	}
}

func TestANilResourceIsRefusedByItsPlaceAlsoWhenItIsWrapped(t *testing.T) {
	var none *framework.CRUDResource
	pass := func(ctx context.Context, _ framework.StepInfo, next func(context.Context) error) error {
		return next(ctx)
	}
	_, err := framework.NewResourceSet(framework.ResourceSetConfig{
		HandlesRest: true,
		Resources:   []framework.Resource{&resource{name: "r"}, framework.WrapSteps(none, pass), framework.WrapSteps(nil, pass)},
	})
	if !framework.IsInvalidConfig(err) || !strings.Contains(err.Error(), "Resources[1] must not be nil; Resources[2] must not be nil") {
		t.Errorf("got %v", err)
	}
}

func TestOpsThatAreANilPointerAreRefused(t *testing.T) {
	_, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[any, string]{Logger: quiet(t), Ops: (*nilOps)(nil)})
	if !framework.IsInvalidConfig(err) || !strings.Contains(err.Error(), "Ops must not be nil") {
		t.Errorf("got %v", err)
	}
}

// nilOps has a name only if it is there.
type nilOps struct {
	inner
	name string
}

func (o *nilOps) Name() string { return o.name }
