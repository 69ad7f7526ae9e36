package statemanagerresource_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/context/updateallowedcontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/internal/panics"
)

func TestOperationsAreCarriedOutInTheirOrder(t *testing.T) {
	k := newKit(t, deletes("z"), creates("b"), updates("c"), deletes("a"), creates("d"))
	for event, process := range map[string]func(context.Context, any, []framework.Resource) error{
		"update": framework.ProcessUpdate, "delete": framework.ProcessDelete,
	} {
		if err := process(t.Context(), prod(), k.resources); err != nil {
			t.Errorf("%s: %v", event, err)
		}
		k.wantDone("z", "b", "c", "a", "d")
		if k.desk.set != k.set {
			t.Errorf("%s: the state manager was given another set than Compute returned", event)
		}
	}
}

func TestWhereUpdatesAreForbiddenTheRestIsCarriedOut(t *testing.T) {
	mixed := operationOf("mixed", changeOf(plan.Create, "mixed"), changeOf(plan.Delete, "mixed-old"))
	k := newKit(t, deletes("old"), updates("web"), mixed, creates("new"))
	if err := framework.ProcessUpdate(updateallowedcontext.NewContext(t.Context()), prod(), k.resources); err != nil {
		t.Error(err)
	}
	k.wantDone("new", "old")
}

func TestAFailureDoesNotKeepTheOthersFromTheirs(t *testing.T) {
	refused := errors.New("hook pre-install failed")
	for name, c := range map[string]struct {
		// answers are what the state manager says to the services of these names.
		answers map[string]error
		// conflict is set when nobody need be told: it is all computed anew.
		conflict bool
		want     []string
	}{
		"one fails":                        {answers: map[string]error{"b": refused}, want: []string{"service apps/b: hook pre-install failed"}},
		"two fail":                         {answers: map[string]error{"a": refused, "c": errors.New("no quota")}, want: []string{"service apps/a: hook", "service apps/c: no quota"}},
		"one is outdated":                  {answers: map[string]error{"b": outdated("b")}, conflict: true, want: []string{"service apps/b: "}},
		"all are outdated":                 {answers: map[string]error{"a": outdated("a"), "b": outdated("b"), "c": outdated("c")}, conflict: true, want: []string{"apps/a", "apps/b", "apps/c"}},
		"one fails and one is outdated":    {answers: map[string]error{"a": outdated("a"), "b": refused}, want: []string{"service apps/a: ", "service apps/b: hook"}},
		"one is outdated and fails too":    {answers: map[string]error{"b": errors.Join(outdated("b"), refused)}, want: []string{"service apps/b: ", "hook"}},
		"a field is somebody else's":       {answers: map[string]error{"b": owned()}, want: []string{"service apps/b: ", `"kubectl"`}},
		"one will never do":                {answers: map[string]error{"b": framework.Permanent(refused)}, want: []string{"service apps/b: hook"}},
		"all will never do":                {answers: map[string]error{"a": framework.Permanent(refused), "b": framework.Permanent(refused), "c": framework.Permanent(refused)}, want: []string{"apps/a", "apps/b", "apps/c"}},
		"one will never do and one may do": {answers: map[string]error{"a": framework.Permanent(refused), "b": errors.New("no quota")}, want: []string{"apps/a", "apps/b"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t, creates("a"), updates("b"), deletes("c"))
			for service, err := range c.answers {
				k.desk.answers[service] = always(err)
			}
			for _, process := range []func(context.Context, any, []framework.Resource) error{framework.ProcessUpdate, framework.ProcessDelete} {
				k.done = nil
				err := process(t.Context(), prod(), k.resources)
				k.wantDone("a", "b", "c")
				if err == nil {
					t.Fatal("the failure is not told")
				}
				for _, part := range c.want {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("error = %v, want %q in it", err, part)
					}
				}
				// What is permanent is worth one more try: only the next Compute can tell of it.
				if framework.IsPermanent(err) || apierrors.IsConflict(err) != c.conflict {
					t.Errorf("error = %v, permanent: %v, a conflict: %v, want %v", err, framework.IsPermanent(err), apierrors.IsConflict(err), c.conflict)
				}
				for i, service := range []string{"a", "b", "c"} {
					if want := c.answers[service]; k.done[i].service != service || !errors.Is(k.done[i].err, want) || (want == nil) != (k.done[i].err == nil) {
						t.Errorf("Done was told %+v, want %s and %v", k.done[i], service, want)
					}
					if want := c.answers[service]; want != nil && !framework.IsPermanent(want) && !errors.Is(err, want) {
						t.Errorf("error = %v, and errors.Is does not find %v", err, want)
					}
				}
			}
		})
	}
}

// What is in the chain of several failures is found there, but for what would make the framework keep silent or give up.
func TestOfSeveralFailuresTheCausesAreFound(t *testing.T) {
	k := newKit(t, creates("a"), creates("b"), creates("c"))
	k.desk.answers["a"] = always(fmt.Errorf("fetch: %w", context.DeadlineExceeded))
	k.desk.answers["b"] = func() error { panic("a nil map") }
	k.desk.answers["c"] = always(outdated("c"))
	err := framework.ProcessUpdate(t.Context(), prod(), k.resources)
	k.wantDone("a", "b", "c")
	var panicked *panics.Error
	if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &panicked) || !strings.Contains(string(panicked.Stack), "apply_test.go") {
		t.Errorf("error = %v", err)
	}
	if apierrors.IsConflict(err) {
		t.Errorf("a conflict hides the failure of others: %v", err)
	}
	if panicked := k.done[1].err; panicked == nil || !strings.Contains(panicked.Error(), "value of type string") || !strings.Contains(panicked.Error(), "apply_test.go:") {
		t.Errorf("Done was told %v", panicked)
	}
}

func TestNothingIsBegunOnceTheContextHasEnded(t *testing.T) {
	k := newKit(t, creates("a"), creates("b"), creates("c"))
	ctx, cancel := context.WithCancel(t.Context())
	k.desk.answers["b"] = func() error { cancel(); return nil }
	err := k.resources[0].EnsureCreated(ctx, prod())
	k.wantDone("a", "b")
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "stopped before service apps/c") {
		t.Errorf("error = %v", err)
	}
	if len(k.done) != 2 {
		t.Errorf("Done was told %+v", k.done)
	}
}

func TestTheLogCountsAndShowsNoValues(t *testing.T) {
	secret := plan.FieldChange{Path: "data.password", New: "open-sesame"}
	k := newKit(t, operationOf("web", changeOf(plan.Create, "a", secret), changeOf(plan.Create, "b"), changeOf(plan.Delete, "c")), creates("bad"))
	k.desk.answers["bad"] = always(errors.New("no"))
	if err := framework.ProcessUpdate(t.Context(), prod(), k.resources); err == nil {
		t.Error("the failure is not told")
	}
	log := k.log.String()
	for _, want := range []string{"carried out what there was to do for service apps/web", "2 to create, 0 to update, 1 to delete"} {
		if !strings.Contains(log, want) {
			t.Errorf("nothing is said of %q in the log:\n%s", want, log)
		}
	}
	if strings.Contains(log, "open-sesame") || strings.Contains(log, "carried out what there was to do for service apps/bad") {
		t.Errorf("the log says too much:\n%s", log)
	}
}

// signals are the context of a reconciliation, and what resources asked it for.
func signals(t *testing.T) context.Context {
	return finalizerskeptcontext.NewContext(requeuecontext.NewContext(t.Context()))
}

func TestADeletionWaitsAsLongAsSomethingIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		work *work
		kept bool
	}{
		"nothing is left":   {&work{}, false},
		"something is left": {&work{Left: true}, true},
		"nobody knows":      {nil, true},
	} {
		k := newKit(t)
		k.work = c.work
		ctx := signals(t)
		if err := k.resources[0].EnsureDeleted(ctx, prod()); err != nil {
			t.Fatal(err)
		}
		if finalizerskeptcontext.IsKept(ctx) != c.kept {
			t.Errorf("%s: the finalizer is kept: %v", name, !c.kept)
		}
		ctx = signals(t)
		if err := k.resources[0].EnsureCreated(ctx, prod()); err != nil || finalizerskeptcontext.IsKept(ctx) {
			t.Errorf("%s: an update keeps the finalizer, %v", name, err)
		}
	}
}

func TestTheSetIsLookedAtAgainWhenItIsTime(t *testing.T) {
	for name, c := range map[string]struct {
		operations []operation
		requeue    time.Duration
		fails      []string
		// most is after how long at most; zero is that nobody asks.
		most time.Duration
	}{
		"nothing to do":                   {},
		"a time-out comes":                {requeue: time.Minute, most: time.Minute},
		"something was done":              {operations: []operation{creates("a")}, most: time.Nanosecond},
		"something was done, and waits":   {operations: []operation{creates("a")}, requeue: time.Minute, most: time.Nanosecond},
		"one failed, another was done":    {operations: []operation{creates("a"), creates("b")}, fails: []string{"a"}, most: time.Nanosecond},
		"all failed":                      {operations: []operation{creates("a")}, fails: []string{"a"}},
		"all failed, and a time-out":      {operations: []operation{creates("a")}, requeue: time.Minute, fails: []string{"a"}, most: time.Minute},
		"only notes":                      {operations: []operation{{Notes: []string{"waits"}}}},
		"what can't be, and a time-out":   {operations: []operation{{Err: errors.New("no")}}, requeue: time.Minute, most: time.Minute},
		"a time-out of the longest pause": {requeue: 100 * time.Hour, most: 100 * time.Hour},
	} {
		k := newKit(t, c.operations...)
		k.work.Requeue = c.requeue
		for _, service := range c.fails {
			k.desk.answers[service] = always(errors.New("no"))
		}
		for event, ensure := range map[string]func(context.Context, any) error{
			"update": k.resources[0].EnsureCreated, "delete": k.resources[0].EnsureDeleted,
		} {
			ctx := signals(t)
			if err := ensure(ctx, prod()); (err != nil) != (len(c.fails) > 0) {
				t.Errorf("%s, %s: %v", name, event, err)
			}
			if after, ok := requeuecontext.After(ctx); ok != (c.most > 0) || after != c.most {
				t.Errorf("%s, %s: looked at again after %s (%v), want %s", name, event, after, ok, c.most)
			}
		}
	}
}

// Planning asks for nothing that would be done with the answer.
func TestPartsOfAPatchAreOnlyThoseThatHaveSomething(t *testing.T) {
	var names []string
	for name, operations := range map[string][]operation{
		"create": {creates("a")}, "update": {updates("a")}, "delete": {deletes("a")},
	} {
		k := newKit(t, operations...)
		ctx := updateallowedcontext.NewContext(t.Context())
		p, err := framework.PlanUpdate(ctx, prod(), k.resources[:1])
		if err != nil {
			t.Fatal(err)
		}
		if skipped := p.Resources[0].Skipped != ""; skipped != (name == "update") {
			t.Errorf("%s: %+v", name, p.Resources[0])
		}
		if p.Counts().Any() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"create", "delete"}) {
		t.Errorf("planned: %v", names)
	}
}
