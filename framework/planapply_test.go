package framework_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/context/resourcecanceledcontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/access"
)

// world is what resources change: a setting by name.
type world struct {
	mu       sync.Mutex
	settings map[string]string
}

func (w *world) set(name, value string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.settings == nil {
		w.settings = map[string]string{}
	}
	w.settings[name] = value
	if value == "" {
		delete(w.settings, name)
	}
}

func (w *world) get(name string) string { return w.all()[name] }

func (w *world) all() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.settings)
}

// settingOps make one setting of a world what the object says.
type settingOps struct {
	world *world
	name  string
	// want says what the setting should be. Default: the object's data of the name.
	want func(obj *corev1.ConfigMap) string
	// on is called when a patch is computed.
	on func(ctx context.Context) error
}

func (o *settingOps) Name() string { return o.name }

func (o *settingOps) GetCurrentState(context.Context, *corev1.ConfigMap) (map[string]string, error) {
	if value := o.world.get(o.name); value != "" {
		return map[string]string{o.name: value}, nil
	}
	return nil, nil
}

func (o *settingOps) GetDesiredState(_ context.Context, obj *corev1.ConfigMap) (map[string]string, error) {
	if o.want != nil {
		return map[string]string{o.name: o.want(obj)}, nil
	}
	return map[string]string{o.name: obj.Data[o.name]}, nil
}

func (o *settingOps) NewUpdatePatch(ctx context.Context, _ *corev1.ConfigMap, current, desired map[string]string) (*framework.TypedPatch[map[string]string], error) {
	p := framework.NewTypedPatch[map[string]string]()
	switch {
	case current == nil:
		p.SetCreateChange(desired)
	case current[o.name] != desired[o.name]:
		p.SetUpdateChange(desired)
	}
	if o.on == nil {
		return p, nil
	}
	return p, o.on(ctx)
}

func (o *settingOps) NewDeletePatch(ctx context.Context, _ *corev1.ConfigMap, current, _ map[string]string) (*framework.TypedPatch[map[string]string], error) {
	p := framework.NewTypedPatch[map[string]string]()
	if current != nil {
		p.SetDeleteChange(current)
	}
	if o.on == nil {
		return p, nil
	}
	return p, o.on(ctx)
}

func (o *settingOps) ApplyCreateChange(_ context.Context, _ *corev1.ConfigMap, change map[string]string) error {
	o.world.set(o.name, change[o.name])
	return nil
}

func (o *settingOps) ApplyUpdateChange(_ context.Context, _ *corev1.ConfigMap, change map[string]string) error {
	o.world.set(o.name, change[o.name])
	return nil
}

func (o *settingOps) ApplyDeleteChange(context.Context, *corev1.ConfigMap, map[string]string) error {
	o.world.set(o.name, "")
	return nil
}

func setting(t testing.TB, o *settingOps) framework.Resource {
	t.Helper()
	r, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[*corev1.ConfigMap, map[string]string]{Logger: quiet(t), Ops: o})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// saving is a framework whose plans are saved and applied, over the object "a" of a source with finalizers.
type saving struct {
	*framework.Framework
	source *holding
	// onHold is called when the finalizer is put on the object.
	onHold func()
}

// AddFinalizer implements informer.FinalizerStore.
func (s *saving) AddFinalizer(ctx context.Context, obj any, finalizer string) (any, error) {
	if s.onHold != nil {
		s.onHold()
	}
	return s.source.AddFinalizer(ctx, obj, finalizer)
}

func newSaving(t testing.TB, obj *corev1.ConfigMap, resources ...framework.Resource) *saving {
	t.Helper()
	s := &saving{source: &holding{Push: informer.NewPush("objects")}}
	s.source.remove = func(obj *corev1.ConfigMap) error { return s.source.Delete(obj) }
	put(t, s.source.Push, obj)
	source := struct {
		*informer.Push
		informer.FinalizerStore
	}{s.source.Push, finalizerStore{s}}
	s.Framework = newFramework(t, framework.Config{Name: "test", Source: source, Finalizer: "example.com/f"}, resources...)
	return s
}

// finalizerStore puts on finalizers as saving does, and takes them off as holding does.
type finalizerStore struct{ *saving }

func (f finalizerStore) RemoveFinalizer(ctx context.Context, obj any, finalizer string) error {
	return f.source.RemoveFinalizer(ctx, obj, finalizer)
}

// saved plans the object, and writes and reads the plan.
func (s *saving) saved(t testing.TB) *plan.Plan {
	t.Helper()
	p, err := s.Plan(t.Context(), keyOf("a"))
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := plan.WriteJSON(&file, []*plan.Plan{p}); err != nil {
		t.Fatal(err)
	}
	plans, err := plan.ReadJSON(&file)
	if err != nil {
		t.Fatal(err)
	}
	return plans[0]
}

func (s *saving) held(t testing.TB) bool {
	t.Helper()
	obj, exists, err := s.source.Get(keyOf("a"))
	if err != nil || !exists {
		return false
	}
	return len(obj.(*corev1.ConfigMap).Finalizers) > 0
}

func TestSavedPlanIsAppliedAsAReconciliationDoesIt(t *testing.T) {
	w := &world{settings: map[string]string{"y": "old"}}
	s := newSaving(t, configMap("a", "x", "1", "y", "2"), setting(t, &settingOps{world: w, name: "x"}), setting(t, &settingOps{world: w, name: "y"}))
	p := s.saved(t)
	if err := access.EngineOf(s.Framework).CheckPlan(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"y": "old"}, w.all()); diff != "" || s.held(t) {
		t.Fatalf("the plan or its check did something: held %t\n%s", s.held(t), diff)
	}
	if err := s.ApplyPlan(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"x": "1", "y": "2"}, w.all()); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if !s.held(t) {
		t.Error("the object has no finalizer")
	}
	if err := s.ApplyPlan(t.Context(), p); !errors.Is(err, framework.ErrPlanChanged) {
		t.Errorf("applied a second time: %v", err)
	}
}

func TestSavedPlanIsRefusedWithADiffAndNothingIsDone(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(t *testing.T, s *saving, w *world)
		says      string
	}{
		"the object was changed": {
			func(t *testing.T, s *saving, _ *world) { put(t, s.source.Push, configMap("a", "x", "1", "y", "3")) }, "\n+     ",
		},
		"something else was changed, for the last resource": {
			func(_ *testing.T, _ *saving, w *world) { w.set("y", "else") }, "\n+   update",
		},
		"the object is another one of its name": {
			func(t *testing.T, s *saving, _ *world) {
				other := configMap("a", "x", "1", "y", "2")
				other.UID = types.UID("another")
				put(t, s.source.Push, other)
			}, "UID another",
		},
		"the object is gone": {
			func(t *testing.T, s *saving, _ *world) { remove(t, s.source.Push, configMap("a")) }, "there is no such object",
		},
		"the object is being deleted": {
			func(t *testing.T, s *saving, _ *world) {
				now := metav1.Now()
				obj := configMap("a", "x", "1", "y", "2")
				obj.DeletionTimestamp, obj.Finalizers = &now, []string{"example.com/f"}
				put(t, s.source.Push, obj)
			}, "+ delete of",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{}
			s := newSaving(t, configMap("a", "x", "1", "y", "2"), setting(t, &settingOps{world: w, name: "x"}), setting(t, &settingOps{world: w, name: "y"}))
			p := s.saved(t)
			test.meanwhile(t, s, w)
			before := w.all()
			s.onHold = func() { t.Error("a finalizer was put on") }
			for _, apply := range []func(context.Context, *plan.Plan) error{access.EngineOf(s.Framework).CheckPlan, s.ApplyPlan} {
				err := apply(t.Context(), p)
				if !errors.Is(err, framework.ErrPlanChanged) || !strings.Contains(err.Error(), test.says) {
					t.Errorf("error %v, want one that says %q", err, test.says)
				}
			}
			if diff := cmp.Diff(before, w.all()); diff != "" {
				t.Errorf("settings changed:\n%s", diff)
			}
		})
	}
}

func TestWhatChangesWhileAPlanIsAppliedIsNotOverwritten(t *testing.T) {
	w := &world{}
	s := newSaving(t, configMap("a", "x", "1"), setting(t, &settingOps{world: w, name: "x"}))
	p := s.saved(t)
	s.onHold = func() { w.set("x", "somebody's") }
	err := s.ApplyPlan(t.Context(), p)
	if !errors.Is(err, framework.ErrPlanChanged) || !strings.Contains(err.Error(), `resource "x"`) ||
		!strings.Contains(err.Error(), "this resource has changed nothing, earlier ones are done: plan again, and apply the rest") {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff(map[string]string{"x": "somebody's"}, w.all()); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestResourceThatWantsSomethingElseOnceAnEarlierOneIsDoneIsNotRun(t *testing.T) {
	w := &world{}
	last := setting(t, &settingOps{world: w, name: "z"})
	s := newSaving(t, configMap("a", "x", "1", "z", "3"), setting(t, &settingOps{world: w, name: "x"}),
		setting(t, &settingOps{world: w, name: "y", want: func(*corev1.ConfigMap) string { return "after " + w.get("x") }}), last)
	err := s.ApplyPlan(t.Context(), s.saved(t))
	if !errors.Is(err, framework.ErrPlanChanged) || !strings.Contains(err.Error(), `resource "y"`) {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff(map[string]string{"x": "1"}, w.all()); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if err := s.ApplyPlan(t.Context(), s.saved(t)); err != nil {
		t.Errorf("planned anew: %v", err)
	}
	if diff := cmp.Diff(map[string]string{"x": "1", "y": "after 1", "z": "3"}, w.all()); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestPlanOfAStoppedResourceCanBeApplied(t *testing.T) {
	w := &world{}
	s := newSaving(t, configMap("a", "x", "1", "y", "2"),
		setting(t, &settingOps{world: w, name: "x", on: func(ctx context.Context) error { resourcecanceledcontext.SetCanceled(ctx); return nil }}),
		setting(t, &settingOps{world: w, name: "y"}))
	if err := s.ApplyPlan(t.Context(), s.saved(t)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"y": "2"}, w.all()); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestAPlanOfWhichAPartWasDoneIsNotSaidToBeApplied(t *testing.T) {
	w := &world{}
	waits := framework.WrapSteps(setting(t, &settingOps{world: w, name: "x"}), func(ctx context.Context, info framework.StepInfo, next func(context.Context) error) error {
		if info.Step == framework.StepApplyCreateChange {
			reconciliationcanceledcontext.SetCanceled(ctx)
		}
		return next(ctx)
	})
	s := newSaving(t, configMap("a", "x", "1", "y", "2"), waits, setting(t, &settingOps{world: w, name: "y"}))
	if err := s.ApplyPlan(t.Context(), s.saved(t)); !errors.Is(err, framework.ErrUpdateUnfinished) {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff(map[string]string{"x": "1"}, w.all()); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if err := s.ApplyPlan(t.Context(), s.saved(t)); err != nil {
		t.Errorf("planned anew: %v", err)
	}
	if diff := cmp.Diff(map[string]string{"x": "1", "y": "2"}, w.all()); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestPlainResourceIsComparedRightBeforeItRuns(t *testing.T) {
	ran := &journal{}
	tells := &teller{resource: resource{name: "r", created: func(context.Context, any) error { ran.add("ran"); return nil }},
		changes: []plan.Change{{Action: plan.Create, Object: plan.Object{Name: "x"}}}}
	s := newSaving(t, configMap("a"), tells)
	p := s.saved(t)
	s.onHold = func() { tells.changes = nil }
	if err := s.ApplyPlan(t.Context(), p); !errors.Is(err, framework.ErrPlanChanged) || len(ran.all()) > 0 {
		t.Errorf("error %v, ran %v", err, ran.all())
	}
	s.onHold = nil
	if err := s.ApplyPlan(t.Context(), s.saved(t)); err != nil || len(ran.all()) != 1 {
		t.Errorf("planned anew: error %v, ran %v", err, ran.all())
	}
}

func TestPlanThatDoesNotSayEverythingIsNotApplied(t *testing.T) {
	never := func(context.Context, any) error { t.Error("a resource ran"); return nil }
	fails := &teller{resource: resource{name: "fails", created: never}, err: errBoom}
	for name, test := range map[string]struct {
		resource framework.Resource
		change   func(*plan.Plan)
		want     error
	}{
		"a resource is opaque": {resource: &resource{"opaque", never, never}, want: framework.ErrPlanIncomplete},
		"a resource fails":     {resource: fails, want: framework.ErrPlanIncomplete},
		"it is another framework's": {resource: &teller{resource: resource{name: "r", created: never}},
			change: func(p *plan.Plan) { p.Framework = "other" }, want: framework.ErrExecutionFailed},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSaving(t, configMap("a"), test.resource)
			s.onHold = func() { t.Error("a finalizer was put on") }
			p := s.saved(t)
			if test.change != nil {
				test.change(p)
			}
			if err := s.ApplyPlan(t.Context(), p); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
}

func TestPlanOfADeletionIsAppliedWithTheFinalizer(t *testing.T) {
	w := &world{settings: map[string]string{"x": "1"}}
	kept := true
	obj := deleting("a")
	obj.Finalizers = []string{"example.com/f"}
	s := newSaving(t, obj, setting(t, &settingOps{world: w, name: "x", on: func(ctx context.Context) error {
		if kept {
			finalizerskeptcontext.SetKept(ctx)
		}
		return nil
	}}))
	if err := s.ApplyPlan(t.Context(), s.saved(t)); !errors.Is(err, framework.ErrDeletionUnfinished) || len(w.all()) > 0 || !s.held(t) {
		t.Errorf("error %v, settings %v, held %t", err, w.all(), s.held(t))
	}
	kept = false
	if err := s.ApplyPlan(t.Context(), s.saved(t)); err != nil || s.held(t) {
		t.Errorf("error %v, held %t", err, s.held(t))
	}
}

func TestIgnoredObjectIsLeftAloneByItsPlan(t *testing.T) {
	obj := configMap("a", "x", "1")
	obj.Annotations = map[string]string{framework.PausedAnnotation: "true"}
	w := &world{}
	s := newSaving(t, obj, setting(t, &settingOps{world: w, name: "x"}))
	if err := s.ApplyPlan(t.Context(), s.saved(t)); err != nil || len(w.all()) > 0 || s.held(t) {
		t.Errorf("error %v, settings %v, held %t", err, w.all(), s.held(t))
	}
}

func TestAPlanIsAppliedAlsoWhereOnlyPlansAreAskedFor(t *testing.T) {
	obj := configMap("a", "x", "1")
	obj.Annotations = map[string]string{framework.PlanAnnotation: "true"}
	w := &world{}
	s := newSaving(t, obj, setting(t, &settingOps{world: w, name: "x"}))
	if err := s.ApplyPlan(t.Context(), s.saved(t)); err != nil || !s.held(t) {
		t.Errorf("error %v, held %t", err, s.held(t))
	}
	if diff := cmp.Diff(map[string]string{"x": "1"}, w.all()); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestFrameworkThatRunsAppliesNoPlan(t *testing.T) {
	w := &world{}
	s := newSaving(t, configMap("a", "x", "1"), setting(t, &settingOps{world: w, name: "x"}))
	p := s.saved(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.ApplyPlan(t.Context(), p); !framework.IsExecutionFailed(err) || len(w.all()) > 0 {
		t.Errorf("error %v, settings %v", err, w.all())
	}
}
