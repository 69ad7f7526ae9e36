package framework_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/context/deletionallowedcontext"
	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/context/resourcecanceledcontext"
	"github.com/operatorkit/operatorkit/context/updateallowedcontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/panics"
)

// ops writes down its calls, and does in each what the test says.
type ops struct {
	name  string
	calls *journal
	patch func() *framework.TypedPatch[string]
	on    func(ctx context.Context, step framework.Step) error
}

func (o *ops) call(ctx context.Context, step framework.Step, detail string) error {
	o.calls.add(strings.TrimSpace(o.name + " " + string(step) + " " + detail))
	if o.on == nil {
		return nil
	}
	return o.on(ctx, step)
}

func (o *ops) Name() string { return o.name }

func (o *ops) GetCurrentState(ctx context.Context, _ *corev1.ConfigMap) (string, error) {
	return "is", o.call(ctx, framework.StepGetCurrentState, "")
}

func (o *ops) GetDesiredState(ctx context.Context, _ *corev1.ConfigMap) (string, error) {
	return "should", o.call(ctx, framework.StepGetDesiredState, "")
}

func (o *ops) NewUpdatePatch(ctx context.Context, _ *corev1.ConfigMap, current, desired string) (*framework.TypedPatch[string], error) {
	return o.patch(), o.call(ctx, framework.StepNewUpdatePatch, current+" "+desired)
}

func (o *ops) NewDeletePatch(ctx context.Context, _ *corev1.ConfigMap, current, desired string) (*framework.TypedPatch[string], error) {
	return o.patch(), o.call(ctx, framework.StepNewDeletePatch, current+" "+desired)
}

func (o *ops) ApplyCreateChange(ctx context.Context, _ *corev1.ConfigMap, change string) error {
	return o.call(ctx, framework.StepApplyCreateChange, change)
}

func (o *ops) ApplyUpdateChange(ctx context.Context, _ *corev1.ConfigMap, change string) error {
	return o.call(ctx, framework.StepApplyUpdateChange, change)
}

func (o *ops) ApplyDeleteChange(ctx context.Context, _ *corev1.ConfigMap, change string) error {
	return o.call(ctx, framework.StepApplyDeleteChange, change)
}

func fullPatch() *framework.TypedPatch[string] {
	p := framework.NewTypedPatch[string]()
	p.SetDeleteChange("d")
	p.SetUpdateChange("u")
	p.SetCreateChange("c")
	return p
}

func crud(t testing.TB, o *ops) *framework.TypedCRUDResource[*corev1.ConfigMap, string] {
	t.Helper()
	if o.patch == nil {
		o.patch = fullPatch
	}
	r, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[*corev1.ConfigMap, string]{Logger: quiet(t), Ops: o})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestR7PartsAreAppliedInTheOrderCreateUpdateDelete(t *testing.T) {
	for name, tt := range map[string]struct {
		patch func() *framework.TypedPatch[string]
		want  []string
	}{
		"all parts": {fullPatch, []string{"r apply_create_change c", "r apply_update_change u", "r apply_delete_change d"}},
		"nil patch": {func() *framework.TypedPatch[string] { return nil }, nil},
		"no part":   {framework.NewTypedPatch[string], nil},
		"one part": {func() *framework.TypedPatch[string] {
			p := framework.NewTypedPatch[string]()
			p.SetUpdateChange("u")
			return p
		}, []string{"r apply_update_change u"}},
		"an empty part that was set": {func() *framework.TypedPatch[string] {
			p := framework.NewTypedPatch[string]()
			p.SetCreateChange("")
			return p
		}, []string{"r apply_create_change"}},
	} {
		t.Run(name, func(t *testing.T) {
			calls := &journal{}
			r := crud(t, &ops{name: "r", calls: calls, patch: tt.patch})

			if err := framework.ProcessUpdate(t.Context(), configMap("a"), []framework.Resource{r}); err != nil {
				t.Fatal(err)
			}
			want := append([]string{"r get_current_state", "r get_desired_state", "r new_update_patch is should"}, tt.want...)
			if diff := cmp.Diff(want, calls.all()); diff != "" {
				t.Errorf("update (-want +got):\n%s", diff)
			}

			calls.entries = nil
			if err := framework.ProcessDelete(t.Context(), configMap("a"), []framework.Resource{r}); err != nil {
				t.Fatal(err)
			}
			want[2] = "r new_delete_patch is should"
			if diff := cmp.Diff(want, calls.all()); diff != "" {
				t.Errorf("delete (-want +got):\n%s", diff)
			}
		})
	}
}

func TestR8SignalsAreLookedAtBeforeEveryStep(t *testing.T) {
	steps := map[bool][]framework.Step{
		false: {framework.StepGetCurrentState, framework.StepGetDesiredState, framework.StepNewUpdatePatch,
			framework.StepApplyCreateChange, framework.StepApplyUpdateChange, framework.StepApplyDeleteChange},
		true: {framework.StepGetCurrentState, framework.StepGetDesiredState, framework.StepNewDeletePatch,
			framework.StepApplyCreateChange, framework.StepApplyUpdateChange, framework.StepApplyDeleteChange},
	}
	signals := map[string]func(context.Context){
		"resource":       resourcecanceledcontext.SetCanceled,
		"reconciliation": reconciliationcanceledcontext.SetCanceled,
	}
	for deleting, steps := range steps {
		for i, at := range steps {
			for name, cancel := range signals {
				t.Run(fmt.Sprintf("%s canceled in %s deleting %v", name, at, deleting), func(t *testing.T) {
					calls := &journal{}
					first := crud(t, &ops{name: "first", calls: calls, on: func(ctx context.Context, step framework.Step) error {
						if step == at {
							cancel(ctx)
						}
						return nil
					}})
					second := crud(t, &ops{name: "second", calls: calls})
					process := framework.ProcessUpdate
					if deleting {
						process = framework.ProcessDelete
					}

					if err := process(t.Context(), configMap("a"), []framework.Resource{first, second}); err != nil {
						t.Fatal(err)
					}

					var got []string
					for _, c := range calls.all() {
						got = append(got, strings.Join(strings.Fields(c)[:2], " "))
					}
					var want []string
					for _, s := range steps[:i+1] {
						want = append(want, "first "+string(s))
					}
					if name == "resource" {
						for _, s := range steps {
							want = append(want, "second "+string(s))
						}
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("steps (-want +got):\n%s", diff)
					}
				})
			}
		}
	}
}

func TestR8SignalsDoNotLeakIntoTheNextReconciliation(t *testing.T) {
	calls := &journal{}
	cancelOnce := true
	r := crud(t, &ops{name: "r", calls: calls, on: func(ctx context.Context, _ framework.Step) error {
		if cancelOnce {
			cancelOnce = false
			resourcecanceledcontext.SetCanceled(ctx)
			reconciliationcanceledcontext.SetCanceled(ctx)
		}
		return nil
	}})
	for i := range 2 {
		ctx := reconciliationcanceledcontext.NewContext(t.Context())
		if err := framework.ProcessUpdate(ctx, configMap("a"), []framework.Resource{r}); err != nil {
			t.Fatal(err)
		}
		if got, want := reconciliationcanceledcontext.IsCanceled(ctx), i == 0; got != want {
			t.Errorf("the caller's context of reconciliation %d tells of a cancellation: %t, want %t", i, got, want)
		}
	}

	if got := len(calls.all()); got != 1+6 {
		t.Errorf("got %d steps, want 1 of the cancelled and 6 of the next reconciliation: %v", got, calls.all())
	}
}

func TestForbiddenPartsAreNotApplied(t *testing.T) {
	for name, tt := range map[string]struct {
		context func(context.Context) context.Context
		process func(context.Context, any, []framework.Resource) error
		want    []string
	}{
		"updates forbidden": {updateallowedcontext.NewContext, framework.ProcessUpdate, []string{"apply_create_change", "apply_delete_change"}},
		"deletion forbidden": {deletionallowedcontext.NewContext, framework.ProcessDelete,
			[]string{"apply_create_change", "apply_update_change"}},
		"deletion forbidden, but this is an update": {deletionallowedcontext.NewContext, framework.ProcessUpdate,
			[]string{"apply_create_change", "apply_update_change", "apply_delete_change"}},
		"updates allowed again": {func(ctx context.Context) context.Context {
			ctx = updateallowedcontext.NewContext(ctx)
			updateallowedcontext.SetUpdateAllowed(ctx)
			return ctx
		}, framework.ProcessUpdate, []string{"apply_create_change", "apply_update_change", "apply_delete_change"}},
	} {
		t.Run(name, func(t *testing.T) {
			calls := &journal{}
			r := crud(t, &ops{name: "r", calls: calls})

			if err := tt.process(tt.context(t.Context()), configMap("a"), []framework.Resource{r}); err != nil {
				t.Fatal(err)
			}

			var got []string
			for _, c := range calls.all()[3:] {
				got = append(got, strings.Fields(c)[1])
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("applied (-want +got):\n%s", diff)
			}
		})
	}
}

func TestR15ErrorsNameObjectResourceAndStep(t *testing.T) {
	for _, step := range []framework.Step{framework.StepGetCurrentState, framework.StepGetDesiredState, framework.StepNewUpdatePatch,
		framework.StepApplyCreateChange, framework.StepApplyUpdateChange, framework.StepApplyDeleteChange} {
		t.Run(string(step), func(t *testing.T) {
			r := crud(t, &ops{name: "pages", calls: &journal{}, on: func(_ context.Context, s framework.Step) error {
				if s == step {
					return errBoom
				}
				return nil
			}})

			err := framework.ProcessUpdate(t.Context(), configMap("a"), []framework.Resource{r})

			want := `update of ConfigMap default/a: resource "pages": ` + strings.ReplaceAll(string(step), "_", " ") + ": boom"
			if err == nil || err.Error() != want {
				t.Errorf("got error %q, want %q", err, want)
			}
			var s *framework.StepError
			if !errors.Is(err, errBoom) || !errors.As(err, &s) || s.Step != step || s.Resource != "pages" {
				t.Errorf("the cause and the step are lost in %#v", err)
			}
		})
	}
}

func TestR4PanicIsAnErrorWithItsStack(t *testing.T) {
	r := crud(t, &ops{name: "pages", calls: &journal{}, on: func(_ context.Context, s framework.Step) error {
		if s == framework.StepApplyUpdateChange {
			panic("at the disco")
		}
		return nil
	}})
	plain := &resource{name: "plain", created: func(context.Context, any) error { panic(errBoom) }}

	err := framework.ProcessUpdate(t.Context(), configMap("a"), []framework.Resource{r})
	var p *panics.Error
	if !errors.As(err, &p) || p.Value != "at the disco" || !strings.Contains(string(p.Stack), "crud_test.go") {
		t.Errorf("got %v, want a PanicError with the stack of the resource", err)
	}
	if want := "apply update change: panic: value of type string in github.com/operatorkit/operatorkit/framework_test.TestR4PanicIsAnErrorWithItsStack.func1 (crud_test.go:275)"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want it to say %q", err, want)
	}

	err = framework.ProcessUpdate(t.Context(), configMap("a"), []framework.Resource{plain})
	if !errors.Is(err, errBoom) || !errors.As(err, &p) {
		t.Errorf("got %v, want the error that was given to panic", err)
	}
}

func TestTypedResourceRefusesObjectsOfAnotherType(t *testing.T) {
	calls := &journal{}
	r := crud(t, &ops{name: "pages", calls: calls})

	err := framework.ProcessUpdate(t.Context(), &corev1.Secret{}, []framework.Resource{r})

	if err == nil || !strings.Contains(err.Error(), "*v1.Secret") || !strings.Contains(err.Error(), "*v1.ConfigMap") || !framework.IsPermanent(err) {
		t.Errorf("got %v, want a permanent error that names both types", err)
	}
	if len(calls.all()) > 0 {
		t.Errorf("steps ran: %v", calls.all())
	}
}

func TestContextThatEndedIsAnErrorAndAppliesNothing(t *testing.T) {
	calls := &journal{}
	ctx, cancel := context.WithCancel(t.Context())
	r := crud(t, &ops{name: "r", calls: calls, on: func(_ context.Context, s framework.Step) error {
		if s == framework.StepNewDeletePatch {
			cancel()
		}
		return nil
	}})

	err := framework.ProcessDelete(ctx, configMap("a"), []framework.Resource{r})

	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context canceled: an interrupted deletion is not done", err)
	}
	if slices.ContainsFunc(calls.all(), func(c string) bool { return strings.Contains(c, "apply") }) {
		t.Errorf("a part was applied: %v", calls.all())
	}
}

func TestWrappingLeavesTheGivenResourceAloneAndNests(t *testing.T) {
	calls := &journal{}
	around := func(name string) framework.Middleware {
		return func(ctx context.Context, info framework.StepInfo, next func(context.Context) error) error {
			calls.add(name + " before " + string(info.Step))
			defer calls.add(name + " after " + string(info.Step))
			return next(ctx)
		}
	}
	nothing := func() *framework.TypedPatch[string] { return nil }
	for name, tt := range map[string]struct {
		resource framework.Resource
		steps    []string
	}{
		"CRUD": {crud(t, &ops{name: "r", calls: calls, patch: nothing}),
			[]string{"get_current_state", "get_desired_state", "new_update_patch is should"}},
		"plain": {&resource{name: "r", created: func(context.Context, any) error { calls.add("r ensure_created"); return nil }},
			[]string{"ensure_created"}},
	} {
		t.Run(name, func(t *testing.T) {
			once := framework.WrapSteps(tt.resource, around("inner"))
			twice := framework.WrapSteps(once, around("outer"))
			for _, layers := range []struct {
				resource framework.Resource
				names    []string
			}{{tt.resource, nil}, {once, []string{"inner"}}, {twice, []string{"outer", "inner"}}} {
				calls.entries = nil
				if err := framework.ProcessUpdate(t.Context(), configMap("a"), []framework.Resource{layers.resource}); err != nil {
					t.Fatal(err)
				}
				var want []string
				for _, step := range tt.steps {
					bare := strings.Fields(step)[0]
					for _, n := range layers.names {
						want = append(want, n+" before "+bare)
					}
					want = append(want, "r "+step)
					for _, n := range slices.Backward(layers.names) {
						want = append(want, n+" after "+bare)
					}
				}
				if diff := cmp.Diff(want, calls.all()); diff != "" {
					t.Errorf("%d layers (-want +got):\n%s", len(layers.names), diff)
				}
			}
		})
	}
}
