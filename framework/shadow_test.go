package framework_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// pages is a plain resource that can be planned: it says of an object which page it wants to update.
type pages struct {
	resource
	plan func(ctx context.Context, event plan.Event, obj *corev1.ConfigMap) (page any, err error)
}

func (p *pages) Plan(ctx context.Context, event plan.Event, obj any) ([]plan.Change, error) {
	cm := obj.(*corev1.ConfigMap)
	page, err := p.plan(ctx, event, cm)
	if page == nil || err != nil {
		return nil, err
	}
	return []plan.Change{{
		Action: plan.Update,
		Object: plan.Object{Kind: "Page", Name: cm.Name},
		Fields: []plan.FieldChange{{Path: "data.page", Old: "old", New: page}},
	}}, nil
}

func pagesOf(page func(ctx context.Context, obj *corev1.ConfigMap) (any, error)) *pages {
	return &pages{resource: resource{name: "pages"}, plan: func(ctx context.Context, _ plan.Event, obj *corev1.ConfigMap) (any, error) {
		return page(ctx, obj)
	}}
}

// settled is a resource that has nothing to do.
func settled() *pages {
	return pagesOf(func(context.Context, *corev1.ConfigMap) (any, error) { return nil, nil })
}

// changing would change the page of an object whose data say so.
func changing() *pages {
	return pagesOf(func(_ context.Context, obj *corev1.ConfigMap) (any, error) {
		if page, ok := obj.Data["v2"]; ok {
			return page, nil
		}
		return nil, nil
	})
}

// besides is a router of an active set, v1, and a shadow of it, v2.
func besides(t testing.TB, active, shadow framework.Resource) *framework.ResourceRouter {
	t.Helper()
	return routerOf(t,
		framework.ResourceSetConfig{Name: "v1", Resources: []framework.Resource{active}},
		framework.ResourceSetConfig{Name: "v2", Shadow: true, Resources: []framework.Resource{shadow}})
}

// compared returns when every object that was reconciled has been compared, as far as that does not hang.
func compared() {
	time.Sleep(time.Minute) // virtual
	synctest.Wait()
}

// sentences are the summaries as people read them.
func sentences(f *framework.Framework) []string {
	var all []string
	for _, s := range f.Shadows() {
		all = append(all, s.String())
	}
	return all
}

func wantSentences(t *testing.T, f *framework.Framework, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, sentences(f)); diff != "" {
		t.Errorf("shadows (-want +got):\n%s", diff)
	}
}

func TestShadowIsComparedAfterEachReconciliation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		f := newFramework(t, framework.Config{Name: "websites", Source: source, ResourceRouter: besides(t, settled(), changing())})
		defer running(t, f)()
		for n := range 211 {
			put(t, source, configMap(fmt.Sprint("same", n)))
		}
		for _, name := range []string{"a", "b", "c"} {
			put(t, source, configMap(name, "v2", "new"))
		}
		compared()

		wantSentences(t, f, "v2 would change 3 of 214 objects")
		places := []plan.PlaceCount{{Place: plan.Place{Resource: "pages", Kind: "Page", Path: "data.page"}, Objects: 3}}
		if diff := cmp.Diff(places, f.Shadows()[0].Places); diff != "" {
			t.Errorf("places (-want +got):\n%s", diff)
		}
		var names []string
		for _, o := range f.ShadowObjects("v2") {
			names = append(names, o.Key.Name)
			want := []plan.Divergence{{
				Resource: "pages",
				Object:   plan.Object{Kind: "Page", Name: o.Key.Name},
				Shadow: &plan.Change{Action: plan.Update, Object: plan.Object{Kind: "Page", Name: o.Key.Name},
					Fields: []plan.FieldChange{{Path: "data.page", Old: "old", New: "new"}}},
			}}
			if diff := cmp.Diff(want, o.Comparison.Differences); diff != "" {
				t.Errorf("differences of %s (-want +got):\n%s", o.Key, diff)
			}
			if diff := cmp.Diff([]*plan.Comparison{o.Comparison}, f.ShadowsOf(o.Key)); diff != "" {
				t.Errorf("shadows of %s (-want +got):\n%s", o.Key, diff)
			}
		}
		if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" {
			t.Errorf("objects that differ (-want +got):\n%s", diff)
		}
		if of := f.ShadowsOf(keyOf("same0")); of != nil {
			t.Errorf("comparisons are kept of an object that is the same: %v", of)
		}
	})
}

func TestDifferenceIsForgottenWhenThePlansAgreeAndWithTheObject(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(t *testing.T, source *informer.Push)
		want   string
	}{
		"the plans agree":             {func(t *testing.T, source *informer.Push) { put(t, source, configMap("a")) }, "v2 would change 1 of 2 objects"},
		"the object is gone":          {func(t *testing.T, source *informer.Push) { remove(t, source, configMap("a")) }, "v2 would change 1 of 1 object"},
		"the shadow does not want it": {func(t *testing.T, source *informer.Push) { put(t, source, versioned("a", "v2")) }, "v2 would change 1 of 1 object"},
		"no set handles it":           {func(t *testing.T, source *informer.Push) { put(t, source, versioned("a", "v3")) }, "v2 would change 1 of 1 object"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := informer.NewPush("objects")
				of := func(versions ...string) func(any) bool {
					return func(obj any) bool { return slices.Contains(versions, obj.(*corev1.ConfigMap).Labels["version"]) }
				}
				f := newFramework(t, framework.Config{Source: source, DisableFinalizer: true, ResourceRouter: routerOf(t,
					framework.ResourceSetConfig{Name: "v1", Handles: of("", "v2"), Resources: []framework.Resource{settled()}},
					framework.ResourceSetConfig{Name: "v2", Shadow: true, Handles: of(""), Resources: []framework.Resource{changing()}})})
				defer running(t, f)()
				put(t, source, configMap("a", "v2", "new"))
				put(t, source, configMap("b", "v2", "new"))
				compared()
				wantSentences(t, f, "v2 would change 2 of 2 objects")

				tt.change(t, source)
				compared()
				wantSentences(t, f, tt.want)
				if places := f.Shadows()[0].Places; len(places) != 1 || places[0].Objects != 1 {
					t.Errorf("places of one object: %v", places)
				}
				if of := f.ShadowsOf(keyOf("a")); of != nil {
					t.Errorf("the comparison is still kept: %v", of)
				}
			})
		})
	}
}

// versioned is an object that v2 would change, with a version.
func versioned(name, version string) *corev1.ConfigMap {
	cm := configMap(name, "v2", "new")
	cm.Labels = map[string]string{"version": version}
	return cm
}

func TestObjectThatGoesWhileItIsComparedIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, release := informer.NewPush("objects"), make(chan struct{})
		slow := pagesOf(func(context.Context, *corev1.ConfigMap) (any, error) {
			<-release
			return "new", nil
		})
		f := newFramework(t, framework.Config{Source: source, ResourceRouter: besides(t, settled(), slow)})
		defer running(t, f)()
		put(t, source, configMap("a"))
		compared()
		remove(t, source, configMap("a"))
		close(release)
		compared()

		wantSentences(t, f, "v2 would change 0 of 0 objects")
	})
}

func TestShadowNeverRunsAndIsNoSecondSetOfAnObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		did := &journal{}
		noting := func(name string) *pages {
			p := settled()
			p.created = func(context.Context, any) error { did.add(name + " created"); return nil }
			p.deleted = func(context.Context, any) error { did.add(name + " deleted"); return nil }
			return p
		}
		log := &strings.Builder{}
		f := newFramework(t, framework.Config{Source: source, Logger: logTo(t, log), ResourceRouter: besides(t, noting("v1"), noting("v2"))})
		stop := running(t, f)
		put(t, source, configMap("a"))
		compared()
		remove(t, source, configMap("a"))
		compared()
		stop()

		if diff := cmp.Diff([]string{"v1 created", "v1 deleted"}, did.all()); diff != "" {
			t.Errorf("what was done (-want +got):\n%s", diff)
		}
		if strings.Contains(log.String(), `"level":"error"`) {
			t.Errorf("errors:\n%s", log)
		}
	})
}

func TestObjectsAreComparedInPlanModeToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		both := pagesOf(func(context.Context, *corev1.ConfigMap) (any, error) { return "by both", nil })
		f := newFramework(t, framework.Config{Source: source, PlanOnly: true, ResourceRouter: routerOf(t,
			framework.ResourceSetConfig{Name: "v1", Resources: []framework.Resource{both}},
			framework.ResourceSetConfig{Name: "v2", Shadow: true, Resources: []framework.Resource{both}},
			framework.ResourceSetConfig{Name: "v3", Shadow: true, Resources: []framework.Resource{settled()}})})
		defer running(t, f)()
		put(t, source, configMap("a"))
		compared()

		wantSentences(t, f, "v2 would change 0 of 1 object", "v3 would change 1 of 1 object")
	})
}

func TestWorldThatChangesBetweenThePlansIsNoDifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		var lag atomic.Bool // a store that has not seen the active set's write yet
		lag.Store(true)
		page := func(context.Context, *corev1.ConfigMap) (any, error) {
			if lag.Load() {
				return "written already", nil
			}
			return nil, nil
		}
		f := newFramework(t, framework.Config{Source: source, ResourceRouter: besides(t, pagesOf(page),
			pagesOf(func(ctx context.Context, obj *corev1.ConfigMap) (any, error) {
				lag.Store(false)
				return page(ctx, obj)
			}))})
		defer running(t, f)()
		put(t, source, configMap("a"))
		compared()

		wantSentences(t, f, "v2 would change 0 of 1 object")
	})
}

func TestNoComparisonWithoutAReconciliation(t *testing.T) {
	deleted := configMap("a", "v2", "new")
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	paused := configMap("a", "v2", "new")
	paused.Annotations = map[string]string{framework.PausedAnnotation: "true"}
	for name, tt := range map[string]struct {
		obj *corev1.ConfigMap
		err error
	}{
		"it failed":                {configMap("a", "v2", "new"), framework.Permanent(errBoom)},
		"the object is paused":     {paused, nil},
		"the object is on its way": {deleted, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := informer.NewPush("objects")
				active := settled()
				active.created = func(context.Context, any) error { return tt.err }
				f := newFramework(t, framework.Config{Source: source, ResourceRouter: besides(t, active, changing())})
				defer running(t, f)()
				put(t, source, tt.obj)
				compared()

				wantSentences(t, f, "v2 would change 0 of 0 objects")
			})
		})
	}
}
