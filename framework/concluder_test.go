package framework_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// concluding is a resource that notes how the reconciliation went. Its plan says the same.
type concluding struct {
	resource
	heard journal
}

func newConcluding(fails error) *concluding {
	c := &concluding{}
	note := func(ctx context.Context, _ any) error {
		of := framework.ConclusionOf(ctx)
		c.heard.add(strings.TrimSpace(fmt.Sprintf("%s %t %v", of.Outcome, of.Deleting, of.Err)))
		return fails
	}
	c.resource = resource{name: "conclusion", created: note, deleted: note}
	return c
}

func (*concluding) Concludes() bool { return true }

func (c *concluding) Plan(ctx context.Context, _ plan.Event, _ any) ([]plan.Change, error) {
	return []plan.Change{{Action: plan.Update, Description: string(framework.ConclusionOf(ctx).Outcome)}}, nil
}

func failing(name string, err error) *resource {
	fail := func(context.Context, any) error { return err }
	return &resource{name: name, created: fail, deleted: fail}
}

func TestAConcluderRunsLastAndKnowsHowTheReconciliationWent(t *testing.T) {
	boom := `of ConfigMap default/home: resource "first": %s: boom`
	const here = "github.com/operatorkit/operatorkit/framework_test."
	skip := &resource{name: "skipped", created: func(context.Context, any) error { return errors.New("it ran after an error") }}
	keep := &resource{name: "keeps", deleted: func(ctx context.Context, _ any) error { finalizerskeptcontext.SetKept(ctx); return nil }}
	cancel := &resource{name: "cancels", created: func(ctx context.Context, _ any) error { reconciliationcanceledcontext.SetCanceled(ctx); return nil }}
	panics := &resource{name: "first", created: func(context.Context, any) error { panic("boom") }}
	for name, tc := range map[string]struct {
		before  []framework.Resource
		deleted bool
		want    []string
	}{
		"success":          {before: []framework.Resource{keep}, want: []string{"success false <nil>"}},
		"an error":         {before: []framework.Resource{failing("first", errBoom), skip}, want: []string{"error false update " + fmt.Sprintf(boom, "ensure created")}},
		"a panic":          {before: []framework.Resource{panics, skip}, want: []string{"error false update " + strings.TrimSuffix(fmt.Sprintf(boom, "ensure created: panic"), "boom") + "value of type string in " + here + "TestAConcluderRunsLastAndKnowsHowTheReconciliationWent.func4 (concluder_test.go:55)"}},
		"a deletion":       {before: []framework.Resource{skip}, deleted: true, want: []string{"success true <nil>"}},
		"one that waits":   {before: []framework.Resource{keep}, deleted: true, want: []string{"waiting true <nil>"}},
		"one that fails":   {before: []framework.Resource{failing("first", errBoom)}, deleted: true, want: []string{"error true delete " + fmt.Sprintf(boom, "ensure deleted")}},
		"one is cancelled": {before: []framework.Resource{cancel}},
	} {
		t.Run(name, func(t *testing.T) {
			last := newConcluding(nil)
			process := framework.ProcessUpdate
			if tc.deleted {
				process = framework.ProcessDelete
			}
			wrapped := framework.WrapSteps(last, func(ctx context.Context, _ framework.StepInfo, next func(context.Context) error) error {
				return next(ctx)
			})
			err := process(t.Context(), configMap("home"), append(tc.before, wrapped))
			if diff := cmp.Diff(tc.want, last.heard.all()); diff != "" {
				t.Error(diff)
			}
			if fails := len(tc.want) > 0 && strings.HasPrefix(tc.want[0], "error"); fails != (err != nil) {
				t.Errorf("the reconciliation ended with %v", err)
			}
		})
	}
}

func TestTheErrorOfAReconciliationIsTheFirstOne(t *testing.T) {
	later := errors.New("later")
	for name, tc := range map[string]struct {
		first, last error
		permanent   bool
		is          error
	}{
		"both are tried again": {errBoom, later, false, errBoom},
		"the first is":         {errBoom, framework.Permanent(later), false, errBoom},
		"the last is":          {framework.Permanent(errBoom), later, false, later},
		"none is":              {framework.Permanent(errBoom), framework.Permanent(later), true, errBoom},
	} {
		t.Run(name, func(t *testing.T) {
			err := framework.ProcessUpdate(t.Context(), configMap("home"), []framework.Resource{failing("first", tc.first), newConcluding(tc.last)})
			if !errors.Is(err, tc.is) || framework.IsPermanent(err) != tc.permanent {
				t.Errorf("permanent: %t, %v", framework.IsPermanent(err), err)
			}
			for _, text := range []string{"boom", "later"} {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not say %q", err, text)
				}
			}
		})
	}
}

func TestAContextThatHasEndedIsNotConcluded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	last := newConcluding(nil)
	first := &resource{name: "first", created: func(ctx context.Context, _ any) error { cancel(); return ctx.Err() }}
	if err := framework.ProcessUpdate(ctx, configMap("home"), []framework.Resource{first, last}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if heard := last.heard.all(); len(heard) > 0 {
		t.Errorf("it was concluded: %q", heard)
	}
}

func TestAPlanForeseesSuccess(t *testing.T) {
	last := newConcluding(nil)
	fails := &resource{name: "first"}
	p, err := framework.PlanUpdate(t.Context(), configMap("home"), []framework.Resource{fails, last})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Resources[1].Changes; len(got) != 1 || got[0].Description != string(framework.Succeeded) {
		t.Errorf("planned: %+v", p.Resources[1])
	}
}

// A plan is applied up to an error, and that is told although it was not foreseen.
func TestAnAppliedPlanIsConcludedAsItWent(t *testing.T) {
	last := newConcluding(nil)
	first := &silent{resource: *failing("first", errBoom)}
	source := informer.NewPush("objects")
	if err := source.Update(configMap("home")); err != nil {
		t.Fatal(err)
	}
	f := newFramework(t, framework.Config{Source: source}, first, last)
	p, err := f.Plan(t.Context(), keyOf("home"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.ApplyPlan(t.Context(), p); !errors.Is(err, errBoom) || errors.Is(err, framework.ErrPlanChanged) {
		t.Errorf("got %v", err)
	}
	if heard := last.heard.all(); len(heard) != 1 || !strings.HasPrefix(heard[0], "error") {
		t.Errorf("heard %q", heard)
	}
}

// silent is a resource that plans nothing.
type silent struct{ resource }

func (*silent) Plan(context.Context, plan.Event, any) ([]plan.Change, error) { return nil, nil }

func TestResourcesStandBeforeThoseThatConclude(t *testing.T) {
	_, err := framework.NewResourceSet(framework.ResourceSetConfig{
		Handles: framework.HandlesType[any], Resources: []framework.Resource{newConcluding(nil), &resource{name: "pages"}},
	})
	if !framework.IsInvalidConfig(err) || !strings.Contains(err.Error(), `"pages" must stand before "conclusion"`) {
		t.Errorf("got %v", err)
	}
}

func TestAConcluderIsToldOfAConflictThatLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, lasting := informer.NewPush("objects"), &journal{}
		last := &concluding{resource: resource{name: "conclusion", created: func(ctx context.Context, _ any) error {
			lasting.add(fmt.Sprint(framework.ConclusionOf(ctx).Lasting))
			return nil
		}}}
		conflicts := 6
		first := &resource{name: "first", created: func(context.Context, any) error {
			if conflicts--; conflicts >= 0 {
				return conflict()
			}
			return nil
		}}
		f := newFramework(t, framework.Config{Source: source, BackOffFactory: everyMinute}, first, last)
		defer running(t, f)()
		put(t, source, configMap("a"))
		time.Sleep(time.Hour)
		put(t, source, configMap("a", "again", "yes"))
		synctest.Wait()
		// The one that succeeds would have been a conflict that lasts, and the one after it the first of others.
		want := []string{"false", "false", "false", "false", "true", "true", "true", "false"}
		if diff := cmp.Diff(want, lasting.all()); diff != "" {
			t.Errorf("lasting (-want +got):\n%s", diff)
		}
	})
}
