package framework_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// judging is a policy that notes what it is asked, and answers as the test says.
type judging struct {
	asked  journal
	answer func(p framework.Proposal) framework.Verdict
}

func (j *judging) Admit(_ context.Context, p framework.Proposal) framework.Verdict {
	changes, err := p.Changes()
	var actions []string
	for _, c := range changes {
		actions = append(actions, string(c.Action))
	}
	j.asked.add(strings.TrimSpace(fmt.Sprintf("%s of %s: opaque %t, %v %s", p.Event, p.Resource, p.Opaque, err, strings.Join(actions, " "))))
	if j.answer == nil {
		return framework.Go()
	}
	return j.answer(p)
}

// gated runs a framework with policies for one object, and returns what it has applied and its last record.
func gated(t *testing.T, obj any, resources func(applied *journal) []framework.Resource, policies ...framework.Policy) (applied []string, last *framework.Record) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		calls, observed, source := &journal{}, &records{}, informer.NewPush("objects")
		f := newFramework(t, framework.Config{Source: source, Observer: observed, BackOffFactory: everyMinute}, resources(calls)...)
		for _, p := range policies {
			f.Require(p)
		}
		defer running(t, f)()
		put(t, source, obj)
		synctest.Wait()
		applied, last = calls.all(), observed.last(t)
	})
	return applied, last
}

func pagesThenMail(t *testing.T) func(*journal) []framework.Resource {
	return func(applied *journal) []framework.Resource {
		note := func(context.Context, any) error { applied.add("mail"); return nil }
		return []framework.Resource{planned(t, &describedOps{name: "pages", applied: applied}), &resource{name: "mail", created: note, deleted: note}, newConcluding(nil)}
	}
}

func TestAPolicyIsAskedOnceForEachResourceThatWouldChangeSomething(t *testing.T) {
	p := &judging{}
	applied, last := gated(t, configMap("home"), func(applied *journal) []framework.Resource {
		none := crud(t, &ops{name: "none", calls: &journal{}, patch: framework.NewTypedPatch[string]})
		return append([]framework.Resource{none}, pagesThenMail(t)(applied)...)
	}, p)

	want := []string{"update of pages: opaque false, <nil> create update delete", "update of mail: opaque true, <nil>"}
	if diff := cmp.Diff(want, p.asked.all()); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if got := len(applied); got != 4 || last.Outcome != framework.Succeeded {
		t.Errorf("applied %v, outcome %s, want all and success", applied, last.Outcome)
	}
}

func TestWhatAPolicyHoldsIsNotAppliedAndTriedAgain(t *testing.T) {
	for name, obj := range map[string]any{"update": configMap("home"), "delete": deleting("home")} {
		t.Run(name, func(t *testing.T) {
			for _, held := range []string{"pages", "mail"} {
				p := &judging{answer: func(p framework.Proposal) framework.Verdict {
					if p.Resource == held {
						return framework.Hold("no place is free")
					}
					return framework.Go()
				}}
				applied, last := gated(t, obj, pagesThenMail(t), p)

				if strings.Contains(strings.Join(applied, " "), held) {
					t.Errorf("%s is held, but %v was applied", held, applied)
				}
				if len(applied) == 0 || last.Outcome != framework.Waiting || last.NextTry.IsZero() {
					t.Errorf("got %v, %s, next %s, want what %s does not do, and to be tried again", applied, last.Outcome, last.NextTry, held)
				}
				for _, r := range last.Resources {
					if want := map[bool]string{true: "no place is free"}[r.Name == held]; r.Skipped != want {
						t.Errorf("%s is skipped because of %q, want %q", r.Name, r.Skipped, want)
					}
				}
			}
		})
	}
}

func TestAPolicyThatDeniesOrPanicsFailsTheResource(t *testing.T) {
	for name, answer := range map[string]func(framework.Proposal) framework.Verdict{
		"not in prod": func(framework.Proposal) framework.Verdict { return framework.Deny(errors.New("not in prod")) },
		"panic":       func(framework.Proposal) framework.Verdict { panic("boom") },
	} {
		applied, last := gated(t, configMap("home"), pagesThenMail(t), &judging{answer: answer})

		if len(applied) != 0 || last.Outcome != framework.Failed || !strings.Contains(last.Error, `resource "pages"`) || !strings.Contains(last.Error, name) {
			t.Errorf("applied %v, %s, error %q, want an error of pages with %q", applied, last.Outcome, last.Error, name)
		}
	}
}

func TestALaterPolicyIsNotAskedAboutWhatIsHeld(t *testing.T) {
	later := &judging{}
	hold := &judging{answer: func(framework.Proposal) framework.Verdict { return framework.Hold("not yet") }}

	gated(t, configMap("home"), pagesThenMail(t), hold, later)

	if got := later.asked.all(); len(got) != 0 {
		t.Errorf("it was asked %v", got)
	}
}

func TestAPlanThatAPolicyHoldsIsNotApplied(t *testing.T) {
	applied := &journal{}
	source := informer.NewPush("objects")
	put(t, source, configMap("home"))
	f := newFramework(t, framework.Config{Source: source}, planned(t, &describedOps{name: "pages", applied: applied}))
	p, err := f.Plan(t.Context(), keyOf("home"))
	if err != nil || p.Outcome != plan.Planned {
		t.Fatal(p, err)
	}
	f.Require(&judging{answer: func(framework.Proposal) framework.Verdict { return framework.Hold("not yet") }})

	if err := f.ApplyPlan(t.Context(), p); !errors.Is(err, framework.ErrUpdateUnfinished) {
		t.Errorf("got %v, want ErrUpdateUnfinished", err)
	}
	if got := applied.all(); len(got) != 0 {
		t.Errorf("applied %v", got)
	}
}
