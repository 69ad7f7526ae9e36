package framework_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

// removing is a source whose objects stay until they are removed.
type removing struct {
	*informer.Push
	remove func(obj *corev1.ConfigMap) error
}

func (r *removing) Remove(_ context.Context, obj any) error { return r.remove(obj.(*corev1.ConfigMap)) }

// holding is a source with finalizers.
type holding struct {
	*informer.Push
	remove func(obj *corev1.ConfigMap) error
}

func (h *holding) AddFinalizer(_ context.Context, obj any, finalizer string) (any, error) {
	o := obj.(*corev1.ConfigMap)
	o.Finalizers = append(o.Finalizers, finalizer)
	return o, h.Update(o.DeepCopy())
}

func (h *holding) RemoveFinalizer(_ context.Context, obj any, _ string) error {
	return h.remove(obj.(*corev1.ConfigMap))
}

// deleting is a ConfigMap whose deletion has been asked for.
func deleting(name string, keyValues ...string) *corev1.ConfigMap {
	obj := configMap(name, keyValues...)
	obj.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	return obj
}

func TestR5ObjectIsRemovedFromItsSourceOnceItsDeletionHasBeenProcessed(t *testing.T) {
	for name, test := range map[string]struct {
		config framework.Config
		last   *corev1.ConfigMap
		gone   bool
		want   []string
	}{
		"deletion asked for": {last: deleting("a"), want: []string{"delete", "remove"}},
		"gone already":       {last: configMap("a"), gone: true, want: []string{"created", "delete", "remove"}},
		"with finalizers disabled": {
			config: framework.Config{DisableFinalizer: true}, last: deleting("a"), want: []string{"delete"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := &journal{}
				source := &removing{Push: informer.NewPush("objects")}
				source.remove = func(obj *corev1.ConfigMap) error {
					calls.add("remove")
					if test.gone {
						return nil
					}
					return source.Delete(obj)
				}
				test.config.Source = source
				f := newFramework(t, test.config, &resource{
					name:    "r",
					created: func(context.Context, any) error { calls.add("created"); return nil },
					deleted: func(context.Context, any) error { calls.add("delete"); return nil },
				})
				defer running(t, f)()
				put(t, source.Push, test.last)
				synctest.Wait()
				if test.gone {
					remove(t, source.Push, test.last)
				}
				time.Sleep(24 * time.Hour)

				if diff := cmp.Diff(test.want, calls.all()); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestR5LettingGoIsRetriedWithoutProcessingTheDeletionAgain(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "entries"}, "a", errors.New("changed"))
	for name, failure := range map[string]error{"after a failure": errBoom, "after a conflict": conflict} {
		for kind, newSource := range map[string]func(*informer.Push, func(*corev1.ConfigMap) error) informer.Source{
			"finalizer": func(p *informer.Push, f func(*corev1.ConfigMap) error) informer.Source { return &holding{p, f} },
			"removal":   func(p *informer.Push, f func(*corev1.ConfigMap) error) informer.Source { return &removing{p, f} },
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					push, calls := informer.NewPush("objects"), &journal{}
					var tries atomic.Int32
					source := newSource(push, func(obj *corev1.ConfigMap) error {
						calls.add("let go")
						if tries.Add(1) == 1 {
							return failure
						}
						return push.Delete(obj)
					})
					f := newFramework(t, framework.Config{Source: source, BackOffFactory: everyMinute, Finalizer: "example.com/f"},
						&resource{name: "r", deleted: func(context.Context, any) error { calls.add("delete"); return nil }})
					defer running(t, f)()
					obj := deleting("a")
					obj.Finalizers = []string{"example.com/f"}
					if kind == "removal" {
						obj.Finalizers = nil
					}
					put(t, push, obj)
					time.Sleep(24 * time.Hour)

					if diff := cmp.Diff([]string{"delete", "let go", "let go"}, calls.all()); diff != "" {
						t.Errorf("calls (-want +got):\n%s", diff)
					}
				})
			})
		}
	}
}

func TestADeletionThatIsTakenBackIsReconciledAgain(t *testing.T) {
	for name, test := range map[string]struct {
		life string
		// live is what is kept when the source shows version 12, which nobody deletes.
		live *corev1.ConfigMap
		want []string
	}{
		"taken back":                         {"life", inState("life", "12"), []string{"created 12", "deleted 14"}},
		"taken back, and changed":            {"life", inState("life", "13"), []string{"created 12", "deleted 14"}},
		"made anew, where there are no UIDs": {"", inState("", "12"), []string{"created 12", "deleted 14"}},
		"its end is late":                    {"life", nil, nil},
		"its end is late, without UIDs":      {"", nil, nil},
		"it is still being deleted":          {"life", dying(inState("life", "13")), nil},
		"there is another one already":       {"life", inState("next", "13"), nil},
		"an older answer":                    {"life", inState("life", "10"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, calls := newAhead(), &journal{}
				noting := func(did string) func(context.Context, any) error {
					return func(_ context.Context, obj any) error {
						calls.add(did + " " + obj.(*corev1.ConfigMap).ResourceVersion)
						return nil
					}
				}
				f := newFramework(t, framework.Config{Source: source, BackOffFactory: everyMinute},
					&resource{name: "r", created: noting("created"), deleted: noting("deleted")})
				defer running(t, f)()
				show := func(stored, live *corev1.ConfigMap) {
					source.keep(live)
					put(t, source.Push, stored.DeepCopy())
					time.Sleep(5 * time.Minute)
				}
				for _, obj := range []*corev1.ConfigMap{inState(test.life, "10"), dying(inState(test.life, "11"))} {
					show(obj, obj)
				}
				show(inState(test.life, "12"), test.live)
				if last := dying(inState(test.life, "14")); test.want != nil {
					show(last, last)
				}

				if diff := cmp.Diff(append([]string{"created 10", "deleted 11"}, test.want...), calls.all()); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// unreadable is a source whose objects can't be read.
type unreadable struct{ *informer.Push }

func (unreadable) Get(informer.Key) (any, bool, error) { return nil, true, errBoom }

func TestObjectThatCanNotBeReadIsTriedAgainAtItsNextChangeOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := unreadable{informer.NewPush("objects")}
		log := &strings.Builder{}
		f := newFramework(t, framework.Config{Source: source, Logger: logTo(t, log)}, &resource{name: "r"})
		stop := running(t, f)
		put(t, source.Push, configMap("a", "v", "1"))
		time.Sleep(24 * time.Hour)
		put(t, source.Push, configMap("a", "v", "2"))
		time.Sleep(24 * time.Hour)

		stop()

		failures := strings.Count(log.String(), "reconciliation failed")
		if failures != 2 || strings.Count(log.String(), "at the next change") != 2 || !strings.Contains(log.String(), "boom") {
			t.Errorf("%d failures, want 2, one for each change:\n%s", failures, log)
		}
	})
}

func TestR16AnyNameMakesAFinalizerWhereOneIsUsed(t *testing.T) {
	never := func(*corev1.ConfigMap) error { return nil }
	for _, test := range []struct {
		source informer.Source
		want   string
	}{
		{&removing{informer.NewPush("bucket x"), never}, ""},
		{&holding{informer.NewPush("bucket x"), never}, "operatorkit.io/v1_o_bucket-x_afd4b72c15"},
	} {
		f := newFramework(t, framework.Config{Operator: "o", Source: test.source}, &resource{name: "r"})
		if f.Finalizer() != test.want {
			t.Errorf("got %q, want %q", f.Finalizer(), test.want)
		}
	}
}
