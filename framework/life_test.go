package framework_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// ahead is a source of objects that may be another thing by now where they are kept, and counts how often it is asked there.
type ahead struct {
	*informer.Push
	mu    sync.Mutex
	now   *corev1.ConfigMap
	asked int
}

func newAhead() *ahead { return &ahead{Push: informer.NewPush("objects")} }

func (a *ahead) GetLive(context.Context, informer.Key) (obj any, exists bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	if a.now == nil {
		return nil, false, nil
	}
	return a.now.DeepCopy(), true, nil
}

func (a *ahead) SelectsLive(_ context.Context, obj any) (bool, error) {
	return obj.(*corev1.ConfigMap).Labels["selected"] != "no", nil
}

// keep has that object be the one that is kept, and nil none.
func (a *ahead) keep(obj *corev1.ConfigMap) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now = obj
}

// kept returns the object that is kept.
func (a *ahead) kept() *corev1.ConfigMap {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now.DeepCopy()
}

// asks returns how often it was asked since the last call.
func (a *ahead) asks() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := a.asked
	a.asked = 0
	return asked
}

// inState is the object "a" of a life and a version.
func inState(life, version string) *corev1.ConfigMap {
	obj := configMap("a")
	obj.UID, obj.ResourceVersion = types.UID(life), version
	return obj
}

func dying(obj *corev1.ConfigMap) *corev1.ConfigMap {
	obj = obj.DeepCopy()
	now := metav1.Now()
	obj.DeletionTimestamp = &now
	return obj
}

// acting is a resource whose patches have the parts that are named: c, u and d. It notes which version they are applied for.
func acting(t *testing.T, name string, applied *journal, parts func() string) framework.Resource {
	o := &partsOps{ops: &ops{name: name, calls: &journal{}}, applied: applied}
	o.patch = func() *framework.TypedPatch[string] {
		patch := framework.NewTypedPatch[string]()
		for _, part := range parts() {
			map[rune]func(string){'c': patch.SetCreateChange, 'u': patch.SetUpdateChange, 'd': patch.SetDeleteChange}[part](string(part))
		}
		return patch
	}
	r, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[*corev1.ConfigMap, string]{Logger: quiet(t), Ops: o})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type partsOps struct {
	*ops
	applied *journal
}

func (o *partsOps) note(obj *corev1.ConfigMap, change string) error {
	o.applied.add(fmt.Sprintf("%s %s for %s/%s", o.name, change, obj.UID, obj.ResourceVersion))
	return nil
}

func (o *partsOps) ApplyCreateChange(_ context.Context, obj *corev1.ConfigMap, change string) error {
	return o.note(obj, change)
}

func (o *partsOps) ApplyUpdateChange(_ context.Context, obj *corev1.ConfigMap, change string) error {
	return o.note(obj, change)
}

func (o *partsOps) ApplyDeleteChange(_ context.Context, obj *corev1.ConfigMap, change string) error {
	return o.note(obj, change)
}

func always(parts string) func() string { return func() string { return parts } }

func TestR11TheObjectIsAskedForInEachReconciliationThatDeletes(t *testing.T) {
	for name, test := range map[string]struct {
		first, second string
		want          []int // in each of three reconciliations
	}{
		"nothing":             {want: []int{0, 0, 0}},
		"creations":           {first: "c", second: "c", want: []int{0, 0, 0}},
		"updates":             {first: "cu", second: "u", want: []int{0, 0, 0}},
		"deletions":           {second: "d", want: []int{1, 1, 1}},
		"deletions of two":    {first: "d", second: "cud", want: []int{1, 1, 1}},
		"an update, then one": {first: "u", second: "d", want: []int{1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, applied := newAhead(), &journal{}
				f := newFramework(t, framework.Config{Source: source},
					acting(t, "first", applied, always(test.first)), acting(t, "second", applied, always(test.second)))
				defer running(t, f)()
				var got []int
				for version := range 3 {
					obj := inState("life", strconv.Itoa(version+1))
					source.keep(obj)
					put(t, source.Push, obj.DeepCopy())
					synctest.Wait()
					got = append(got, source.asks())
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("requests in each reconciliation (-want +got):\n%s", diff)
				}
				if got, want := len(applied.all()), 3*len(test.first+test.second); got != want {
					t.Errorf("%d parts were applied, want %d: %v", got, want, applied.all())
				}
			})
		})
	}
}

// aheadWithFinalizers is ahead with finalizers, which the object that is kept gets.
type aheadWithFinalizers struct{ *ahead }

func (h aheadWithFinalizers) AddFinalizer(_ context.Context, _ any, finalizer string) (any, error) {
	h.mu.Lock()
	held := h.now.DeepCopy()
	h.mu.Unlock()
	held.Finalizers = append(held.Finalizers, finalizer)
	version, err := strconv.Atoi(held.ResourceVersion)
	held.ResourceVersion = strconv.Itoa(version + 1)
	h.keep(held)
	return held.DeepCopy(), err
}

func (h aheadWithFinalizers) RemoveFinalizer(context.Context, any, string) error { return nil }

func TestR11AnObjectThatIsPausedWhenItGetsItsFinalizerIsLeftAlone(t *testing.T) {
	const former = "example.com/former"
	annotated := func(annotation string) *corev1.ConfigMap {
		obj := inState("life", "11")
		obj.Annotations = map[string]string{annotation: "true"}
		return obj
	}
	with := func(obj *corev1.ConfigMap, finalizers ...string) *corev1.ConfigMap {
		obj.Finalizers = finalizers
		return obj
	}
	for name, test := range map[string]struct {
		stored, live *corev1.ConfigMap
		want         []string
		planned      int
	}{
		"as it was seen": {inState("life", "10"), inState("life", "10"), []string{"created for 11"}, 0},
		"paused":         {inState("life", "10"), annotated(framework.PausedAnnotation), nil, 0},
		"only planned":   {inState("life", "10"), annotated(framework.PlanAnnotation), nil, 1},
		"paused when it has lost a former finalizer": {
			with(inState("life", "10"), finalizer, former), with(annotated(framework.PausedAnnotation), finalizer), nil, 0,
		},
		"deleted when it has lost a former finalizer": {
			with(inState("life", "10"), finalizer, former), with(dying(inState("life", "11")), finalizer), []string{"deleted for 11"}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, calls, planned := aheadWithFinalizers{newAhead()}, &journal{}, 0
				noting := func(did string) func(context.Context, any) error {
					return func(_ context.Context, obj any) error {
						calls.add(did + " for " + obj.(*corev1.ConfigMap).ResourceVersion)
						return nil
					}
				}
				f := newFramework(t, framework.Config{
					Source: source, Finalizer: finalizer, FormerFinalizers: []string{former}, BackOffFactory: everyMinute,
					PlanReporter: func(context.Context, any, *plan.Plan) error { planned++; return nil },
				}, &resource{name: "r", created: noting("created"), deleted: noting("deleted")})
				defer running(t, f)()
				source.keep(test.live)
				put(t, source.Push, test.stored)
				time.Sleep(time.Hour)
				if len(calls.all()) == 0 {
					put(t, source.Push, source.kept())
					time.Sleep(time.Hour)
				}
				synctest.Wait()

				if diff := cmp.Diff(test.want, calls.all()); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				if planned != test.planned {
					t.Errorf("%d plans, want %d", planned, test.planned)
				}
			})
		})
	}
}

// each leaves out what has come before: the next object of a name may be reconciled before its event has come, and then once more.
func each(lines []string) (different []string) {
	for _, line := range lines {
		if !slices.Contains(different, line) {
			different = append(different, line)
		}
	}
	return different
}

func TestR11NothingIsDeletedForAnObjectThatIsAnotherThingByNow(t *testing.T) {
	old := inState("life", "9")
	paused, deleted := inState("life", "10"), dying(inState("life", "10"))
	paused.Annotations = map[string]string{framework.PausedAnnotation: "true"}
	for name, test := range map[string]struct {
		stored, live *corev1.ConfigMap
		parts        string
		// first is what is applied while the source shows what is stored, and then when it shows what is live.
		first, then []string
	}{
		"as it was seen": {old, old, "cud", []string{"r c for life/9", "r u for life/9", "r d for life/9"}, nil},
		"changed":        {old, inState("life", "10"), "cud", nil, []string{"r c for life/10", "r u for life/10", "r d for life/10"}},
		"paused":         {old, paused, "cud", nil, nil},
		"being deleted":  {old, deleted, "d", nil, []string{"r d for life/10"}},
		"gone":           {old, nil, "cud", nil, nil},
		"another life": {old, inState("next", "10"), "cud", nil, []string{
			"r c for life/9", "r u for life/9", "r d for life/9", "r c for next/10", "r u for next/10", "r d for next/10",
		}},
		"an older answer":         {old, inState("life", "8"), "cud", nil, nil},
		"versions are no numbers": {inState("life", "x"), inState("life", "y"), "d", nil, []string{"r d for life/y"}},
		"without versions":        {inState("life", ""), inState("life", ""), "d", []string{"r d for life/"}, nil},

		"a deletion":                            {dying(old), dying(old), "d", []string{"r d for life/9"}, nil},
		"a deletion that changed":               {dying(old), deleted, "d", []string{"r d for life/9"}, nil},
		"a deletion of what is gone":            {dying(old), nil, "d", []string{"r d for life/9"}, nil},
		"a deletion before another life":        {dying(old), inState("next", "10"), "d", nil, []string{"r d for life/9", "r d for next/10"}},
		"a deletion of what is not deleted":     {dying(old), inState("life", "10"), "d", nil, []string{"r d for life/10"}},
		"a deletion, and an answer from before": {dying(old), inState("life", "8"), "d", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, applied := newAhead(), &journal{}
				f := newFramework(t, framework.Config{Source: source, BackOffFactory: everyMinute}, acting(t, "r", applied, always(test.parts)))
				defer running(t, f)()
				source.keep(test.live)
				put(t, source.Push, test.stored.DeepCopy())
				time.Sleep(5 * time.Minute)
				if diff := cmp.Diff(test.first, applied.all()); diff != "" {
					t.Errorf("applied at first (-want +got):\n%s", diff)
				}
				if test.then == nil {
					return
				}
				put(t, source.Push, source.kept())
				time.Sleep(5 * time.Minute)
				if diff := cmp.Diff(test.then, each(applied.all())); diff != "" {
					t.Errorf("applied then (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestR11APlainResourceDeletesForALiveDeletionOnlyAndCanConfirmWhatElseItDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, calls := newAhead(), &journal{}
		f := newFramework(t, framework.Config{Source: source, BackOffFactory: everyMinute}, &resource{name: "plain",
			created: func(ctx context.Context, obj any) error {
				err := framework.Confirm(ctx)
				calls.add(fmt.Sprintf("created for %s: %t", obj.(*corev1.ConfigMap).ResourceVersion, errors.Is(err, framework.ErrOutdated)))
				return err
			},
			deleted: func(_ context.Context, obj any) error {
				calls.add("deleted " + string(obj.(*corev1.ConfigMap).UID))
				return nil
			}})
		defer running(t, f)()
		source.keep(inState("life", "10"))
		put(t, source.Push, inState("life", "9"))
		time.Sleep(90 * time.Second)
		put(t, source.Push, inState("life", "10"))
		time.Sleep(5 * time.Minute)
		source.keep(inState("next", "12"))
		put(t, source.Push, dying(inState("former", "11")))
		time.Sleep(5 * time.Minute)

		if diff := cmp.Diff([]string{"created for 9: true", "created for 9: true", "created for 10: false", "deleted life"}, calls.all()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
	if err := framework.Confirm(t.Context()); err != nil {
		t.Errorf("outside of a framework: %v", err)
	}
}

func TestR11ADrivenFrameworkAnswersAConflictForAnObjectThatIsOld(t *testing.T) {
	for name, live := range map[string]*corev1.ConfigMap{"changed": inState("life", "10"), "gone": nil, "another life": inState("next", "10")} {
		t.Run(name, func(t *testing.T) {
			source, applied := newAhead(), &journal{}
			f := newFramework(t, framework.Config{Source: source, Driven: true}, acting(t, "r", applied, always("d")))
			source.keep(live)
			_, err := f.ReconcileObject(t.Context(), inState("life", "9"))
			if !apierrors.IsConflict(err) || len(applied.all()) > 0 {
				t.Errorf("got %v, applied %v, want a conflict", err, applied.all())
			}
			source.keep(inState("life", "10"))
			if _, err := f.ReconcileObject(t.Context(), inState("life", "10")); err != nil || len(applied.all()) != 1 {
				t.Errorf("got %v, applied %v", err, applied.all())
			}
		})
	}
}

func TestR11APlanIsAppliedToTheLiveObject(t *testing.T) {
	for name, test := range map[string]struct {
		live    *corev1.ConfigMap
		applied []string
		changed bool
	}{
		"as it was planned for": {live: inState("life", "9"), applied: []string{"r d for life/9"}},
		"newer, with one plan":  {live: inState("life", "10"), applied: []string{"r d for life/10"}},
		"being deleted":         {live: dying(inState("life", "10")), changed: true},
		"gone":                  {changed: true},
		"another life":          {live: inState("next", "10"), changed: true},
		"an older answer":       {live: inState("life", "8")},
	} {
		t.Run(name, func(t *testing.T) {
			source, applied := newAhead(), &journal{}
			f := newFramework(t, framework.Config{Source: source}, acting(t, "r", applied, always("d")))
			put(t, source.Push, inState("life", "9"))
			planned, err := f.Plan(t.Context(), keyOf("a"))
			if err != nil || source.asks() > 0 {
				t.Fatalf("planning: %v, and it must not ask", err)
			}
			source.keep(test.live)
			err = f.ApplyPlan(t.Context(), planned)
			if diff := cmp.Diff(test.applied, applied.all()); diff != "" {
				t.Errorf("applied (-want +got):\n%s", diff)
			}
			if (err == nil) != (test.applied != nil) || errors.Is(err, framework.ErrPlanChanged) != test.changed {
				t.Errorf("got %v, want a plan that changed: %t", err, test.changed)
			}
			if got := source.asks(); got != 1 {
				t.Errorf("asked %d times, want once", got)
			}
		})
	}
}
