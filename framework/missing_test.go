package framework_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

// selecting is a source with finalizers whose store may lack what is there.
type selecting struct {
	*holding
	live     atomic.Pointer[corev1.ConfigMap]
	selected atomic.Bool
}

func (s *selecting) GetLive(context.Context, informer.Key) (obj any, exists bool, err error) {
	live := s.live.Load()
	return live.DeepCopy(), live != nil, nil
}

func (s *selecting) SelectsLive(context.Context, any) (bool, error) { return s.selected.Load(), nil }

// newSelecting returns one that notes the removal of finalizers.
func newSelecting(calls *journal) *selecting {
	return &selecting{holding: &holding{Push: informer.NewPush("objects"), remove: func(*corev1.ConfigMap) error {
		calls.add("finalizer removed")
		return nil
	}}}
}

func TestR5AFinalizerStaysOnAnObjectThatIsStillSelectedWhenAListLacksIt(t *testing.T) {
	for name, test := range map[string]struct {
		selected, finalizer bool
		want                []string
	}{
		"still selected":       {selected: true, finalizer: true, want: []string{"created a", "created a"}},
		"no longer selected":   {selected: false, finalizer: true, want: []string{"created a", "finalizer removed"}},
		"without finalizers":   {selected: true, want: []string{"created a", "created a"}},
		"deleted after all":    {selected: true, want: []string{"created a", "deleted a"}},
		"left, and unfinished": {selected: false, want: []string{"created a"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := &journal{}
				source := newSelecting(calls)
				source.selected.Store(test.selected)
				f := newFramework(t, framework.Config{Source: source, DisableFinalizer: !test.finalizer, BackOffFactory: everyMinute}, noting(calls))
				stop := running(t, f)
				object := configMap("a")
				if test.finalizer {
					object.Finalizers = []string{f.Identity().Finalizer()}
				}
				source.live.Store(object)
				put(t, source.Push, object.DeepCopy())
				synctest.Wait()
				remove(t, source.Push, object.DeepCopy()) // the list lacks it
				time.Sleep(time.Hour + 30*time.Second)
				switch name {
				case "deleted after all":
					source.live.Store(nil)
				case "still selected", "without finalizers":
					put(t, source.Push, object.DeepCopy())
				}
				time.Sleep(time.Hour)
				stop()

				if diff := cmp.Diff(test.want, calls.all()); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestADeletionThatFailsForGoodLeavesItsNameToTheNextObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, calls, log := informer.NewPush("objects"), &journal{}, &strings.Builder{}
		f := newFramework(t, framework.Config{Source: source, Logger: logTo(t, log)}, &resource{name: "r",
			created: func(_ context.Context, obj any) error {
				calls.add("created " + string(obj.(*corev1.ConfigMap).UID))
				return nil
			},
			deleted: func(_ context.Context, obj any) error {
				calls.add("deleted " + string(obj.(*corev1.ConfigMap).UID))
				if obj.(*corev1.ConfigMap).UID == "old" {
					return framework.Permanent(errBoom)
				}
				return nil
			}})
		stop := running(t, f)
		old, young, youngest := configMap("a"), configMap("a"), configMap("a")
		old.UID, young.UID, youngest.UID = "old", "young", "youngest"
		put(t, source, old)
		synctest.Wait()
		remove(t, source, old)
		time.Sleep(24 * time.Hour)
		f.Enqueue(keyOf("a")) // as long as nobody has its name, it is tried at each cause
		time.Sleep(24 * time.Hour)
		put(t, source, young)
		time.Sleep(24 * time.Hour)
		remove(t, source, young)
		time.Sleep(24 * time.Hour)
		put(t, source, youngest)
		time.Sleep(24 * time.Hour)
		stop()

		want := []string{"created old", "deleted old", "deleted old", "deleted old", "created young", "deleted young", "created youngest"}
		if diff := cmp.Diff(want, calls.all()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if !strings.Contains(log.String(), "given up") {
			t.Errorf("the log does not say that the deletion was given up:\n%s", log)
		}
	})
}

// relabeling is a source whose objects have another version once they have the finalizer.
type relabeling struct {
	*holding
	version string
}

func (r *relabeling) AddFinalizer(ctx context.Context, obj any, finalizer string) (any, error) {
	obj.(*corev1.ConfigMap).Labels = map[string]string{"version": r.version}
	return r.holding.AddFinalizer(ctx, obj, finalizer)
}

func TestR6TheSetIsThatOfTheObjectItIsRunWith(t *testing.T) {
	for version, want := range map[string][]string{
		"v2":   {"v2 runs with v2"},
		"none": {"finalizer removed"},
	} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := &journal{}
				source := &relabeling{holding: newSelecting(calls).holding, version: version}
				var sets []framework.ResourceSetConfig
				for _, v := range []string{"v1", "v2"} {
					sets = append(sets, framework.ResourceSetConfig{Handles: framework.HandlesLabel("version", v), Resources: []framework.Resource{
						&resource{name: "r", created: func(_ context.Context, obj any) error {
							calls.add(v + " runs with " + obj.(*corev1.ConfigMap).Labels["version"])
							return nil
						}},
					}})
				}
				f := newFramework(t, framework.Config{Source: source, ResourceRouter: routerOf(t, sets...), Workers: 1})
				stop := running(t, f)
				seen := configMap("a")
				seen.Labels = map[string]string{"version": "v1"}
				put(t, source.Push, seen)
				time.Sleep(time.Hour)
				stop()

				if got := calls.all(); len(got) == 0 || got[0] != want[0] {
					t.Errorf("got %q, want %q first", got, want)
				}
				for _, call := range calls.all() {
					if call != want[0] {
						t.Errorf("got %q too", call)
					}
				}
			})
		})
	}
}
