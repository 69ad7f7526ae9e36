package framework_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/context/resourcecanceledcontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/access"
)

// contestedOps give the ConfigMap "page" the data of the object. Somebody else writes the page too.
type contestedOps struct {
	mu   sync.Mutex
	page *corev1.ConfigMap
	// writes are the times of all writes.
	writes []time.Time
	// on is called when a change is applied.
	on func(ctx context.Context) error
	// always updates a field to another value each time.
	always bool
}

func (o *contestedOps) Name() string { return "pages" }

func (o *contestedOps) GetCurrentState(context.Context, *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.page, nil
}

func (o *contestedOps) GetDesiredState(_ context.Context, obj *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	page := configMap("page")
	page.Data = maps.Clone(obj.Data)
	if o.always {
		page.Data["time"] = time.Now().String()
	}
	return page, nil
}

func (o *contestedOps) NewUpdatePatch(_ context.Context, _, current, desired *corev1.ConfigMap) (*framework.TypedPatch[*corev1.ConfigMap], error) {
	p := framework.NewTypedPatch[*corev1.ConfigMap]()
	switch {
	case current == nil:
		p.SetCreateChange(desired)
	case !maps.Equal(current.Data, desired.Data):
		p.SetUpdateChange(desired)
	}
	return p, nil
}

func (o *contestedOps) NewDeletePatch(_ context.Context, _, current, _ *corev1.ConfigMap) (*framework.TypedPatch[*corev1.ConfigMap], error) {
	p := framework.NewTypedPatch[*corev1.ConfigMap]()
	if current != nil {
		p.SetDeleteChange(current)
	}
	return p, nil
}

func (o *contestedOps) write(ctx context.Context, page *corev1.ConfigMap) error {
	o.mu.Lock()
	o.page = page
	o.writes = append(o.writes, time.Now())
	o.mu.Unlock()
	if o.on != nil {
		return o.on(ctx)
	}
	return nil
}

func (o *contestedOps) ApplyCreateChange(ctx context.Context, _, page *corev1.ConfigMap) error {
	return o.write(ctx, page)
}

func (o *contestedOps) ApplyUpdateChange(ctx context.Context, _, page *corev1.ConfigMap) error {
	return o.write(ctx, page)
}

func (o *contestedOps) ApplyDeleteChange(ctx context.Context, _, _ *corev1.ConfigMap) error {
	return o.write(ctx, nil)
}

// contest is a framework with a page for the object "home", and somebody who undoes changes.
type contest struct {
	*framework.Framework
	t        *testing.T
	ops      *contestedOps
	source   *informer.Push
	events   *events
	observed *records
	log      *strings.Builder
}

// contested runs a test with a framework that has made the page.
func contested(t *testing.T, ops *contestedOps, test func(c *contest)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newContest(t, ops, func(t testing.TB) framework.Resource {
			r, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[*corev1.ConfigMap, *corev1.ConfigMap]{Logger: quiet(t), Ops: ops})
			if err != nil {
				t.Fatal(err)
			}
			return r
		})
		defer running(t, c.Framework)()
		c.put(home(1))
		test(c)
	})
}

func newContest(t *testing.T, ops *contestedOps, of func(t testing.TB) framework.Resource) *contest {
	t.Helper()
	c := &contest{t: t, ops: ops, source: informer.NewPush("objects"), events: &events{}, observed: &records{}, log: &strings.Builder{}}
	c.Framework = newFramework(t, framework.Config{
		Name: "sites", Source: c.source, Recorder: c.events, Observer: c.observed, BackOffFactory: everyMinute, Logger: logTo(t, c.log),
	}, of(t))
	return c
}

func home(generation int64) *corev1.ConfigMap {
	cm := configMap("home", "color", "red-of-ours", "size", "big-of-ours")
	cm.Generation = generation
	return cm
}

func (c *contest) put(obj any) {
	c.t.Helper()
	put(c.t, c.source, obj)
	synctest.Wait()
}

// undo has somebody else write fields of the page so many times, with a pause after each.
func (c *contest) undo(times int, pause time.Duration, fields ...string) {
	for range times {
		c.ops.mu.Lock()
		c.ops.page = c.ops.page.DeepCopy()
		for _, field := range fields {
			c.ops.page.Data[field] = "theirs"
		}
		c.ops.mu.Unlock()
		c.Enqueue(keyOf("home"))
		time.Sleep(pause)
		synctest.Wait()
	}
}

// written returns the number of writes since the last call.
func (c *contest) written() int {
	c.ops.mu.Lock()
	defer c.ops.mu.Unlock()
	n := len(c.ops.writes)
	c.ops.writes = nil
	return n
}

// reported returns the fields of the fights.
func (c *contest) reported() []string {
	var all []string
	for _, f := range c.Fights() {
		all = append(all, strings.Join(f.Fields, " "))
	}
	return all
}

// expect compares the writes since the last call, and the fields of the fights.
func (c *contest) expect(writes int, fights ...string) {
	c.t.Helper()
	if got := c.written(); got != writes {
		c.t.Errorf("%d writes, want %d", got, writes)
	}
	if diff := cmp.Diff(fights, c.reported()); diff != "" {
		c.t.Errorf("fights (-want +got):\n%s", diff)
	}
}

func TestAChangeThatIsFoundUndoneFiveTimesInTenMinutesIsReportedAndHeld(t *testing.T) {
	contested(t, &contestedOps{}, func(c *contest) {
		c.undo(5, time.Second, "color")
		c.expect(6)
		if got := c.events.all(); len(got) != 0 {
			t.Errorf("events after four times: %q", got)
		}
		start := time.Now()
		c.undo(3, time.Second, "color")
		c.expect(0, "data.color")

		want := []string{`home Warning ChangeUndone resource "pages" applied the update of ConfigMap default/page (data.color) 5 times, and found it undone each time: ` +
			`what undoes it is not known; it is tried again after growing pauses`}
		if diff := cmp.Diff(want, c.events.all()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		f, last := c.Fights()[0], c.observed.last(t)
		if f.Key != keyOf("home") || f.Resource != "pages" || f.Action != plan.Update || f.Times != 5 || f.Next.Sub(start) < 54*time.Second || f.Next.Sub(start) > 66*time.Second {
			t.Errorf("the fight is %+v, want it tried again after a minute", f)
		}
		if last.Outcome != framework.Waiting || !strings.Contains(last.Resources[0].Skipped, "the change is undone again and again: update of ConfigMap default/page (data.color)") || last.NextTry.Sub(f.Next).Abs() > time.Millisecond {
			t.Errorf("the record is %s, %q, next try %s, want it held until %s", last.Outcome, last.Resources[0].Skipped, last.NextTry, f.Next)
		}
		if n := c.Status().Fights; n != 1 {
			t.Errorf("the status has %d fights", n)
		}
		if n := strings.Count(c.log.String(), "a change is undone again and again"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, c.log)
		}
	})
}

func TestAMetricCountsTheFights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry, ops, source := prometheus.NewRegistry(), &contestedOps{}, informer.NewPush("objects")
		r, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[*corev1.ConfigMap, *corev1.ConfigMap]{Logger: quiet(t), Ops: ops})
		if err != nil {
			t.Fatal(err)
		}
		f := newFramework(t, framework.Config{Name: "sites", Source: source, Registerer: registry}, r)
		defer running(t, f)()
		c := &contest{Framework: f, t: t, ops: ops, source: source}
		c.put(home(1))
		c.undo(6, time.Second, "color")
		want := "# HELP operatorkit_framework_fights Changes that were applied and found undone again and again. They are tried again after growing pauses.\n" +
			"# TYPE operatorkit_framework_fights gauge\noperatorkit_framework_fights{framework=\"sites\"} 1\n"
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "operatorkit_framework_fights"); err != nil {
			t.Error(err)
		}
	})
}

func TestAChangeThatIsUndoneMoreSlowlyIsNoFight(t *testing.T) {
	contested(t, &contestedOps{}, func(c *contest) {
		c.undo(100, 3*time.Minute, "color")
		c.expect(101)
	})
}

func TestAFieldWithAnotherValueEachTimeIsNoFight(t *testing.T) {
	contested(t, &contestedOps{always: true}, func(c *contest) {
		time.Sleep(time.Second)
		c.undo(50, time.Second)
		c.expect(51)
	})
}

func TestAnotherWantedValueIsNotHeld(t *testing.T) {
	contested(t, &contestedOps{}, func(c *contest) {
		c.undo(7, time.Second, "color")
		c.expect(6, "data.color")
		obj := home(1)
		obj.Data["color"] = "blue-of-ours"
		c.put(obj)
		c.expect(1)
	})
}

func TestAFieldWhoseWantedValueAlternatesIsNoFight(t *testing.T) {
	contested(t, &contestedOps{}, func(c *contest) {
		for i := range 40 {
			obj := home(1)
			obj.Data["color"] = []string{"red", "blue"}[i%2]
			c.put(obj)
			time.Sleep(time.Second)
		}
		c.expect(41)
	})
}

func TestFieldsAreCountedOneByOneAndHeldOnlyIfAllArePaused(t *testing.T) {
	contested(t, &contestedOps{}, func(c *contest) {
		c.undo(2, time.Second, "size")
		c.undo(6, time.Second, "color")
		c.expect(1+2+5, "data.color")
		c.undo(1, time.Second, "color")
		c.expect(0, "data.color")
		c.undo(3, time.Second, "color", "size")
		c.expect(3, "data.color")
		if f := c.Fights()[0]; f.Times != 5 || f.Next.Sub(f.Last) > 66*time.Second {
			t.Errorf("a change that went along with another one counts as a try: %+v", f)
		}
		c.undo(1, time.Second, "color", "size")
		c.expect(0, "data.color", "data.size")
		c.undo(1, time.Second, "size")
		c.expect(0, "data.color", "data.size")
	})
}

func TestANewGenerationOrAnotherObjectOfTheNameStartsOver(t *testing.T) {
	another := home(1)
	another.UID = "another"
	for name, obj := range map[string]*corev1.ConfigMap{"generation": home(2), "object": another} {
		t.Run(name, func(t *testing.T) {
			contested(t, &contestedOps{}, func(c *contest) {
				c.undo(7, time.Second, "color")
				c.expect(6, "data.color")
				c.put(obj)
				if c.written() == 0 {
					t.Error("it is still held")
				}
				c.undo(5, time.Second, "color")
				c.expect(5)
				c.undo(1, time.Second, "color")
				c.expect(0, "data.color")
			})
		})
	}
}

func TestAnUnchangedObjectStaysHeld(t *testing.T) {
	contested(t, &contestedOps{}, func(c *contest) {
		c.undo(7, time.Second, "color")
		c.expect(6, "data.color")
		c.put(home(1))
		c.expect(0, "data.color")
	})
}

func TestPausesDoubleUpToAnHourAndNothingIsGivenUp(t *testing.T) {
	ops := &contestedOps{}
	contested(t, ops, func(c *contest) {
		ops.mu.Lock()
		ops.on = func(context.Context) error {
			time.AfterFunc(time.Second, func() {
				ops.mu.Lock()
				defer ops.mu.Unlock()
				ops.page = ops.page.DeepCopy()
				ops.page.Data["color"] = "theirs"
				c.Enqueue(keyOf("home"))
			})
			return nil
		}
		ops.mu.Unlock()
		c.undo(1, 24*time.Hour, "color")

		writes := slices.Clone(ops.writes[6:])
		if len(writes) < 20 {
			t.Fatalf("%d tries in a day", len(writes))
		}
		want, before := time.Minute, ops.writes[5]
		for _, at := range writes {
			// The change is found undone a second after it was applied.
			if got := at.Sub(before) - time.Second; got < want*9/10-time.Second || got > want*11/10+time.Second {
				t.Errorf("a pause of %s, want %s", got, want)
			}
			want, before = min(2*want, time.Hour), at
		}
		f := c.Fights()
		if len(f) != 1 || f[0].Times != 5+len(writes) {
			t.Errorf("the fights are %+v, want %d times", f, 5+len(writes))
		}
		if got := c.events.all(); len(got) != 1 {
			t.Errorf("%d events, want one of the fight:\n%s", len(got), strings.Join(got, "\n"))
		}
	})
}

func TestAFightEndsWhenTheChangeStaysAndIsReportedAgainWhenItComesBack(t *testing.T) {
	contested(t, &contestedOps{}, func(c *contest) {
		c.undo(7, time.Second, "color")
		c.expect(6, "data.color")
		time.Sleep(2 * time.Minute)
		c.expect(1, "data.color")
		time.Sleep(12 * time.Minute)
		c.expect(0)
		c.undo(6, time.Second, "color")
		c.expect(6)
		c.undo(1, time.Second, "color")
		c.expect(0, "data.color")
		if got := c.events.all(); len(got) != 2 {
			t.Errorf("%d events, want two:\n%s", len(got), strings.Join(got, "\n"))
		}
	})
}

func TestCreationsCountWithoutTheirFields(t *testing.T) {
	contested(t, &contestedOps{always: true}, func(c *contest) {
		for range 8 {
			c.ops.mu.Lock()
			c.ops.page = nil
			c.ops.mu.Unlock()
			c.Enqueue(keyOf("home"))
			time.Sleep(time.Second) // so that the created fields differ
		}
		c.expect(6, "")
		if f := c.Fights()[0]; f.Action != plan.Create || f.String() != "create of ConfigMap default/page: what undoes it is not known" {
			t.Errorf("the fight is %s", f)
		}
	})
}

func TestR14NoTextOfAFightHasAValue(t *testing.T) {
	contested(t, &contestedOps{}, func(c *contest) {
		c.undo(8, time.Second, "color", "size")
		if len(c.Fights()) != 1 {
			t.Fatal("there is no fight")
		}
		fights, err := json.Marshal(c.Fights())
		if err != nil {
			t.Fatal(err)
		}
		texts := append(c.events.all(), string(fights), c.Fights()[0].String(), c.log.String(), c.observed.last(t).Resources[0].Skipped)
		for _, text := range texts {
			for _, value := range []string{"theirs", "of-ours"} {
				if strings.Contains(text, value) {
					t.Errorf("it has %q: %s", value, text)
				}
			}
		}
	})
}

func TestTheOtherManagersAreFoundOnceAndCannotFailTheReconciliation(t *testing.T) {
	for name, test := range map[string]struct {
		find func(ctx context.Context) []string
		want string
	}{
		"found":   {func(context.Context) []string { return []string{"kubectl-edit", "hook"} }, "also written by kubectl-edit, hook"},
		"unknown": {func(context.Context) []string { return nil }, "what undoes it is not known"},
		"slow":    {func(ctx context.Context) []string { <-ctx.Done(); return nil }, "what undoes it is not known"},
		"panics":  {func(context.Context) []string { panic("boom") }, "what undoes it is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			contested(t, &contestedOps{}, func(c *contest) {
				asked := &journal{}
				access.EngineOf(c.Framework).FindManagers(func(ctx context.Context, resource string, object plan.Object, fields []string) []string {
					asked.add(fmt.Sprint(resource, " ", object, " ", fields))
					return test.find(ctx)
				})
				c.undo(10, 6*time.Second, "size", "color")
				c.expect(6, "data.color data.size")
				if diff := cmp.Diff([]string{"pages ConfigMap default/page [data.color data.size]"}, asked.all()); diff != "" {
					t.Errorf("asked (-want +got):\n%s", diff)
				}
				if got := c.events.all(); len(got) != 1 || !strings.Contains(got[0], ": "+test.want+";") {
					t.Errorf("the event is %q, want %q", got, test.want)
				}
				if got := c.Fights()[0].String(); !strings.HasSuffix(got, ": "+test.want) {
					t.Errorf("the fight is %s, want %q", got, test.want)
				}
			})
		})
	}
}

func TestAResourceThatSaysThatItIsNotDoneIsInNoFight(t *testing.T) {
	for name, on := range map[string]func(ctx context.Context) error{
		"asks for a requeue": func(ctx context.Context) error { requeuecontext.SetAfter(ctx, time.Hour); return nil },
		"is called again":    func(context.Context) error { return framework.RequeueAfter(time.Hour) },
		"cancels itself":     func(ctx context.Context) error { resourcecanceledcontext.SetCanceled(ctx); return nil },
		"fails":              func(context.Context) error { return framework.Permanent(errBoom) },
	} {
		t.Run(name, func(t *testing.T) {
			contested(t, &contestedOps{on: on}, func(c *contest) {
				c.undo(20, time.Second, "color")
				c.expect(21)
			})
		})
	}
}

func TestWhatIsDoneForAnObjectThatIsBeingDeletedIsNotHeld(t *testing.T) {
	contested(t, &contestedOps{}, func(c *contest) {
		c.ops.mu.Lock()
		c.ops.on = func(ctx context.Context) error { finalizerskeptcontext.SetKept(ctx); return nil }
		c.ops.mu.Unlock()
		remove(t, c.source, home(1))
		synctest.Wait()
		c.written()
		for range 20 {
			c.ops.mu.Lock()
			c.ops.page = configMap("page")
			c.ops.mu.Unlock()
			c.Enqueue(keyOf("home"))
			synctest.Wait()
		}
		c.expect(20)
	})
}

func TestAFightIsForgottenWithItsObject(t *testing.T) {
	contested(t, &contestedOps{}, func(c *contest) {
		c.undo(7, time.Second, "color")
		c.expect(6, "data.color")
		remove(t, c.source, home(1))
		synctest.Wait()
		c.expect(1)
		c.put(home(1))
		c.undo(4, time.Second, "color")
		c.expect(5)
	})
}

func TestAPlanThatIsAppliedIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ops := &contestedOps{}
		c := newContest(t, ops, func(t testing.TB) framework.Resource {
			r, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[*corev1.ConfigMap, *corev1.ConfigMap]{Logger: quiet(t), Ops: ops})
			if err != nil {
				t.Fatal(err)
			}
			return r
		})
		put(t, c.source, home(1))
		for range 20 {
			ops.page = configMap("page", "color", "theirs", "size", "theirs")
			p, err := c.Plan(t.Context(), keyOf("home"))
			if err != nil {
				t.Fatal(err)
			}
			if err := c.ApplyPlan(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		c.expect(20)
	})
}

func TestAResourceThatCanBePlannedIsHeldAndAnOpaqueOneIsNot(t *testing.T) {
	for name, test := range map[string]struct {
		of    func(created func(context.Context, any) error) framework.Resource
		every time.Duration
		runs  int
		plans bool
	}{
		"planner": {func(created func(context.Context, any) error) framework.Resource {
			p := pagesOf(func(context.Context, *corev1.ConfigMap) (any, error) { return "new", nil })
			p.created = created
			return p
		}, time.Second, 6, true},
		"planner of an object with versions": {func(created func(context.Context, any) error) framework.Resource {
			return &versionedPage{resource{name: "pages", created: created}}
		}, time.Second, 6, true},
		"slow planner": {func(created func(context.Context, any) error) framework.Resource {
			p := pagesOf(func(context.Context, *corev1.ConfigMap) (any, error) {
				t.Error("it is planned, which may cost requests")
				return "new", nil
			})
			p.created = created
			return p
		}, 121 * time.Second, 13, false},
		"settled planner": {func(created func(context.Context, any) error) framework.Resource {
			p := settled()
			p.created = created
			return p
		}, time.Second, 13, false},
		"concluder": {func(created func(context.Context, any) error) framework.Resource {
			return &concludingPage{versionedPage{resource{name: "pages", created: created}}}
		}, time.Second, 13, false},
		"opaque": {func(created func(context.Context, any) error) framework.Resource {
			return &resource{name: "pages", created: created}
		}, time.Second, 13, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runs := &journal{}
				c := newContest(t, &contestedOps{}, func(testing.TB) framework.Resource {
					return test.of(func(context.Context, any) error { runs.add("run"); return nil })
				})
				defer running(t, c.Framework)()
				c.put(home(1))
				for range 12 {
					time.Sleep(test.every)
					c.Enqueue(keyOf("home"))
					synctest.Wait()
				}
				if got, fights := len(runs.all()), len(c.Fights()); got != test.runs || fights == 1 != test.plans {
					t.Errorf("%d runs and %d fights, want %d runs, and a fight: %t", got, fights, test.runs, test.plans)
				}
			})
		})
	}
}

func TestWhatAGuardHoldsIsNotAppliedAndInNoFight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs, source := &journal{}, informer.NewPush("objects")
		page := &versionedPage{resource{name: "pages", created: func(context.Context, any) error { runs.add("run"); return nil }}}
		f := newFramework(t, framework.Config{Name: "sites", Source: source, Guards: []framework.Guard{
			{Name: "ask", Match: on(plan.Update), Action: framework.GuardApprove},
		}}, page)
		defer running(t, f)()
		put(t, source, home(1))
		for range 12 {
			time.Sleep(time.Second)
			f.Enqueue(keyOf("home"))
			synctest.Wait()
		}
		if len(runs.all()) != 0 || len(f.Fights()) != 0 {
			t.Errorf("%d runs, and the fights %v", len(runs.all()), f.Fights())
		}
	})
}

// versionedPage is a plain resource that can be planned, whose object has another version each time.
type versionedPage struct{ resource }

func (*versionedPage) Plan(context.Context, plan.Event, any) ([]plan.Change, error) {
	page := plan.Object{Kind: "Page", Name: "home", UID: types.UID(time.Now().String()), Version: time.Now().String()}
	return []plan.Change{{Action: plan.Update, Object: page, Description: "turn the page"}}, nil
}

// concludingPage is a versionedPage that concludes.
type concludingPage struct{ versionedPage }

func (*concludingPage) Concludes() bool { return true }

func TestAReplicaForgetsTheFightsOfObjectsThatItGivesAway(t *testing.T) {
	contestedBy := func(t *testing.T, p *part) *contest {
		ops := &contestedOps{}
		c := newContest(t, ops, func(t testing.TB) framework.Resource {
			r, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[*corev1.ConfigMap, *corev1.ConfigMap]{Logger: quiet(t), Ops: ops})
			if err != nil {
				t.Fatal(err)
			}
			return r
		})
		if err := access.EngineOf(c.Framework).Share(p); err != nil {
			t.Fatal(err)
		}
		return c
	}
	synctest.Test(t, func(t *testing.T) {
		p := newPart("home")
		c := contestedBy(t, p)
		defer running(t, c.Framework)()
		c.put(home(1))
		c.undo(7, time.Second, "color")
		c.expect(6, "data.color")
		for _, writes := range []int{1, 0} {
			p.becomes(c.Framework)
			synctest.Wait()
			c.expect(0)
			p.becomes(c.Framework, "home")
			synctest.Wait()
			c.expect(writes)
			c.undo(4, time.Second, "color")
			c.expect(4)
		}
	})
}
