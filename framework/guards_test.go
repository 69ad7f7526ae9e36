package framework_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/access"
	"github.com/operatorkit/operatorkit/internal/ledger"
)

// on matches changes with these actions.
func on(actions ...plan.Action) func(context.Context, framework.GuardInput) (bool, error) {
	return func(_ context.Context, in framework.GuardInput) (bool, error) {
		for _, a := range actions {
			if in.Change.Action == a {
				return true, nil
			}
		}
		return false, nil
	}
}

// guarded is a framework with guards, whose one CRUD resource "pages" creates, updates and deletes one thing each time.
type guarded struct {
	*framework.Framework
	source   *informer.Push
	applied  *journal
	observed *records
	events   *events
}

func newGuarded(t *testing.T, guards ...framework.Guard) *guarded {
	t.Helper()
	g := &guarded{source: informer.NewPush("objects"), applied: &journal{}, observed: &records{}, events: &events{}}
	again := everyMinute
	if guards[0].Limit != nil { // it says itself when to try again
		again = func() backoff.BackOff { return backoff.NewConstantBackOff(24 * time.Hour) }
	}
	g.Framework = newFramework(t, framework.Config{
		Source: g.source, Observer: g.observed, Recorder: g.events, BackOffFactory: again, Guards: guards,
	}, planned(t, &describedOps{name: "pages", applied: g.applied}))
	return g
}

func approving(obj *corev1.ConfigMap, prints ...string) *corev1.ConfigMap {
	obj.Annotations = map[string]string{framework.ApprovedAnnotation: strings.Join(prints, ", ")}
	return obj
}

// print returns the fingerprint that the plan of an object shows.
func (g *guarded) print(t *testing.T, name string) string {
	t.Helper()
	p, err := g.Plan(t.Context(), keyOf(name))
	if err != nil || len(p.Resources[0].Verdicts) == 0 {
		t.Fatalf("no verdict in the plan %v, error %v", p, err)
	}
	return p.Resources[0].Verdicts[0].Fingerprint
}

func TestAGuardThatDeniesLetsNothingOfThePatchBeApplied(t *testing.T) {
	for name, obj := range map[string]*corev1.ConfigMap{"update": configMap("home"), "delete": deleting("home")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGuarded(t, framework.Guard{Name: "keep", Match: on(plan.Delete), Action: framework.GuardDeny, Message: "Ask Ada first."})
				defer running(t, g.Framework)()
				put(t, g.source, obj)
				synctest.Wait()

				last := g.observed.last(t)
				if got := g.applied.all(); len(got) != 0 || last.Outcome != framework.Failed {
					t.Errorf("applied %v, outcome %s", got, last.Outcome)
				}
				for _, want := range []string{`guard "keep" denies: delete d`, "ConfigMap default/home", "Ask Ada first.", `resource "pages"`} {
					if !strings.Contains(last.Error, want) {
						t.Errorf("the error %q lacks %q", last.Error, want)
					}
				}
				if last.NextTry.IsZero() {
					t.Error("it is not retried")
				}
			})
		})
	}
}

func TestADeniedErrorIsRecognized(t *testing.T) {
	g := newGuarded(t, framework.Guard{Name: "keep", Match: on(plan.Delete), Action: framework.GuardDeny})
	put(t, g.source, configMap("home"))
	p, err := g.Plan(t.Context(), keyOf("home"))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.ApplyPlan(t.Context(), p); !errors.Is(err, framework.ErrDenied) || len(g.applied.all()) != 0 {
		t.Errorf("got %v after %v, want ErrDenied: a guard is asked about an approved plan too", err, g.applied.all())
	}
}

func TestAPlanShowsTheVerdictsOfGuards(t *testing.T) {
	g := newGuarded(t,
		framework.Guard{Name: "keep", Match: on(plan.Delete), Action: framework.GuardDeny, Message: "Ask Ada."},
		framework.Guard{Name: "new", Match: on(plan.Create), Action: framework.GuardWarn},
		framework.Guard{Name: "few", Match: on(plan.Update), Limit: &framework.GuardLimit{Max: 1, Per: time.Hour}},
		framework.Guard{Name: "other", Match: on(), Action: framework.GuardDeny},
		framework.Guard{Name: "broken", Action: framework.GuardWarn, Match: func(context.Context, framework.GuardInput) (bool, error) { return false, errBoom }})
	put(t, g.source, configMap("home"))
	p, err := g.Plan(t.Context(), keyOf("home"))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := plan.WriteText(&text, []*plan.Plan{p}, plan.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(text.String()) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "!") {
			got = append(got, line)
		}
	}
	want := []string{
		`! denied by guard "keep": delete d: Ask Ada.`,
		`! warning of guard "new": create c`,
		`! counts for the limit of guard "few": update u: 1 in 1h0m0s`,
		`! denied by guard "broken": create c: it can't be evaluated: boom`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !p.Denied() {
		t.Error("the plan does not say that it is denied")
	}
}

func TestWhatWaitsForApprovalGoesOnWhenItsFingerprintIsApproved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, framework.Guard{Name: "ask", Match: on(plan.Delete), Action: framework.GuardApprove, Message: "Ada approves."})
		defer running(t, g.Framework)()
		put(t, g.source, configMap("home"))
		synctest.Wait()
		print, last := g.print(t, "home"), g.observed.last(t)
		if got := g.applied.all(); len(got) != 0 || last.Outcome != framework.Waiting {
			t.Fatalf("applied %v, outcome %s", got, last.Outcome)
		}
		if got := last.Resources[0].Skipped; !strings.Contains(got, "operatorkit.io/approved="+print) || !strings.Contains(got, "Ada approves.") {
			t.Errorf("it is skipped because of %q", got)
		}
		time.Sleep(10 * time.Minute)
		if got := g.events.all(); len(got) != 1 || !strings.Contains(got[0], print) {
			t.Errorf("events %q, want one with %s", got, print)
		}

		put(t, g.source, approving(configMap("home"), "ffffffffffff"))
		synctest.Wait()
		if got := g.applied.all(); len(got) != 0 {
			t.Fatalf("another fingerprint is approved, and %v was applied", got)
		}
		put(t, g.source, approving(configMap("home"), "ffffffffffff", print))
		synctest.Wait()
		if got := g.applied.all(); len(got) != 3 {
			t.Errorf("applied %v, want everything", got)
		}
	})
}

func TestTheFingerprintIsThatOfTheChange(t *testing.T) {
	change := plan.Change{Action: plan.Delete, Object: plan.Object{Kind: "Namespace", Name: "a", UID: "1", Version: "7"}, Labels: map[string]string{"a": "b"}}
	print := func(change plan.Change, guard, object string) string {
		source := informer.NewPush("objects")
		f := newFramework(t, framework.Config{Source: source, Guards: []framework.Guard{
			{Name: guard, Action: framework.GuardApprove, Match: func(context.Context, framework.GuardInput) (bool, error) { return true, nil }},
		}}, &plannedResource{name: "r", changes: []plan.Change{change}})
		p, err := f.PlanObject(t.Context(), configMap(object))
		if err != nil {
			t.Fatal(err)
		}
		return p.Resources[0].Verdicts[0].Fingerprint
	}
	base := print(change, "g", "home")
	if len(base) != 12 {
		t.Errorf("the fingerprint %q has not 12 digits", base)
	}
	same := change
	same.Object.Version, same.Labels = "8", nil
	if got := print(same, "g", "home"); got != base {
		t.Error("another version, and other labels, make another fingerprint")
	}
	for name, other := range map[string]string{
		"object":  print(change, "g", "away"),
		"guard":   print(change, "h", "home"),
		"UID":     print(func() plan.Change { c := change; c.Object.UID = "2"; return c }(), "g", "home"),
		"name":    print(func() plan.Change { c := change; c.Object.Name = "b"; return c }(), "g", "home"),
		"a field": print(func() plan.Change { c := change; c.Fields = []plan.FieldChange{{Path: "x", New: "1"}}; return c }(), "g", "home"),
		"action":  print(func() plan.Change { c := change; c.Action = plan.Update; return c }(), "g", "home"),
	} {
		if other == base {
			t.Errorf("another %s has the same fingerprint", name)
		}
	}
}

// plannedResource is a plain resource that predicts changes.
type plannedResource struct {
	resource
	name    string
	changes []plan.Change
}

func (r *plannedResource) Name() string { return r.name }

func (r *plannedResource) Plan(context.Context, plan.Event, any) ([]plan.Change, error) {
	return r.changes, nil
}

func TestAGuardThatWarnsLetsTheChangeThroughAndWarnsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, framework.Guard{Name: "tell", Match: on(plan.Delete), Action: framework.GuardWarn, Message: "Is it Friday?"})
		defer running(t, g.Framework)()
		for i := range 3 {
			put(t, g.source, configMap("home", "round", fmt.Sprint(i)))
			synctest.Wait()
		}
		if got := g.applied.all(); len(got) != 9 {
			t.Errorf("applied %v, want everything three times", got)
		}
		if got := g.events.all(); len(got) != 1 || !strings.Contains(got[0], "Is it Friday?") || !strings.Contains(got[0], framework.ReasonGuardWarning) {
			t.Errorf("events %q, want one", got)
		}
	})
}

func TestAGuardThatCannotBeEvaluatedDenies(t *testing.T) {
	for name, match := range map[string]func(context.Context, framework.GuardInput) (bool, error){
		"boom":  func(context.Context, framework.GuardInput) (bool, error) { return false, errBoom },
		"panic": func(context.Context, framework.GuardInput) (bool, error) { panic("a bug") },
	} {
		for _, action := range []framework.GuardAction{framework.GuardDeny, framework.GuardApprove, framework.GuardWarn} {
			synctest.Test(t, func(t *testing.T) {
				g := newGuarded(t, framework.Guard{Name: "broken", Match: match, Action: action})
				defer running(t, g.Framework)()
				put(t, g.source, configMap("home"))
				synctest.Wait()
				last := g.observed.last(t)
				if len(g.applied.all()) != 0 || !strings.Contains(last.Error, `guard "broken" denies`) ||
					!strings.Contains(last.Error, "it can't be evaluated") || !strings.Contains(last.Error, name) {
					t.Errorf("%s of a guard that would %s: applied %v, error %q", name, action, g.applied.all(), last.Error)
				}
			})
		}
	}
}

func TestOfAnOpaqueResourceAGuardKnowsThatItsChangesAreUnknown(t *testing.T) {
	for action, guard := range map[plan.Action]int{plan.Unknown: 0, plan.Delete: 1} {
		synctest.Test(t, func(t *testing.T) {
			applied, source := &journal{}, informer.NewPush("objects")
			f := newFramework(t, framework.Config{Source: source, BackOffFactory: everyMinute, Guards: []framework.Guard{
				{Name: "known", Match: on(action), Action: framework.GuardDeny},
			}}, &resource{name: "mail", created: func(context.Context, any) error { applied.add("mail"); return nil }})
			defer running(t, f)()
			put(t, source, configMap("home"))
			synctest.Wait()
			if got := len(applied.all()); got != guard {
				t.Errorf("a guard on %q: the resource ran %d times, want %d", action, got, guard)
			}
			p, err := f.Plan(t.Context(), keyOf("home"))
			if err != nil || p.Denied() != (action == plan.Unknown) {
				t.Errorf("a guard on %q: the plan is denied: %t (%v)", action, p.Denied(), err)
			}
		})
	}
}

func TestAConcluderReportsWhateverGuardsSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, conclusion := informer.NewPush("objects"), newConcluding(nil)
		all := func(context.Context, framework.GuardInput) (bool, error) { return true, nil }
		f := newFramework(t, framework.Config{Source: source, BackOffFactory: everyMinute, Guards: []framework.Guard{{Name: "all", Match: all, Action: framework.GuardDeny}}},
			planned(t, &describedOps{name: "pages", applied: &journal{}}), conclusion)
		defer running(t, f)()
		put(t, source, configMap("home"))
		synctest.Wait()
		if len(conclusion.heard.all()) == 0 {
			t.Error("the Concluder did not run")
		}
	})
}

func TestWhatIsBeyondALimitIsHeldUntilAChargeRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, framework.Guard{Name: "few", Match: on(plan.Delete), Limit: &framework.GuardLimit{Max: 2, Per: 10 * time.Minute}})
		defer running(t, g.Framework)()
		for _, name := range []string{"a", "b", "c"} {
			put(t, g.source, configMap(name))
			synctest.Wait()
		}
		if got := len(g.applied.all()); got != 6 {
			t.Fatalf("applied %d parts, want those of two objects", got)
		}
		if got := g.observed.last(t); got.Outcome != framework.Waiting || !strings.Contains(got.Resources[0].Skipped, `guard "few" lets 2 through in 10m0s`) {
			t.Errorf("outcome %s, skipped because of %q", got.Outcome, got.Resources[0].Skipped)
		}
		put(t, g.source, configMap("a", "again", "1"))
		synctest.Wait()
		if got := len(g.applied.all()); got != 9 {
			t.Errorf("the same change of the same object was charged twice: %v", g.applied.all())
		}
		time.Sleep(9 * time.Minute)
		if got := len(g.applied.all()); got != 9 {
			t.Error("the third object went on too early")
		}
		time.Sleep(3 * time.Minute)
		if got := len(g.applied.all()); got != 12 {
			t.Error("the third object did not go on after a charge ran out")
		}
		if got := g.events.all(); len(got) != 1 {
			t.Errorf("events %q, want one", got)
		}
	})
}

func TestALimitHoldsADeletionAndKeepsTheObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, framework.Guard{Name: "few", Match: on(plan.Delete), Limit: &framework.GuardLimit{Max: 1, Per: 10 * time.Minute}})
		defer running(t, g.Framework)()
		put(t, g.source, deleting("a"))
		put(t, g.source, deleting("b"))
		synctest.Wait()
		if got := len(g.applied.all()); got != 3 {
			t.Fatalf("applied %v, want the deletion of one", g.applied.all())
		}
		time.Sleep(12 * time.Minute)
		if got := len(g.applied.all()); got != 6 {
			t.Errorf("applied %v, want the deletion of both", g.applied.all())
		}
	})
}

func TestMoreAtOnceThanALimitEverLetsThroughTakesAnApproval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, framework.Guard{Name: "few", Match: on(plan.Create, plan.Delete), Limit: &framework.GuardLimit{Max: 1, Per: time.Minute}})
		defer running(t, g.Framework)()
		put(t, g.source, configMap("home"))
		time.Sleep(time.Hour)
		if got := g.observed.last(t).Resources[0].Skipped; len(g.applied.all()) != 0 || !strings.Contains(got, "more at once") {
			t.Fatalf("applied %v, skipped because of %q", g.applied.all(), got)
		}
		put(t, g.source, approving(configMap("home"), g.print(t, "home")))
		synctest.Wait()
		if got := len(g.applied.all()); got != 3 {
			t.Errorf("applied %v, want everything", g.applied.all())
		}
	})
}

func TestAPercentageIsOfTheObjectsOfTheFramework(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, framework.Guard{Name: "mass", Match: on(plan.Delete), Limit: &framework.GuardLimit{Percent: 30, Per: time.Hour}})
		for i := range 10 {
			put(t, g.source, configMap(fmt.Sprint(i)))
		}
		defer running(t, g.Framework)()
		synctest.Wait()
		if got := len(g.applied.all()); got != 9 {
			t.Errorf("applied %d parts, want those of three objects of ten", got)
		}
	})
}

func TestAnObjectWithSeveralResourcesCountsOnceForAPercentage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		applied, source := &journal{}, informer.NewPush("objects")
		limit := &framework.GuardLimit{Percent: 100, Per: time.Hour}
		f := newFramework(t, framework.Config{Source: source, Guards: []framework.Guard{{Name: "mass", Match: on(plan.Delete), Limit: limit}}},
			planned(t, &describedOps{name: "pages", applied: applied}), planned(t, &describedOps{name: "mail", applied: applied}))
		defer running(t, f)()
		put(t, source, configMap("home"))
		synctest.Wait()
		if got := len(applied.all()); got != 6 {
			t.Errorf("applied %v, want all of both", applied.all())
		}
	})
}

// judgingLedger notes what was applied when something was charged, and answers as the test says.
type judgingLedger struct {
	applied *journal
	charged journal
	err     error
}

func (l *judgingLedger) Charge(_ context.Context, c ledger.Charge) (ledger.Answer, error) {
	l.charged.add(fmt.Sprintf("%s %d after %d", c.Guard, len(c.IDs), len(l.applied.all())))
	return ledger.Answer{Charged: l.err == nil}, l.err
}

func TestALimitIsChargedBeforeTheWriteAndNotByAPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, framework.Guard{Name: "few", Match: on(plan.Create, plan.Delete), Limit: &framework.GuardLimit{Max: 5, Per: time.Minute}})
		l := &judgingLedger{applied: g.applied}
		access.EngineOf(g.Framework).ChargeBy(l)
		put(t, g.source, configMap("home"))
		if _, err := g.Plan(t.Context(), keyOf("home")); err != nil || len(l.charged.all()) != 0 {
			t.Errorf("a plan has charged %v, error %v", l.charged.all(), err)
		}
		defer running(t, g.Framework)()
		synctest.Wait()
		if diff := cmp.Diff([]string{"few 2 after 0"}, l.charged.all()); diff != "" {
			t.Errorf("charged (-want +got):\n%s", diff)
		}
		if got := len(g.applied.all()); got != 3 {
			t.Errorf("applied %v", g.applied.all())
		}
	})
}

func TestALimitThatCannotBeChargedDenies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, framework.Guard{Name: "few", Match: on(plan.Delete), Limit: &framework.GuardLimit{Max: 5, Per: time.Minute}})
		access.EngineOf(g.Framework).ChargeBy(&judgingLedger{applied: g.applied, err: errBoom})
		defer running(t, g.Framework)()
		put(t, g.source, configMap("home"))
		synctest.Wait()
		if last := g.observed.last(t); len(g.applied.all()) != 0 || !strings.Contains(last.Error, "charge its limit: boom") {
			t.Errorf("applied %v, error %q", g.applied.all(), last.Error)
		}
	})
}

func TestGuardsSeeTheObjectAsItWasReadAndTheNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen, source := &journal{}, informer.NewPush("objects")
		match := func(_ context.Context, in framework.GuardInput) (bool, error) {
			seen.add(fmt.Sprintf("%s/%s/%s %v", in.Operator, in.Framework, in.Resource, in.Object.(*corev1.ConfigMap).Data))
			return false, nil
		}
		ops := &describedOps{name: "pages", applied: &journal{}}
		f := newFramework(t, framework.Config{Name: "sites", Operator: "op", Source: source, Guards: []framework.Guard{{Name: "see", Match: match, Action: framework.GuardDeny}}},
			spoiling{planned(t, ops)})
		defer running(t, f)()
		put(t, source, configMap("home", "a", "b"))
		synctest.Wait()
		got := seen.all()
		for _, one := range got {
			if one != "op/sites/pages map[a:b]" {
				t.Errorf("saw %q", one)
			}
		}
		if len(got) < 2 {
			t.Errorf("saw %q, want the resource and what it embeds", got)
		}
	})
}

// spoiling changes the object before its resource looks at it.
type spoiling struct{ framework.Resource }

func (s spoiling) EnsureCreated(ctx context.Context, obj any) error {
	obj.(*corev1.ConfigMap).Data["a"] = "changed"
	return s.Resource.EnsureCreated(ctx, obj)
}

func TestFaultsOfGuardsAreNamed(t *testing.T) {
	match := on(plan.Delete)
	_, err := framework.New(framework.Config{Logger: quiet(t), Resources: []framework.Resource{&resource{name: "r"}}, Guards: []framework.Guard{
		{Match: match, Action: framework.GuardDeny},
		{Name: "twice", Match: match, Action: framework.GuardDeny},
		{Name: "twice", Match: match, Action: framework.GuardDeny},
		{Name: "blind", Action: framework.GuardDeny},
		{Name: "idle", Match: match},
		{Name: "odd", Match: match, Action: "refuse"},
		{Name: "both", Match: match, Action: framework.GuardDeny, Limit: &framework.GuardLimit{Max: 1, Per: time.Second}},
		{Name: "none", Match: match, Limit: &framework.GuardLimit{Per: time.Second}},
		{Name: "two", Match: match, Limit: &framework.GuardLimit{Max: 1, Percent: 1, Per: time.Second}},
		{Name: "huge", Match: match, Limit: &framework.GuardLimit{Max: 1001, Per: time.Second}},
		{Name: "more", Match: match, Limit: &framework.GuardLimit{Percent: 101, Per: time.Second}},
		{Name: "short", Match: match, Limit: &framework.GuardLimit{Max: 1, Per: time.Millisecond}},
	}})
	if !framework.IsInvalidConfig(err) {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Guards[0].Name must not be empty", `Guards[2], "twice", must not have the name`, `"blind", must have a Match`,
		`"idle", must have the Action "deny", "approve" or "warn", or a Limit`, `its Action is "refuse"`, `"both", must not have both`,
		`"none", must have a Limit with either`, `"two", must have a Limit with either`, "from 1 to 1000, is 1001", "from 1 to 100, is 101", "of whole seconds, is 1ms",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
}
