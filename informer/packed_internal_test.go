package informer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/giantswarm/micrologger/microloggertest"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// settings returns a ConfigMap with that many entries.
func settings(name string, entries int) *corev1.ConfigMap {
	c := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: "u-1", ResourceVersion: "7", Labels: map[string]string{"app": name, "tier": ""},
			Annotations: map[string]string{"note": "ü"}, Finalizers: []string{"example.com/f"},
		},
	}
	for i := range entries {
		if c.Data == nil {
			c.Data = map[string]string{}
		}
		c.Data[fmt.Sprintf("key-%d", i)] = name + strings.Repeat("v", i*i)
	}
	return c
}

func TestWhatIsPackedComesBackAsItWas(t *testing.T) {
	secret := func(data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Type: corev1.SecretTypeOpaque, Data: data, Immutable: new(true)}
	}
	long := settings("long", minPacked)
	long.BinaryData = map[string][]byte{"b": bytes.Repeat([]byte{0, 200}, 100_000), "empty": {}}
	bare := settings("bare", minPacked)
	bare.Labels, bare.Annotations = nil, map[string]string{}
	manyKeys := settings("many", 2*maxInternedContent/len("key-0"))
	for name, test := range map[string]struct {
		object client.Object
		packed bool
	}{
		"a ConfigMap":                   {settings("a", minPacked), true},
		"one of many keys":              {manyKeys, true},
		"one with binary data":          {long, true},
		"one without labels":            {bare, true},
		"one with few entries":          {settings("a", minPacked-1), false},
		"one without entries":           {settings("a", 0), false},
		"a Secret":                      {secret(map[string][]byte{"a": []byte("b"), "c": {}, "d": {0xff, 0}, "e": []byte("f")}), true},
		"a Secret with nothing in them": {secret(map[string][]byte{"a": nil, "c": nil, "d": nil, "e": nil}), false},
		"metadata":                      {&metav1.PartialObjectMetadata{ObjectMeta: settings("a", 0).ObjectMeta}, false},
		"an object of another type":     {&appsv1.Deployment{ObjectMeta: settings("a", 0).ObjectMeta}, false},
		"an unstructured one":           {&unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"a": "b"}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			want := test.object.DeepCopyObject()
			in := newInterner()
			held := in.pack(test.object)
			if _, packed := held.(*packed); packed != test.packed {
				t.Fatalf("it is held as a %T", held)
			}
			if diff := cmp.Diff(want, whole(held)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if uid(held) != test.object.GetUID() {
				t.Errorf("its UID is %q", uid(held))
			}
		})
	}
}

func TestWhatIsPackedIsHandedOutAsPrivateCopies(t *testing.T) {
	held := newInterner().pack(settings("a", minPacked)).(*packed)
	mine := held.object().(*corev1.ConfigMap)
	mine.Data["key-0"], mine.Labels["app"], mine.Finalizers[0] = "changed", "changed", "changed"
	delete(mine.Annotations, "note")
	if diff := cmp.Diff(settings("a", minPacked), held.object()); diff != "" {
		t.Errorf("another copy (-want +got):\n%s", diff)
	}
}

func TestObjectsWithTheSameKeysShareThem(t *testing.T) {
	in := newInterner()
	a, b := in.pack(settings("a", minPacked)).(*packed), in.pack(settings("b", minPacked)).(*packed)
	if a.layout != b.layout {
		t.Error("each has keys of its own")
	}
	if other := in.pack(settings("c", minPacked+1)).(*packed); other.layout == a.layout {
		t.Error("one with other keys shares them")
	}
	for n := range 2 * maxInternedMaps {
		c := settings("a", minPacked)
		c.Data[fmt.Sprintf("own-%d", n)] = ""
		in.pack(c)
	}
	if n := len(in.layouts); n > maxInternedMaps {
		t.Errorf("%d sets of keys are kept, want at most %d", n, maxInternedMaps)
	}
}

func TestMapsThatDifferAreNotShared(t *testing.T) {
	for _, texts := range [][2]map[string]string{
		{{"a": "x\x00b\x00y"}, {"a": "x", "b": "y"}},
		{{"a": "", "\x00": ""}, {"a": "\x00\x00"}},
		{{"a": "\x01b"}, {"a\x01": "b"}},
	} {
		in := newInterner()
		for _, m := range texts {
			if diff := cmp.Diff(m, in.shareMap(maps.Clone(m))); diff != "" {
				t.Errorf("of %q (-want +got):\n%s", texts, diff)
			}
		}
	}
	keys := func(keys ...string) map[string]string {
		m := map[string]string{}
		for _, key := range keys {
			m[key] = "v"
		}
		return m
	}
	for _, data := range [][2]map[string]string{
		{keys("a\x00b", "c", "d", "e"), keys("a", "b", "c", "d", "e")},
		{keys("a\x00\x02b", "c", "d", "e"), keys("a", "\x02b", "c", "d", "e")},
	} {
		in := newInterner()
		for _, m := range data {
			c := &corev1.ConfigMap{Data: m}
			if diff := cmp.Diff(c.DeepCopy(), whole(in.pack(c))); diff != "" {
				t.Errorf("of the keys %q (-want +got):\n%s", data, diff)
			}
		}
	}

	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune{0, 1, 'a', 'b'}), 0, 3, -1)
		texts := rapid.MapOfN(text, text, 0, 5)
		in := newInterner()
		for range 20 {
			m := texts.Draw(t, "texts")
			if shared := in.shareMap(maps.Clone(m)); !maps.Equal(m, shared) {
				t.Fatalf("%q became %q", m, shared)
			}
			c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: m}, Data: texts.Draw(t, "data")}
			if got := whole(in.pack(c.DeepCopy())); !reflect.DeepEqual(c, got) {
				t.Fatalf("(-want +got):\n%s", cmp.Diff(c, got))
			}
		}
	})
}

func TestASourceOfPackedObjectsShowsWholeOnes(t *testing.T) {
	hub, feed := NewHub(HubConfig{
		Name: "settings", pack: newInterner().pack,
		Indexers: map[string]IndexFunc{"app": func(obj any) []string { return []string{obj.(*corev1.ConfigMap).Labels["app"]} }},
	})
	item := func(c *corev1.ConfigMap, version string) Item {
		c.ResourceVersion = version
		return Item{Key: Key{Namespace: c.Namespace, Name: c.Name}, Object: c, Version: version}
	}
	changed := settings("b", minPacked+1)
	changed.Name = "a"
	var got []Event
	record := func(e Event) { got = append(got, Event{Type: e.Type, Object: e.Object, Old: e.Old}) }
	hub.Subscribe(record)
	feed.Set(item(settings("a", minPacked), "1"))
	feed.AnnounceAll()
	feed.Set(item(changed, "2"))
	hub.Subscribe(record)
	feed.Delete(Key{Namespace: "default", Name: "a"}, nil)

	first, second := item(settings("a", minPacked), "1").Object, item(changed.DeepCopy(), "2").Object
	want := []Event{
		{Type: Added, Object: first}, {Type: Updated, Object: first, Old: first}, {Type: Updated, Object: second, Old: first},
		{Type: Added, Object: second}, {Type: Deleted, Object: second}, {Type: Deleted, Object: second},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Event{})); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}

	feed.Set(item(settings("c", minPacked), "3"))
	for what, read := range map[string]func() any{
		"Get":     func() any { obj, _, _ := hub.Get(Key{Namespace: "default", Name: "c"}); return obj },
		"List":    func() any { return hub.List()[0] },
		"ByIndex": func() any { objs, _ := hub.ByIndex("app", "c"); return objs[0] },
	} {
		if diff := cmp.Diff(item(settings("c", minPacked), "3").Object, read()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	feed.Delete(Key{Namespace: "default", Name: "c"}, nil)
	if objs, _ := hub.ByIndex("app", "c"); len(objs) > 0 {
		t.Errorf("the index has %v", objs)
	}
}

func BenchmarkUnpack(b *testing.B) {
	c := settings("a", 20)
	for key := range c.Data {
		c.Data[key] = strings.Repeat("v", 85)
	}
	held := newInterner().pack(c).(*packed)
	b.Run("packed", func(b *testing.B) {
		for b.Loop() {
			held.object()
		}
	})
	b.Run("copied", func(b *testing.B) {
		for b.Loop() {
			c.DeepCopyObject()
		}
	})
}

// configMapMessage returns a ConfigMap of 2 KB as encoded by an API server, with the fields of two
// managers.
func configMapMessage(t *testing.T, n int) []byte {
	t.Helper()
	c := settings(fmt.Sprintf("config-%d", n), 0)
	c.UID, c.ResourceVersion, c.Data = types.UID(fmt.Sprintf("%036d", n)), strconv.Itoa(100_000+n), map[string]string{}
	fields := map[string]any{}
	for i := range 20 {
		key := fmt.Sprintf("setting-%d.conf", i)
		c.Data[key], fields["f:"+key] = fmt.Sprintf("%085d", n), struct{}{}
	}
	raw, err := json.Marshal(map[string]any{"f:data": fields})
	if err != nil {
		t.Fatal(err)
	}
	for _, manager := range []string{"applier", "creator"} {
		c.ManagedFields = append(c.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", Time: new(metav1.Now()),
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(raw)),
		})
	}
	data, err := c.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestAConfigMapTakesHalfOfTheMemoryThatItTakesAsItIsReceived(t *testing.T) {
	const objects = 10_000
	messages := make([][]byte, objects)
	for n := range messages {
		messages[n] = configMapMessage(t, n)
	}
	heap := func() float64 {
		runtime.GC()
		runtime.GC() // What has a finalizer goes with the second one.
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	held := func(hold func(*corev1.ConfigMap) any) float64 {
		before, all := heap(), make([]any, objects)
		for n, message := range messages {
			c := &corev1.ConfigMap{}
			if err := c.Unmarshal(message); err != nil {
				t.Fatal(err)
			}
			all[n] = hold(c)
		}
		after := heap()
		runtime.KeepAlive(all)
		runtime.KeepAlive(messages)
		return (after - before) / objects
	}
	p := newPreparation(corev1.SchemeGroupVersion.WithKind("ConfigMap"), DropManagedFields, microloggertest.New())
	asReceived := held(func(c *corev1.ConfigMap) any { return c })
	small := held(func(c *corev1.ConfigMap) any {
		item, _ := p.item(c)
		return p.strings.pack(item.Object)
	})
	t.Logf("%.0f of %.0f bytes are held of each", small, asReceived)
	if small > asReceived/2 {
		t.Errorf("%.0f of %.0f bytes are held of each, more than half", small, asReceived)
	}
}
