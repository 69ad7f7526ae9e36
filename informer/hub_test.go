package informer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/informer"
)

// configMap is an object as it comes from a server.
func configMap(namespace, name, uid, version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(uid), ResourceVersion: version,
	}}
}

func itemOf(obj *corev1.ConfigMap) informer.Item {
	return informer.Item{
		Key:     informer.Key{Namespace: obj.Namespace, Name: obj.Name},
		Object:  obj,
		Version: obj.ResourceVersion,
	}
}

// line writes an event as text: "added a/x 1", with "backlog" at the end if it is.
func line(e informer.Event) string {
	text := fmt.Sprintf("%s %s %s", e.Type, e.Key, version(e.Object))
	if e.Old != nil {
		text += " was " + version(e.Old)
	}
	if e.Backlog {
		text += " backlog"
	}
	return text
}

func version(obj any) string {
	if o, ok := obj.(metav1.Object); ok {
		return o.GetResourceVersion()
	}
	return fmt.Sprint(obj)
}

// recorder collects events as lines.
type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (r *recorder) handle(e informer.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line(e))
}

// take returns the lines since the last call.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines
	r.lines = nil
	return lines
}

func TestFeedTurnsChangesIntoEvents(t *testing.T) {
	x1, x2 := configMap("a", "x", "u1", "1"), configMap("a", "x", "u1", "2")
	reborn := configMap("a", "x", "u2", "7")
	y1, z1 := configMap("a", "y", "u3", "3"), configMap("b", "z", "u4", "4")

	for name, test := range map[string]struct {
		do   func(f *informer.Feed)
		want []string
	}{
		"the first listing is backlog": {
			do:   func(f *informer.Feed) { f.Replace("", []informer.Item{itemOf(x1)}) },
			want: []string{"added a/x 1 backlog"},
		},
		"a change after the first listing is fresh": {
			do: func(f *informer.Feed) {
				f.Replace("", []informer.Item{itemOf(x1)})
				f.Set(itemOf(x2))
				f.Set(itemOf(y1))
				f.Delete(itemOf(y1).Key, nil)
			},
			want: []string{"added a/x 1 backlog", "updated a/x 2 was 1", "added a/y 3", "deleted a/y 3"},
		},
		"the same version again is no event": {
			do: func(f *informer.Feed) {
				f.Set(itemOf(x1))
				f.Set(itemOf(x1.DeepCopy()))
			},
			want: []string{"added a/x 1"},
		},
		"without versions every set is an event": {
			do: func(f *informer.Feed) {
				f.Set(informer.Item{Key: informer.Key{Name: "n"}, Object: 1})
				f.Set(informer.Item{Key: informer.Key{Name: "n"}, Object: 1})
			},
			want: []string{"added /n 1", "updated /n 1 was 1"},
		},
		"another uid is a deletion and a new object": {
			do: func(f *informer.Feed) {
				f.Set(itemOf(x1))
				f.Set(itemOf(reborn))
			},
			want: []string{"added a/x 1", "deleted a/x 1", "added a/x 7"},
		},
		"a later listing announces the differences only": {
			do: func(f *informer.Feed) {
				f.Replace("", []informer.Item{itemOf(x1), itemOf(y1)})
				f.Replace("", []informer.Item{itemOf(x2), itemOf(z1)})
				f.Replace("", []informer.Item{itemOf(x2), itemOf(z1)})
			},
			want: []string{
				"added a/x 1 backlog", "added a/y 3 backlog",
				"deleted a/y 3", "updated a/x 2 was 1", "added b/z 4",
			},
		},
		"an object reborn between two listings is deleted first": {
			do: func(f *informer.Feed) {
				f.Replace("", []informer.Item{itemOf(x1)})
				f.Replace("", []informer.Item{itemOf(reborn)})
			},
			want: []string{"added a/x 1 backlog", "deleted a/x 1", "added a/x 7"},
		},
		"a deletion carries the last state that is given": {
			do: func(f *informer.Feed) {
				f.Set(itemOf(x1))
				f.Delete(itemOf(x1).Key, x2)
				f.Delete(itemOf(x1).Key, x2)
			},
			want: []string{"added a/x 1", "deleted a/x 2"},
		},
		"an announcement is an update of the backlog": {
			do: func(f *informer.Feed) {
				f.Set(itemOf(x1))
				f.AnnounceAll()
			},
			want: []string{"added a/x 1", "updated a/x 1 was 1 backlog"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			hub, feed := informer.NewHub(informer.HubConfig{Name: "test"})
			var events recorder
			hub.Subscribe(events.handle)
			test.do(feed)
			if diff := cmp.Diff(test.want, events.take()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestListingOfOneNamespaceLeavesTheOthersAlone(t *testing.T) {
	hub, feed := informer.NewHub(informer.HubConfig{Name: "test", Namespaces: []string{"a", "b"}})
	var events recorder
	hub.Subscribe(events.handle)

	feed.Replace("a", []informer.Item{itemOf(configMap("a", "x", "u1", "1"))})
	if hub.Status().Synced {
		t.Error("synced before namespace b was listed")
	}
	feed.Replace("b", []informer.Item{itemOf(configMap("b", "y", "u2", "2"))})
	if !hub.Status().Synced {
		t.Error("not synced although both namespaces were listed")
	}
	feed.Replace("a", nil)

	want := []string{"added a/x 1 backlog", "added b/y 2 backlog", "deleted a/x 1"}
	if diff := cmp.Diff(want, events.take()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestSubscribeReplaysAndUnsubscribeEnds(t *testing.T) {
	hub, feed := informer.NewHub(informer.HubConfig{Name: "test"})
	feed.Set(itemOf(configMap("a", "x", "u1", "1")))

	var first, second recorder
	unsubscribe := hub.Subscribe(first.handle)
	hub.Subscribe(second.handle)
	feed.Set(itemOf(configMap("a", "x", "u1", "2")))
	unsubscribe()
	unsubscribe()
	feed.Set(itemOf(configMap("a", "x", "u1", "3")))

	if diff := cmp.Diff([]string{"added a/x 1 backlog", "updated a/x 2 was 1"}, first.take()); diff != "" {
		t.Errorf("ended subscription (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"added a/x 1 backlog", "updated a/x 2 was 1", "updated a/x 3 was 2"}, second.take()); diff != "" {
		t.Errorf("other subscription (-want +got):\n%s", diff)
	}
}

func TestAKeptDeletionIsReplayedUntilItIsForgottenOrTheKeyIsSetAgain(t *testing.T) {
	x1, gone, reborn := configMap("a", "x", "u1", "1"), configMap("a", "x", "u1", "2"), configMap("a", "x", "u2", "3")
	key := itemOf(x1).Key
	for name, test := range map[string]struct {
		do        func(f *informer.Feed)
		seen      []string
		replayed  []string
		forgotten bool
	}{
		"of an object that was stored": {
			do:        func(f *informer.Feed) { f.Set(itemOf(x1)); f.KeepDeleted(key, gone) },
			seen:      []string{"added a/x 1", "deleted a/x 2"},
			replayed:  []string{"deleted a/x 2 backlog"},
			forgotten: true,
		},
		"of an object that was never seen": {
			do:        func(f *informer.Feed) { f.KeepDeleted(key, gone) },
			seen:      []string{"deleted a/x 2"},
			replayed:  []string{"deleted a/x 2 backlog"},
			forgotten: true,
		},
		"forgotten": {
			do:   func(f *informer.Feed) { f.KeepDeleted(key, gone); f.Forget(key) },
			seen: []string{"deleted a/x 2"},
		},
		"the key is set again": {
			do:       func(f *informer.Feed) { f.KeepDeleted(key, gone); f.Set(itemOf(reborn)) },
			seen:     []string{"deleted a/x 2", "added a/x 3"},
			replayed: []string{"added a/x 3 backlog"},
		},
		"it outlives a listing without the key": {
			do:        func(f *informer.Feed) { f.KeepDeleted(key, gone); f.Replace("", nil) },
			seen:      []string{"deleted a/x 2"},
			replayed:  []string{"deleted a/x 2 backlog"},
			forgotten: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			hub, feed := informer.NewHub(informer.HubConfig{Name: "test"})
			var events, late recorder
			hub.Subscribe(events.handle)
			test.do(feed)
			hub.Subscribe(late.handle)
			if diff := cmp.Diff(test.seen, events.take()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.replayed, late.take()); diff != "" {
				t.Errorf("events of a later subscriber (-want +got):\n%s", diff)
			}
			if got := feed.Forget(key); got != test.forgotten {
				t.Errorf("Forget = %t, want %t", got, test.forgotten)
			}
		})
	}
}

// page embeds something that copies it.
type page struct {
	stapler
	lines []string
}

type stapler struct{}

func (stapler) CopyOuter(outer any) any { return &page{lines: slices.Clone(outer.(*page).lines)} }

func TestWhatAnObjectEmbedsCanCopyIt(t *testing.T) {
	original := &page{lines: []string{"a"}}
	copied := informer.Copy(original).(*page)
	copied.lines[0] = "b"
	if original.lines[0] != "a" {
		t.Error("the copy shares memory with the original")
	}
}

func TestHandlerSeesTheStoreAfterTheChange(t *testing.T) {
	hub, feed := informer.NewHub(informer.HubConfig{Name: "test"})
	var seen []string
	hub.Subscribe(func(e informer.Event) {
		obj, exists, err := hub.Get(e.Key)
		seen = append(seen, fmt.Sprintf("%s: exists=%t err=%v objects=%d", e.Type, exists, err, hub.Status().Objects))
		if exists && version(obj) != version(e.Object) {
			t.Errorf("Get gives version %s in the event of version %s", version(obj), version(e.Object))
		}
	})
	feed.Set(itemOf(configMap("a", "x", "u1", "1")))
	feed.Set(itemOf(configMap("a", "x", "u1", "2")))
	feed.Delete(informer.Key{Namespace: "a", Name: "x"}, nil)

	want := []string{
		"added: exists=true err=<nil> objects=1",
		"updated: exists=true err=<nil> objects=1",
		"deleted: exists=false err=<nil> objects=0",
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestObjectsThatAreGivenBelongToTheCaller(t *testing.T) {
	hub, feed := informer.NewHub(informer.HubConfig{
		Name:     "test",
		Indexers: map[string]informer.IndexFunc{"all": func(any) []string { return []string{""} }},
	})
	obj := configMap("a", "x", "u1", "1")
	obj.Data = map[string]string{"k": "v"}
	feed.Set(itemOf(obj))

	spoil := func(given any) { given.(*corev1.ConfigMap).Data["k"] = "spoiled" }
	got, _, _ := hub.Get(itemOf(obj).Key)
	spoil(got)
	spoil(hub.List()[0])
	indexed, err := hub.ByIndex("all", "")
	if err != nil {
		t.Fatal(err)
	}
	spoil(indexed[0])

	got, _, _ = hub.Get(itemOf(obj).Key)
	if diff := cmp.Diff(map[string]string{"k": "v"}, got.(*corev1.ConfigMap).Data); diff != "" {
		t.Errorf("stored data (-want +got):\n%s", diff)
	}
}

func TestAnObjectThatCanNotBeReadIsAnErrorOfItsKeyOnly(t *testing.T) {
	broken := errors.New("broken")
	hub, feed := informer.NewHub(informer.HubConfig{
		Name: "test",
		Copy: func(obj any) (any, error) {
			if obj == "bad" {
				return nil, broken
			}
			return strings.ToUpper(obj.(string)), nil
		},
	})
	feed.Set(informer.Item{Key: informer.Key{Name: "one"}, Object: "bad"})
	feed.Set(informer.Item{Key: informer.Key{Name: "two"}, Object: "good"})

	if obj, exists, err := hub.Get(informer.Key{Name: "one"}); obj != nil || !exists || !errors.Is(err, broken) {
		t.Errorf("Get = %v, %t, %v; want nil, true, %v", obj, exists, err, broken)
	}
	if diff := cmp.Diff([]any{"GOOD"}, hub.List()); diff != "" {
		t.Errorf("List (-want +got):\n%s", diff)
	}
}

func TestIndexFollowsItsObjects(t *testing.T) {
	hub, feed := informer.NewHub(informer.HubConfig{
		Name: "test",
		Indexers: map[string]informer.IndexFunc{
			"owner": func(obj any) []string { return strings.Fields(obj.(string)) },
		},
	})
	find := func(value string) []string {
		t.Helper()
		objs, err := hub.ByIndex("owner", value)
		if err != nil {
			t.Fatal(err)
		}
		found := []string{}
		for _, obj := range objs {
			found = append(found, obj.(string))
		}
		slices.Sort(found)
		return found
	}
	set := func(name, obj string) { feed.Set(informer.Item{Key: informer.Key{Name: name}, Object: obj}) }

	set("1", "anna bert")
	set("2", "bert")
	if diff := cmp.Diff([]string{"anna bert", "bert"}, find("bert")); diff != "" {
		t.Errorf("bert (-want +got):\n%s", diff)
	}
	set("1", "anna")
	if diff := cmp.Diff([]string{"bert"}, find("bert")); diff != "" {
		t.Errorf("bert after a change (-want +got):\n%s", diff)
	}
	feed.Delete(informer.Key{Name: "2"}, nil)
	if diff := cmp.Diff([]string{}, find("bert")); diff != "" {
		t.Errorf("bert after the deletion (-want +got):\n%s", diff)
	}
	for i := range 100 {
		set(fmt.Sprint("many", i), "carl")
	}
	if got := len(find("carl")); got != 100 {
		t.Errorf("carl owns %d objects, want 100", got)
	}
	for i := range 99 {
		feed.Delete(informer.Key{Name: fmt.Sprint("many", i)}, nil)
	}
	if got := len(find("carl")); got != 1 {
		t.Errorf("carl owns %d objects, want 1", got)
	}
	if _, err := hub.ByIndex("color", "red"); err == nil || !strings.Contains(err.Error(), `no index "color"`) {
		t.Errorf("unknown index: err = %v", err)
	}
}

func TestStatusIsAsFreshAsTheStalestPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, feed := informer.NewHub(informer.HubConfig{Name: "test", Namespaces: []string{"a", "b"}})
		start := time.Now()
		feed.Contact("a")
		if got := hub.Status(); !got.LastContact.IsZero() {
			t.Errorf("LastContact = %v before b was heard of", got.LastContact)
		}
		feed.Replace("b", nil)
		time.Sleep(time.Minute)
		feed.Replace("a", nil)
		if got := hub.Status(); !got.LastContact.Equal(start) || !got.Synced || got.LastError != nil {
			t.Errorf("Status = %+v, want contact at the start, synced, no error", got)
		}

		outage := errors.New("no route")
		feed.Fail("b", outage)
		feed.Contact("a")
		if got := hub.Status(); !errors.Is(got.LastError, outage) || !strings.Contains(got.LastError.Error(), "namespace b") || !got.Synced {
			t.Errorf("Status = %+v, want the outage of b, still synced", got)
		}
		feed.Contact("b")
		if got := hub.Status(); got.LastError != nil || !got.LastContact.Equal(start.Add(time.Minute)) {
			t.Errorf("Status = %+v, want no error and contact a minute after the start", got)
		}
	})
}

func TestWaitForSyncEndsWithTheFirstListingOrTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, feed := informer.NewHub(informer.HubConfig{Name: "test"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := hub.WaitForSync(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v, want the context's", err)
		}
		synced := make(chan error, 1)
		go func() { synced <- hub.WaitForSync(t.Context()) }()
		synctest.Wait()
		select {
		case err := <-synced:
			t.Errorf("synced before the first listing, with error %v", err)
		default:
		}
		feed.Replace("", nil)
		if err := <-synced; err != nil {
			t.Error(err)
		}
		if err := hub.WaitForSync(ctx); err != nil {
			t.Errorf("a synced source is synced whatever the context: %v", err)
		}
	})
}

func TestRunIsJoinedAndCanBeRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, feed := informer.NewHub(informer.HubConfig{Name: "test"})
		var starts, running atomic.Int32
		work := func(ctx context.Context) {
			starts.Add(1)
			running.Add(1)
			<-ctx.Done()
			time.Sleep(time.Second)
			running.Add(-1)
		}
		run := func() (stop func(), done <-chan struct{}) {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				feed.Run(ctx, work)
			}()
			synctest.Wait()
			return cancel, ended
		}
		expect := func(when string, wantStarts, wantRunning int32) {
			t.Helper()
			synctest.Wait()
			if s, r := starts.Load(), running.Load(); s != wantStarts || r != wantRunning {
				t.Fatalf("%s: %d starts and %d running, want %d and %d", when, s, r, wantStarts, wantRunning)
			}
		}

		stop1, done1 := run()
		stop2, done2 := run()
		expect("two calls", 1, 1)
		stop1()
		<-done1
		expect("the first call has ended", 1, 1)
		stop2()
		expect("the work is ending", 1, 1)
		stop3, done3 := run()
		stop4, done4 := run()
		expect("two calls while it is ending", 1, 1)
		stop4()
		<-done4
		expect("one of them gave up", 1, 1)
		<-done2
		expect("the work has ended and begun anew", 2, 1)
		stop3()
		<-done3
		expect("all calls have ended", 2, 0)
	})
}
