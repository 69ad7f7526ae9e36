package framework_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/context/resourcecanceledcontext"
	"github.com/operatorkit/operatorkit/context/updateallowedcontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// records is an Observer that keeps what it is told.
type records struct {
	mu  sync.Mutex
	all []*framework.Record
}

func (r *records) Observe(record *framework.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, record)
}

// taken returns what was told since the last call.
func (r *records) taken() []*framework.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.all
	r.all = nil
	return taken
}

// last returns what was told last, of which there must be one.
func (r *records) last(t *testing.T) *framework.Record {
	t.Helper()
	taken := r.taken()
	if len(taken) == 0 {
		t.Fatal("nothing was observed")
	}
	return taken[len(taken)-1]
}

func TestRecordTellsWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, observed := informer.NewPush("objects"), &records{}
		steps := &describedOps{name: "pages", applied: &journal{}, on: func(_ context.Context, step framework.Step) error {
			if step == framework.StepGetCurrentState {
				time.Sleep(time.Second)
			}
			return nil
		}}
		slow := &resource{name: "slow", created: func(context.Context, any) error {
			time.Sleep(2 * time.Second)
			return errBoom
		}}
		f := newFramework(t, framework.Config{
			Name: "test", Source: source, Observer: observed, BackOffFactory: everyMinute,
			ResourceRouter: routerOf(t, framework.ResourceSetConfig{
				Name: "v1", Resources: []framework.Resource{planned(t, steps), slow, &resource{name: "last"}},
			}),
		})
		defer running(t, f)()
		synctest.Wait()
		start := time.Now()
		put(t, source, configMap("a"))
		time.Sleep(10 * time.Second)
		synctest.Wait()

		change := func(action plan.Action, name string) plan.Change {
			return plan.Change{Action: action, Object: plan.Object{Name: name}}
		}
		second := time.Second
		want := []*framework.Record{{
			Framework: "test", Key: keyOf("a"), ResourceSet: "v1", Event: plan.UpdateEvent, Loop: 1,
			Object:   plan.Object{Kind: "ConfigMap", Namespace: "default", Name: "a", UID: "uid-a"},
			Triggers: []framework.Trigger{{Cause: framework.CauseChange, Source: "objects", Event: "added"}}, TriggerCount: 1,
			Queued: start, Started: start, Duration: 3 * second,
			Outcome: framework.Failed, Error: `update of ConfigMap default/a: resource "slow": ensure created: boom`,
			NextTry: start.Add(3*second + time.Minute),
			Resources: []framework.ResourceRecord{
				{Name: "pages", Duration: second, Steps: []framework.StepRecord{
					{Step: framework.StepGetCurrentState, Duration: second},
					{Step: framework.StepGetDesiredState, Start: second},
					{Step: framework.StepNewUpdatePatch, Start: second},
					{Step: framework.StepApplyCreateChange, Start: second},
					{Step: framework.StepApplyUpdateChange, Start: second},
					{Step: framework.StepApplyDeleteChange, Start: second},
				}, Changes: []plan.Change{change(plan.Create, "c"), change(plan.Update, "u"), change(plan.Delete, "d")}},
				{Name: "slow", Start: second, Duration: 2 * second, Error: `resource "slow": ensure created: boom`},
				{Name: "last", Skipped: "not reached"},
			},
		}}
		if diff := cmp.Diff(want, observed.taken(), cmpopts.IgnoreUnexported(framework.Record{}, framework.ResourceRecord{})); diff != "" {
			t.Errorf("record (-want +got):\n%s", diff)
		}
	})
}

func TestRecordTellsWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, watched, observed := informer.NewPush("objects"), informer.NewPush("watched"), &records{}
		put(t, source, configMap("a"))
		var fails error
		var asks time.Duration
		gate := make(chan struct{}, 100)
		f := newFramework(t, framework.Config{
			Source: source, Observer: observed, BackOffFactory: everyMinute,
			Watches: []framework.Watch{{Source: watched, Map: func(context.Context, any) []informer.Key { return []informer.Key{keyOf("a")} }}},
		}, &resource{name: "r", created: func(ctx context.Context, _ any) error {
			<-gate
			if asks > 0 {
				requeuecontext.SetAfter(ctx, asks)
			}
			return fails
		}}, &resource{name: "later", created: func(ctx context.Context, _ any) error {
			if asks > 0 {
				requeuecontext.SetAfter(ctx, 2*asks)
			}
			return nil
		}})
		pass := func() {
			gate <- struct{}{}
			synctest.Wait()
		}
		defer running(t, f)()
		expect := func(what string, count int, want ...framework.Trigger) {
			t.Helper()
			pass()
			got := observed.last(t)
			if diff := cmp.Diff(want, got.Triggers); diff != "" || got.TriggerCount != count {
				t.Errorf("%s: %d triggers, want %d (-want +got):\n%s", what, got.TriggerCount, count, diff)
			}
		}
		synctest.Wait()
		inBacklog := framework.Trigger{Cause: framework.CauseBacklog, Source: "objects", Event: "added"}
		expect("an object that is there", 1, inBacklog)

		fails = errBoom
		f.Enqueue(keyOf("a"))
		expect("a call of Enqueue", 1, framework.Trigger{Cause: framework.CauseEnqueue})
		fails = nil
		time.Sleep(2 * time.Minute)
		expect("a retry", 1, framework.Trigger{Cause: framework.CauseRetry})
		f.EnqueueAfter(keyOf("a"), time.Minute)
		time.Sleep(2 * time.Minute)
		asks = time.Minute
		expect("a call of EnqueueAfter", 1, framework.Trigger{Cause: framework.CauseRequeue})
		asks = 0
		time.Sleep(3 * time.Minute)
		byResource := framework.Trigger{Cause: framework.CauseRequeue, Resource: "r"}
		expect("a resource that asked for it", 1, byResource)
		if want := "requeue by r"; byResource.String() != want {
			t.Errorf("it says %q, want %q", byResource, want)
		}

		f.Enqueue(keyOf("a"))
		synctest.Wait()
		queued := time.Now()
		for range 5 {
			put(t, watched, configMap("w", "now", time.Now().String()))
			time.Sleep(time.Second)
		}
		pass()
		observed.taken()
		expect("changes of a watched object while it is worked on", 5,
			framework.Trigger{Cause: framework.CauseChange, Source: "watched", Event: "added", Namespace: "default", Name: "w"},
			framework.Trigger{Cause: framework.CauseChange, Source: "watched", Event: "updated", Namespace: "default", Name: "w"},
			framework.Trigger{Cause: framework.CauseChange, Source: "watched", Event: "updated", Namespace: "default", Name: "w"})
		put(t, source, configMap("a", "changed", "yes"))
		synctest.Wait()
		pass()
		if got := observed.last(t); !got.Queued.After(queued) || got.Triggers[0].Event != "updated" {
			t.Errorf("a change: queued %s, triggers %v", got.Queued, got.Triggers)
		}
	})
}

func TestRecordTellsSignalsRetriesAndWhatWasSkipped(t *testing.T) {
	again := func(ctx context.Context, _ framework.StepInfo, next func(context.Context) error) error {
		return errors.Join(next(ctx), next(ctx))
	}
	for name, test := range map[string]struct {
		on       func(ctx context.Context)
		outcome  framework.Outcome
		signals  []string
		skipped  string
		attempts []int
	}{
		"nothing":                 {on: func(context.Context) {}, outcome: framework.Succeeded, attempts: []int{2, 2, 2, 2, 2, 2}},
		"a cancelled resource":    {on: resourcecanceledcontext.SetCanceled, outcome: framework.Succeeded, skipped: "the resource is cancelled", attempts: []int{2}},
		"a cancelled object":      {on: reconciliationcanceledcontext.SetCanceled, outcome: framework.Canceled, signals: []string{"reconciliation cancelled"}, skipped: "the reconciliation is cancelled", attempts: []int{2}},
		"a request for next look": {on: func(ctx context.Context) { requeuecontext.SetAfter(ctx, time.Hour) }, outcome: framework.Succeeded, signals: []string{"look again after 1h0m0s"}, attempts: []int{2, 2, 2, 2, 2, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, observed := informer.NewPush("objects"), &records{}
				ops := &describedOps{name: "pages", applied: &journal{}, on: func(ctx context.Context, step framework.Step) error {
					if step == framework.StepGetCurrentState {
						test.on(ctx)
					}
					return nil
				}}
				f := newFramework(t, framework.Config{Source: source, Observer: observed}, framework.WrapSteps(planned(t, ops), again))
				defer running(t, f)()
				put(t, source, configMap("a"))
				synctest.Wait()

				got := observed.last(t)
				var attempts []int
				for _, s := range got.Resources[0].Steps {
					attempts = append(attempts, s.Attempts)
				}
				if got.Outcome != test.outcome || got.Resources[0].Skipped != test.skipped {
					t.Errorf("outcome %q, skipped %q; want %q, %q", got.Outcome, got.Resources[0].Skipped, test.outcome, test.skipped)
				}
				if diff := cmp.Diff(test.signals, got.Signals); diff != "" {
					t.Errorf("signals (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(test.attempts, attempts); diff != "" {
					t.Errorf("attempts of the steps (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestRecordNamesNoChangeThatIsNotAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, observed := informer.NewPush("objects"), &records{}
		f := newFramework(t, framework.Config{Source: source, Observer: observed, ResourceRouter: routerOf(t, framework.ResourceSetConfig{
			Resources: []framework.Resource{planned(t, &describedOps{name: "pages", applied: &journal{}})},
			InitCtx: func(ctx context.Context, _ any) (context.Context, error) {
				return updateallowedcontext.NewContext(ctx), nil
			},
		})})
		defer running(t, f)()
		put(t, source, configMap("a"))
		synctest.Wait()

		got := observed.last(t).Resources[0]
		var changes []plan.Action
		for _, c := range got.Changes {
			changes = append(changes, c.Action)
		}
		if diff := cmp.Diff([]plan.Action{plan.Create, plan.Delete}, changes); diff != "" || got.Skipped != "updates are not allowed" {
			t.Errorf("skipped %q, changes (-want +got):\n%s", got.Skipped, diff)
		}
	})
}

func TestObserverIsToldOfObjectsThatAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, observed := informer.NewPush("objects"), &records{}
		paused := configMap("paused")
		paused.Annotations = map[string]string{framework.PausedAnnotation: "true"}
		f := newFramework(t, framework.Config{Source: source, Observer: observed, ResourceRouter: routerOf(t, framework.ResourceSetConfig{
			Handles: func(obj any) bool { return obj.(*corev1.ConfigMap).Name != "unknown" }, Resources: []framework.Resource{&resource{name: "r"}},
		})})
		defer running(t, f)()
		put(t, source, paused)
		put(t, source, configMap("unknown"))
		f.Enqueue(keyOf("absent"))
		synctest.Wait()

		got := map[string]string{}
		for _, r := range observed.taken() {
			got[r.Object.Name] = string(r.Outcome) + ": " + r.Reason
		}
		want := map[string]string{
			"paused":  "ignored: it is paused by an annotation",
			"unknown": "ignored: no resource set handles it",
			"absent":  "ignored: there is no such object",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("records (-want +got):\n%s", diff)
		}
	})
}

func TestEveryReconciliationOfAKeyIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, observed := informer.NewPush("objects"), &records{}
		gate := make(chan struct{}, 10)
		f := newFramework(t, framework.Config{Source: source, Observer: observed, DisableFinalizer: true},
			&resource{name: "r", created: func(context.Context, any) error { <-gate; return nil }})
		defer running(t, f)()
		put(t, source, configMap("a"))
		synctest.Wait()
		for range 2 {
			remove(t, source, configMap("a"))
			put(t, source, configMap("a"))
		}
		gate <- struct{}{}
		gate <- struct{}{}
		synctest.Wait()

		var got []string
		for _, r := range observed.taken() {
			got = append(got, string(r.Event)+" "+string(r.Outcome))
			if r.Started.IsZero() || r.Duration != 0 {
				t.Errorf("loop %d started %s and took %s", r.Loop, r.Started, r.Duration)
			}
		}
		if want := []string{"update success", "delete success", "delete success", "update success"}; !slices.Equal(got, want) {
			t.Errorf("recorded %v, want %v", got, want)
		}
	})
}

func TestFrameworkTellsItsStatusAndKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, gate := informer.NewPush("objects"), make(chan struct{})
		f := newFramework(t, framework.Config{Source: source, Workers: 1, BackOffFactory: everyMinute}, &resource{name: "r", created: func(context.Context, any) error {
			<-gate
			return errBoom
		}})
		defer running(t, f)()
		synctest.Wait()
		for _, name := range []string{"a", "b", "c"} {
			put(t, source, configMap(name))
		}
		synctest.Wait()
		time.Sleep(time.Second)

		want := framework.Status{Fresh: 2, Active: 1, OldestWait: time.Second}
		if diff := cmp.Diff(want, f.Status()); diff != "" {
			t.Errorf("while working (-want +got):\n%s", diff)
		}
		close(gate)
		synctest.Wait()
		if diff := cmp.Diff(framework.Status{Retrying: 3, Failing: 3, FailingSince: time.Now()}, f.Status()); diff != "" {
			t.Errorf("afterwards (-want +got):\n%s", diff)
		}
		keys := f.Keys()
		slices.SortFunc(keys, func(a, b informer.Key) int { return strings.Compare(a.Name, b.Name) })
		if diff := cmp.Diff([]informer.Key{keyOf("a"), keyOf("b"), keyOf("c")}, keys); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
	})
}

// applied is a CRUD resource whose patch has one part, which it changes while it applies it.
type applied[S any] struct {
	current, part S
	action        plan.Action
	spoil         func(S)
}

func (*applied[S]) Name() string { return "applied" }

func (a *applied[S]) GetCurrentState(context.Context, *corev1.ConfigMap) (S, error) {
	return a.current, nil
}

func (a *applied[S]) GetDesiredState(context.Context, *corev1.ConfigMap) (S, error) {
	return a.part, nil
}

func (a *applied[S]) NewUpdatePatch(context.Context, *corev1.ConfigMap, S, S) (*framework.TypedPatch[S], error) {
	p := framework.NewTypedPatch[S]()
	if a.action == plan.Create {
		p.SetCreateChange(a.part)
	} else {
		p.SetUpdateChange(a.part)
	}
	return p, nil
}

func (a *applied[S]) NewDeletePatch(context.Context, *corev1.ConfigMap, S, S) (*framework.TypedPatch[S], error) {
	return nil, nil
}

func (a *applied[S]) apply(part S) error {
	a.spoil(part)
	a.spoil(a.current)
	return nil
}

func (a *applied[S]) ApplyCreateChange(_ context.Context, _ *corev1.ConfigMap, part S) error {
	return a.apply(part)
}

func (a *applied[S]) ApplyUpdateChange(_ context.Context, _ *corev1.ConfigMap, part S) error {
	return a.apply(part)
}

func (a *applied[S]) ApplyDeleteChange(context.Context, *corev1.ConfigMap, S) error { return nil }

// recorded returns the changes of a reconciliation that applies a part, as fields.
func recorded[S any](t *testing.T, a *applied[S]) (fields []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		source, observed := informer.NewPush("objects"), &records{}
		r, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[*corev1.ConfigMap, S]{Logger: quiet(t), Ops: a})
		if err != nil {
			t.Fatal(err)
		}
		f := newFramework(t, framework.Config{Source: source, Observer: observed}, r)
		defer running(t, f)()
		put(t, source, configMap("a"))
		synctest.Wait()
		for _, c := range observed.last(t).Resources[0].Changes {
			for _, field := range c.Fields {
				fields = append(fields, fmt.Sprintf("%s %s %s: %v -> %v", c.Action, c.Object, field.Path, field.Old, field.New))
			}
		}
	})
	return fields
}

// confidential is an object that is sensitive although what it embeds, and what its copy is, is not.
type confidential struct{ *corev1.ConfigMap }

func (confidential) Sensitive() bool { return true }

// summary is a list that describes itself in other words than its elements do.
type summary []*corev1.ConfigMap

func (s summary) Changes() []plan.Change {
	return []plan.Change{{Action: plan.Create, Object: plan.Object{Name: "all"}, Fields: []plan.FieldChange{{Path: "count", New: len(s)}}}}
}

func TestRecordShowsAPatchAsItWasBeforeItWasApplied(t *testing.T) {
	spoil := func(cm *corev1.ConfigMap) {
		if cm != nil {
			cm.Data["key"] = "spoiled"
		}
	}
	large := strings.Repeat("x", 100_000)
	one := func(action plan.Action, current, part *corev1.ConfigMap) []string {
		return recorded(t, &applied[*corev1.ConfigMap]{current, part, action, spoil})
	}
	for name, test := range map[string]struct{ got, want []string }{
		"an object that is created": {
			one(plan.Create, nil, configMap("c", "key", "new")), []string{"create ConfigMap default/c data.key: <nil> -> new"},
		},
		"an object that is updated": {
			one(plan.Update, configMap("c", "key", "old"), configMap("c", "key", "new")), []string{"update ConfigMap default/c data.key: old -> new"},
		},
		"a large object": {
			one(plan.Create, nil, configMap("c", "key", large)), []string{"create ConfigMap default/c data.key: <nil> -> " + large},
		},
		"a list": {
			recorded(t, &applied[[]*corev1.ConfigMap]{nil, []*corev1.ConfigMap{configMap("c", "key", "1"), configMap("d", "key", "2")}, plan.Create,
				func(list []*corev1.ConfigMap) {
					for _, cm := range list {
						spoil(cm)
					}
				}}),
			[]string{"create ConfigMap default/c data.key: <nil> -> 1", "create ConfigMap default/d data.key: <nil> -> 2"},
		},
		"a list that describes itself": {
			recorded(t, &applied[summary]{nil, summary{configMap("c"), configMap("d")}, plan.Create, func(summary) {}}),
			[]string{"create all count: <nil> -> 2"},
		},
	} {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, field := range recorded(t, &applied[confidential]{confidential{}, confidential{configMap("c", "key", "hunter2")}, plan.Create, func(confidential) {}}) {
		if strings.Contains(field, "hunter2") {
			t.Errorf("R14: the value of a confidential object is recorded: %s", field)
		}
	}
}
