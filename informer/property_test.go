package informer_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/informer"
)

// mirror is a subscriber that rebuilds the store from events alone, and reports inconsistent
// events.
type mirror struct {
	t       *rapid.T
	objects map[informer.Key]*corev1.ConfigMap
	deleted int
}

func (m *mirror) handle(e informer.Event) {
	now := e.Object.(*corev1.ConfigMap)
	old, known := m.objects[e.Key]
	switch e.Type {
	case informer.Added:
		if known {
			m.t.Fatalf("%s added twice", e.Key)
		}
		m.objects[e.Key] = now
	case informer.Updated:
		if !known || e.Old != any(old) || now.UID != old.UID {
			m.t.Fatalf("%s updated from %v, known was %v", e.Key, e.Old, old)
		}
		m.objects[e.Key] = now
	case informer.Deleted:
		if !known || now.UID != old.UID {
			m.t.Fatalf("%s deleted, known was %v", e.Key, old)
		}
		delete(m.objects, e.Key)
		m.deleted++
	}
}

// world is the model of the other side: what exists, and how many objects have ceased to exist.
type world struct {
	objects map[informer.Key]*corev1.ConfigMap
	clock   int
	gone    int
}

func (w *world) tick() string {
	w.clock++
	return fmt.Sprint(w.clock)
}

func (w *world) create(key informer.Key) {
	w.remove(key)
	now := w.tick()
	w.objects[key] = configMap(key.Namespace, key.Name, "uid"+now, now)
}

func (w *world) change(key informer.Key) {
	old, ok := w.objects[key]
	if !ok {
		return
	}
	now := old.DeepCopy()
	now.ResourceVersion = w.tick()
	w.objects[key] = now
}

func (w *world) remove(key informer.Key) {
	if _, ok := w.objects[key]; ok {
		delete(w.objects, key)
		w.gone++
	}
}

func (w *world) items(namespace string) []informer.Item {
	var items []informer.Item
	for key, obj := range w.objects {
		if namespace == "" || key.Namespace == namespace {
			items = append(items, itemOf(obj))
		}
	}
	return items
}

// TestEventsReplayedAreTheStore holds for any sequence of changes, watched or found by a later
// listing: the events yield the store, and each object that is gone was deleted once.
func TestEventsReplayedAreTheStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		namespaces := []string{"a", "b"}
		hub, feed := informer.NewHub(informer.HubConfig{
			Name:       "test",
			Namespaces: namespaces,
			Indexers: map[string]informer.IndexFunc{
				"namespace": func(obj any) []string { return []string{obj.(*corev1.ConfigMap).Namespace} },
			},
		})
		w := &world{objects: map[informer.Key]*corev1.ConfigMap{}}
		early := &mirror{t: t, objects: map[informer.Key]*corev1.ConfigMap{}}
		hub.Subscribe(early.handle)

		keys := rapid.Custom(func(t *rapid.T) informer.Key {
			return informer.Key{
				Namespace: rapid.SampledFrom(namespaces).Draw(t, "namespace"),
				Name:      rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "name"),
			}
		})
		// A known object that is gone must be announced. An object that existed only without a
		// watch can't be.
		unseen := 0
		watched := rapid.Bool()
		mutate := func(do func(informer.Key)) func(*rapid.T) {
			return func(t *rapid.T) {
				key := keys.Draw(t, "key")
				old := w.objects[key]
				known, exists, _ := hub.Get(key)
				do(key)
				now := w.objects[key]
				isGone := old != nil && (now == nil || now.UID != old.UID)
				if isGone && (!exists || known.(*corev1.ConfigMap).UID != old.UID) {
					unseen++
				}
				switch {
				case !watched.Draw(t, "watched"):
				case now != nil:
					feed.Set(itemOf(now))
				default:
					feed.Delete(key, nil)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"create": mutate(w.create),
			"change": mutate(w.change),
			"remove": mutate(w.remove),
			"list": func(t *rapid.T) {
				namespace := rapid.SampledFrom(namespaces).Draw(t, "namespace")
				feed.Replace(namespace, w.items(namespace))
			},
			"resync": func(*rapid.T) { feed.AnnounceAll() },
		})
		for _, namespace := range namespaces {
			feed.Replace(namespace, w.items(namespace))
		}
		late := &mirror{t: t, objects: map[informer.Key]*corev1.ConfigMap{}}
		hub.Subscribe(late.handle)

		stored := map[informer.Key]*corev1.ConfigMap{}
		for _, obj := range hub.List() {
			stored[itemOf(obj.(*corev1.ConfigMap)).Key] = obj.(*corev1.ConfigMap)
		}
		for name, got := range map[string]map[informer.Key]*corev1.ConfigMap{
			"store": stored, "subscriber from the start": early.objects, "late subscriber": late.objects,
		} {
			if diff := cmp.Diff(w.objects, got); diff != "" {
				t.Fatalf("%s (-world +got):\n%s", name, diff)
			}
		}
		if want := w.gone - unseen; early.deleted != want {
			t.Fatalf("%d deletions announced, want %d", early.deleted, want)
		}
		for _, namespace := range namespaces {
			indexed, err := hub.ByIndex("namespace", namespace)
			if err != nil || len(indexed) != len(w.items(namespace)) {
				t.Fatalf("index of namespace %s has %d objects, %v; want %d", namespace, len(indexed), err, len(w.items(namespace)))
			}
		}
	})
}
