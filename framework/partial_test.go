package framework_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
)

func TestAfterAPartialErrorAllButDeletionsAreAppliedAndItIsReturned(t *testing.T) {
	for name, tc := range map[string]struct {
		// fails has the errors of steps.
		fails map[framework.Step]error
		event func(context.Context, any, []framework.Resource) error
		want  []string
	}{
		"of a patch": {
			fails: map[framework.Step]error{framework.StepNewUpdatePatch: framework.Partial(errors.New("a is refused"))},
			event: framework.ProcessUpdate,
			want:  []string{"apply_create_change c", "apply_update_change u"},
		},
		"of a creation": {
			fails: map[framework.Step]error{framework.StepApplyCreateChange: framework.Partial(errors.New("a is refused"))},
			event: framework.ProcessUpdate,
			want:  []string{"apply_create_change c", "apply_update_change u"},
		},
		"of an update": {
			fails: map[framework.Step]error{framework.StepApplyUpdateChange: framework.Partial(errors.New("a is refused"))},
			event: framework.ProcessUpdate,
			want:  []string{"apply_create_change c", "apply_update_change u"},
		},
		"of all of these": {
			fails: map[framework.Step]error{
				framework.StepNewUpdatePatch:    framework.Partial(errors.New("a is refused")),
				framework.StepApplyCreateChange: framework.Partial(errors.New("b is refused")),
				framework.StepApplyUpdateChange: errors.New("c is refused"),
			},
			event: framework.ProcessUpdate,
			want:  []string{"apply_create_change c", "apply_update_change u"},
		},
		"of the patch of a deletion": {
			fails: map[framework.Step]error{framework.StepNewDeletePatch: framework.Partial(errors.New("a is refused"))},
			event: framework.ProcessDelete,
			want:  []string{"apply_create_change c", "apply_update_change u", "apply_delete_change d"},
		},
		"of another kind": {
			fails: map[framework.Step]error{framework.StepApplyCreateChange: errors.New("a is refused")},
			event: framework.ProcessUpdate,
			want:  []string{"apply_create_change c"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			calls := &journal{}
			r := crud(t, &ops{name: "x", calls: calls, on: func(_ context.Context, step framework.Step) error { return tc.fails[step] }})
			err := tc.event(t.Context(), &corev1.ConfigMap{}, []framework.Resource{r})
			var applied []string
			for _, call := range calls.all() {
				if _, what, ok := strings.Cut(call, "x apply"); ok {
					applied = append(applied, "apply"+what)
				}
			}
			if diff := cmp.Diff(tc.want, applied); diff != "" {
				t.Errorf("applied (-want +got):\n%s", diff)
			}
			for step, fault := range tc.fails {
				if err == nil || !strings.Contains(err.Error(), fault.Error()) || !strings.Contains(err.Error(), strings.ReplaceAll(string(step), "_", " ")) {
					t.Errorf("%v does not tell of %v in %s", err, fault, step)
				}
			}
		})
	}
}

func TestAPlanShowsWhatAPartialErrorDoesNotConcern(t *testing.T) {
	r := crud(t, &ops{name: "x", calls: &journal{}, on: func(_ context.Context, step framework.Step) error {
		if step == framework.StepNewUpdatePatch {
			return framework.Partial(errors.New("a is refused"))
		}
		return nil
	}})
	p, err := framework.PlanUpdate(t.Context(), &corev1.ConfigMap{}, []framework.Resource{r})
	if err != nil {
		t.Fatal(err)
	}
	got := p.Resources[0]
	if p.Outcome != plan.Failed || !strings.Contains(got.Error, "a is refused") {
		t.Errorf("the plan is %s with the error %q", p.Outcome, got.Error)
	}
	if diff := cmp.Diff(plan.Counts{Create: 1, Update: 1}, p.Counts()); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestAPartialErrorIsWhatAllOfItsErrorsAre(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "things"}, "a", errors.New("old"))
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "b", nil)
	permanent := framework.Permanent(fs.ErrInvalid)
	for name, tc := range map[string]struct {
		errs                []error
		permanent, conflict bool
	}{
		"permanent ones":             {[]error{permanent, framework.Permanent(conflict)}, true, false},
		"a permanent and another":    {[]error{permanent, fs.ErrExist}, false, false},
		"conflicts":                  {[]error{conflict, fmt.Errorf("wrapped: %w", conflict)}, false, true},
		"a conflict and another":     {[]error{conflict, fs.ErrExist}, false, false},
		"different answers":          {[]error{conflict, invalid}, false, false},
		"partial ones, one in other": {[]error{framework.Partial(permanent, fs.ErrExist), permanent}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := fmt.Errorf("resource: %w", framework.Partial(tc.errs...))
			if got := framework.IsPermanent(err); got != tc.permanent {
				t.Errorf("permanent: %v", got)
			}
			if got := apierrors.IsConflict(err); got != tc.conflict {
				t.Errorf("a conflict: %v", got)
			}
			if !framework.IsPartial(err) {
				t.Error("it is not known to be partial")
			}
			for _, one := range tc.errs {
				if !strings.Contains(err.Error(), one.Error()) {
					t.Errorf("%q does not tell %q", err, one)
				}
			}
		})
	}
	if err := framework.Partial(nil, nil); err != nil {
		t.Errorf("got %v of no errors", err)
	}
	if err := framework.Partial(fs.ErrExist, nil, permanent); !errors.Is(err, fs.ErrExist) || !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("what is in %v is not found", err)
	}
	many := make([]error, 1000)
	for i := range many {
		many[i] = fmt.Errorf("object %d is refused", i)
	}
	if text := framework.Partial(many...).Error(); len(text) > 1000 || !strings.HasSuffix(text, "and 980 more errors") {
		t.Errorf("the text of many errors: %s", text)
	}
}
