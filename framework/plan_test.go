package framework_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/context/deletionallowedcontext"
	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/context/resourcecanceledcontext"
	"github.com/operatorkit/operatorkit/context/updateallowedcontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// described is a part of a patch that describes itself.
type described string

func (d described) Changes() []plan.Change {
	action := map[described]plan.Action{"c": plan.Create, "u": plan.Update, "d": plan.Delete}[d]
	return []plan.Change{{Action: action, Object: plan.Object{Name: string(d)}}}
}

// describedOps are ops whose states describe themselves, and which note what they apply.
type describedOps struct {
	name    string
	on      func(ctx context.Context, step framework.Step) error
	applied *journal
}

func (o *describedOps) Name() string { return o.name }

func (o *describedOps) step(ctx context.Context, step framework.Step) error {
	if o.on == nil {
		return nil
	}
	return o.on(ctx, step)
}

func (o *describedOps) GetCurrentState(ctx context.Context, _ *corev1.ConfigMap) (described, error) {
	return "", o.step(ctx, framework.StepGetCurrentState)
}

func (o *describedOps) GetDesiredState(ctx context.Context, _ *corev1.ConfigMap) (described, error) {
	return "", o.step(ctx, framework.StepGetDesiredState)
}

func (o *describedOps) patch() *framework.TypedPatch[described] {
	p := framework.NewTypedPatch[described]()
	p.SetCreateChange("c")
	p.SetUpdateChange("u")
	p.SetDeleteChange("d")
	return p
}

func (o *describedOps) NewUpdatePatch(ctx context.Context, _ *corev1.ConfigMap, _, _ described) (*framework.TypedPatch[described], error) {
	return o.patch(), o.step(ctx, framework.StepNewUpdatePatch)
}

func (o *describedOps) NewDeletePatch(ctx context.Context, _ *corev1.ConfigMap, _, _ described) (*framework.TypedPatch[described], error) {
	return o.patch(), o.step(ctx, framework.StepNewDeletePatch)
}

func (o *describedOps) ApplyCreateChange(_ context.Context, _ *corev1.ConfigMap, change described) error {
	o.applied.add(o.name + " create " + string(change))
	return nil
}

func (o *describedOps) ApplyUpdateChange(_ context.Context, _ *corev1.ConfigMap, change described) error {
	o.applied.add(o.name + " update " + string(change))
	return nil
}

func (o *describedOps) ApplyDeleteChange(_ context.Context, _ *corev1.ConfigMap, change described) error {
	o.applied.add(o.name + " delete " + string(change))
	return nil
}

// planned makes a resource of describedOps.
func planned(t testing.TB, o *describedOps) framework.Resource {
	t.Helper()
	r, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[*corev1.ConfigMap, described]{Logger: quiet(t), Ops: o})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// changesOf lists the changes of a plan in the words of describedOps.
func changesOf(p *plan.Plan) []string {
	var lines []string
	for _, r := range p.Resources {
		for _, c := range r.Changes {
			lines = append(lines, r.Name+" "+string(c.Action)+" "+c.Object.Name)
		}
	}
	return lines
}

func TestR9PlanIsWhatIsDoneThenAndDoesNothing(t *testing.T) {
	signals := map[string]func(context.Context){
		"nothing":               func(context.Context) {},
		"resource canceled":     resourcecanceledcontext.SetCanceled,
		"reconciliation ditto":  reconciliationcanceledcontext.SetCanceled,
		"updates not allowed":   func(ctx context.Context) { updateallowedcontext.SetUpdateAllowed(ctx) },
		"deletions are allowed": func(ctx context.Context) { deletionallowedcontext.SetDeletionAllowed(ctx) },
	}
	type run struct {
		plan    func(context.Context, any, []framework.Resource) (*plan.Plan, error)
		process func(context.Context, any, []framework.Resource) error
		patch   framework.Step
	}
	for event, run := range map[string]run{
		"update": {framework.PlanUpdate, framework.ProcessUpdate, framework.StepNewUpdatePatch},
		"delete": {framework.PlanDelete, framework.ProcessDelete, framework.StepNewDeletePatch},
	} {
		for name, set := range signals {
			for _, at := range []framework.Step{framework.StepGetCurrentState, framework.StepGetDesiredState, run.patch} {
				for _, forbid := range []bool{false, true} {
					applied := &journal{}
					first := &describedOps{name: "first", applied: applied, on: func(ctx context.Context, step framework.Step) error {
						if step == at {
							set(ctx)
						}
						return nil
					}}
					resources := []framework.Resource{planned(t, first), planned(t, &describedOps{name: "second", applied: applied})}
					context := func() context.Context {
						if !forbid {
							return t.Context()
						}
						return deletionallowedcontext.NewContext(updateallowedcontext.NewContext(t.Context()))
					}

					p, err := run.plan(context(), configMap("a"), resources)
					if err != nil {
						t.Fatal(err)
					}
					if did := applied.all(); len(did) > 0 {
						t.Fatalf("the plan did %v", did)
					}
					if err := run.process(context(), configMap("a"), resources); err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(applied.all(), changesOf(p)); diff != "" {
						t.Errorf("%s, %s set in %s, forbidden %t: plan (-done +planned):\n%s", event, name, at, forbid, diff)
					}
				}
			}
		}
	}
}

func TestR9PlanningCodeNamesNoFunctionThatApplies(t *testing.T) {
	for _, file := range []string{"plan.go", "computation.go", "shadow.go", "shadow_compare.go", "internal/shadows/shadows.go"} {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && (strings.HasPrefix(id.Name, "Apply") || strings.HasPrefix(id.Name, "Ensure")) {
				t.Errorf("%s mentions %s", file, id.Name)
			}
			return true
		})
	}
}

// teller is a plain resource that can be planned.
type teller struct {
	resource
	changes []plan.Change
	err     error
}

func (p *teller) Plan(_ context.Context, event plan.Event, _ any) ([]plan.Change, error) {
	if p.err != nil && p.err.Error() == "panic" {
		panic("at the planning")
	}
	if event == plan.DeleteEvent {
		return nil, p.err
	}
	return p.changes, p.err
}

func TestPlanSaysOfEachResourceWhatItWouldDo(t *testing.T) {
	create := []plan.Change{{Action: plan.Create, Object: plan.Object{Name: "x"}}}
	never := func(context.Context, any) error { t.Error("a plan ran a resource"); return nil }
	pass := func(ctx context.Context, _ framework.StepInfo, next func(context.Context) error) error {
		return next(ctx)
	}
	tells := func(name string) *teller { return &teller{resource: resource{name, never, never}, changes: create} }
	fails := func(name, message string) *teller {
		return &teller{resource: resource{name, never, never}, err: errors.New(message)}
	}
	notReached := plan.Resource{Name: "last", Skipped: "not reached: an earlier resource fails"}

	for name, test := range map[string]struct {
		resources []framework.Resource
		want      []plan.Resource
		outcome   plan.Outcome
	}{
		"a plain resource is opaque": {
			[]framework.Resource{&resource{"r", never, never}}, []plan.Resource{{Name: "r", Opaque: true}}, plan.Planned,
		},
		"a plain resource tells": {
			[]framework.Resource{tells("r")}, []plan.Resource{{Name: "r", Changes: create}}, plan.Planned,
		},
		"a plain resource that can't tell this time": {
			[]framework.Resource{&teller{resource: resource{"r", never, never}, changes: create, err: fmt.Errorf("busy: %w", framework.ErrOpaque)}},
			[]plan.Resource{{Name: "r", Opaque: true}}, plan.Planned,
		},
		"a wrapped one too": {
			[]framework.Resource{framework.WrapSteps(tells("r"), pass), framework.WrapSteps(&resource{"o", never, never}, pass)},
			[]plan.Resource{{Name: "r", Changes: create}, {Name: "o", Opaque: true}}, plan.Planned,
		},
		"what follows a failure is not known": {
			[]framework.Resource{tells("r"), fails("bad", "no route"), tells("last")},
			[]plan.Resource{{Name: "r", Changes: create}, {Name: "bad", Error: `resource "bad": plan: no route`}, notReached}, plan.Failed,
		},
		"a panic is a failure": {
			[]framework.Resource{fails("bad", "panic"), tells("last")},
			[]plan.Resource{{Name: "bad", Error: `resource "bad": plan: panic: value of type string in github.com/operatorkit/operatorkit/framework_test.(*teller).Plan (plan_test.go:189)`}, notReached}, plan.Failed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := framework.PlanUpdate(t.Context(), configMap("a"), test.resources)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, p.Resources); diff != "" || p.Outcome != test.outcome {
				t.Errorf("outcome %s, want %s; resources (-want +got):\n%s", p.Outcome, test.outcome, diff)
			}
		})
	}
	if _, err := framework.PlanUpdate(t.Context(), configMap("a"), nil); !framework.IsExecutionFailed(err) {
		t.Errorf("a plan without resources gives %v", err)
	}
}

func TestFrameworkPlansAsItWouldReconcile(t *testing.T) {
	created := plan.Change{Action: plan.Create, Object: plan.Object{Name: "x"}}
	paused, panics, held := configMap("paused"), configMap("panics"), deleting("held")
	paused.Annotations = map[string]string{framework.PausedAnnotation: "true"}
	panics.Labels = map[string]string{"set": "bad"}
	several := configMap("several")
	several.Labels = map[string]string{"set": "both"}
	unknown := configMap("unknown")
	unknown.Labels = map[string]string{"set": "none"}
	held.Finalizers = []string{"example.com/f"}

	synctest.Test(t, func(t *testing.T) {
		tells := &teller{resource: resource{name: "r"}, changes: []plan.Change{created}}
		in := func(sets ...string) func(any) bool {
			return func(obj any) bool {
				for _, set := range sets {
					if obj.(*corev1.ConfigMap).Labels["set"] == set {
						return true
					}
				}
				return false
			}
		}
		source := &holding{informer.NewPush("objects"), func(*corev1.ConfigMap) error { t.Error("a plan removed a finalizer"); return nil }}
		f := newFramework(t, framework.Config{Source: source, Finalizer: "example.com/f", ResourceRouter: routerOf(t,
			framework.ResourceSetConfig{Name: "v1", Handles: in("", "both"), Resources: []framework.Resource{tells}},
			framework.ResourceSetConfig{Name: "v2", Handles: in("both"), Resources: []framework.Resource{tells}},
			framework.ResourceSetConfig{Name: "bad", Handles: in("bad"), Resources: []framework.Resource{tells},
				InitCtx: func(context.Context, any) (context.Context, error) { panic("no context") }},
		)})
		for _, obj := range []*corev1.ConfigMap{configMap("plain"), paused, panics, several, unknown, held, deleting("foreign")} {
			put(t, source.Push, obj)
		}
		for name, want := range map[string]string{
			"plain":   "update v1 planned 1: ",
			"held":    "delete v1 planned 0: ",
			"foreign": "delete  ignored 0: it is being deleted and does not have the finalizer of this framework",
			"paused":  "update  ignored 0: it is paused by an annotation",
			"unknown": "update  ignored 0: no resource set handles it",
			"several": "update  failed 0: update of ConfigMap default/several: execution failed: several resource sets: resource sets 0 and 1 both handle it; make their Handles functions exclude each other",
			"panics":  "update bad failed 0: panic: value of type string in github.com/operatorkit/operatorkit/framework_test.TestFrameworkPlansAsItWouldReconcile.func1.3 (plan_test.go:280)",
		} {
			p, err := f.Plan(t.Context(), keyOf(name))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			got := strings.Join([]string{string(p.Event), p.ResourceSet, string(p.Outcome), string(rune('0' + len(changesOf(p))))}, " ") + ": " + p.Reason
			if got != want {
				t.Errorf("%s:\n got %s\nwant %s", name, got, want)
			}
			if p.Object.Name != name || p.Object.Kind != "ConfigMap" || p.Framework != f.Name() {
				t.Errorf("%s: the plan is of %+v in %q", name, p.Object, p.Framework)
			}
		}
		if _, err := f.Plan(t.Context(), keyOf("absent")); !apierrors.IsNotFound(err) {
			t.Errorf("plan of an absent object: %v", err)
		}
	})
}

func TestPlanOfAnObjectThatIsGoneIsThatOfItsDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		tells := &teller{resource: resource{name: "r", deleted: func(context.Context, any) error { return errBoom }}}
		f := newFramework(t, framework.Config{Source: source, BackOffFactory: everyMinute}, tells)
		defer running(t, f)()
		put(t, source, configMap("a"))
		synctest.Wait()
		remove(t, source, configMap("a"))
		synctest.Wait()

		p, err := f.Plan(t.Context(), keyOf("a"))
		if err != nil || p.Event != plan.DeleteEvent || p.Outcome != plan.Planned {
			t.Errorf("plan %+v, error %v; want that of a deletion", p, err)
		}
	})
}
