package natsresource_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
	"github.com/operatorkit/operatorkit/resource/natsresource"
)

func TestEntriesAreCreatedUpdatedAndDeleted(t *testing.T) {
	k := newKit(t)
	var want []*route
	r := k.resource(func() []*route { return want })

	want = []*route{newRoute("b", "b.example.com"), {Meta: natsinformer.Meta{Name: "a"}, Host: "a.example.com", Backends: []string{"x"}}}
	k.wantPlan(r, home(),
		"create b", `  host: "b.example.com"`,
		"create a", `  backends: ["x"]`, `  host: "a.example.com"`)
	k.wantWrites(2, func() { k.update(r, home()) })
	k.wantHosts("a=a.example.com", "b=b.example.com")
	k.wantQuiet(r, home())

	want = []*route{newRoute("c", "c.example.com"), newRoute("a", "other.example.com")}
	k.wantPlan(r, home(),
		"create c", `  host: "c.example.com"`,
		"update a", `  backends: ["x"] removed`, `  host: "a.example.com" -> "other.example.com"`,
		"delete b")
	k.wantWrites(3, func() { k.update(r, home()) })
	k.wantHosts("a=other.example.com", "c=c.example.com")
	k.wantQuiet(r, home())

	want = nil
	k.wantPlan(r, home(), "delete c", "delete a")
	k.update(r, home())
	k.wantHosts()
	k.wantQuiet(r, home())
}

func TestAnEntryThatWasDeletedByHandIsCreatedAnew(t *testing.T) {
	k := newKit(t)
	r := k.resource(just(newRoute("a", "a.example.com")))
	k.update(r, home())
	if err := k.kv.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	k.wantPlan(r, home(), "create a", `  host: "a.example.com"`)
	k.update(r, home())
	k.wantHosts("a=a.example.com")
}

func TestAnEditByHandIsPutRight(t *testing.T) {
	k := newKit(t)
	r := k.resource(just(newRoute("a", "a.example.com")))
	k.update(r, home())
	k.change("a", func(r *route) { r.Host, r.Backends = "evil.example.com", []string{"evil"} })
	k.wantPlan(r, home(), "update a", `  backends: ["evil"] removed`, `  host: "evil.example.com" -> "a.example.com"`)
	k.update(r, home())
	k.wantQuiet(r, home())
}

func TestMetadataOfOthersAreKept(t *testing.T) {
	k := newKit(t)
	want := newRoute("a", "a.example.com")
	want.Labels = map[string]string{"ours": "1"}
	r := k.resource(just(want))
	k.update(r, home())
	created := k.get("a")
	k.change("a", func(r *route) {
		r.Labels["theirs"] = "1"
		r.Annotations["theirs"] = "1"
		r.Finalizers = []string{"theirs"}
		r.Conditions = []metav1.Condition{{Type: "Theirs", Status: metav1.ConditionTrue}}
	})
	k.wantQuiet(r, home())

	want.Host, want.Labels = "b.example.com", map[string]string{"ours": "2"}
	k.wantPlan(r, home(), "update a", `  host: "a.example.com" -> "b.example.com"`, `  metadata.labels.ours: "1" -> "2"`)
	k.update(r, home())
	got := k.get("a")
	if diff := cmp.Diff(map[string]string{"ours": "2", "theirs": "1"}, got.Labels); diff != "" {
		t.Error(diff)
	}
	if got.Annotations["theirs"] != "1" || len(got.Finalizers) != 1 || len(got.Conditions) != 1 {
		t.Errorf("something of others is gone: %+v", got.Meta)
	}
	if got.UID != created.UID || !got.CreationTimestamp.Equal(&created.CreationTimestamp) {
		t.Errorf("an update changed UID or creation: %+v", got.Meta)
	}
}

func TestMetadataThatAreNoLongerDesiredGoAway(t *testing.T) {
	k := newKit(t)
	want := newRoute("a", "a.example.com")
	want.Labels = map[string]string{"one": "1", "two": "2"}
	want.Annotations = map[string]string{"note": "x"}
	want.Finalizers = []string{"example.com/a", "example.com/b"}
	want.Conditions = []metav1.Condition{{Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Yes"}}
	r := k.resource(just(want))
	k.update(r, home())
	k.wantQuiet(r, home())

	want.Labels, want.Annotations, want.Finalizers, want.Conditions = map[string]string{"two": "2"}, nil, []string{"example.com/b"}, nil
	k.update(r, home())
	got := k.get("a")
	if diff := cmp.Diff(map[string]string{"two": "2"}, got.Labels); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"example.com/b"}, got.Finalizers); diff != "" {
		t.Error(diff)
	}
	if _, ok := got.Annotations["note"]; ok || len(got.Conditions) > 0 {
		t.Errorf("left: %+v", got.Meta)
	}
	k.wantQuiet(r, home())
}

func TestTheGenerationCountsWhatIsWantedAndNotItsMetadata(t *testing.T) {
	k := newKit(t)
	want := newRoute("a", "a.example.com")
	r := k.resource(just(want))
	for _, step := range []struct {
		change func()
		want   int64
	}{
		{func() {}, 1},
		{func() { want.Labels = map[string]string{"tier": "web"} }, 1},
		{func() { want.Host = "b.example.com" }, 2},
		{func() { want.Generation = 40; want.Backends = []string{"x"} }, 3},
	} {
		step.change()
		k.update(r, home())
		if got := k.get("a").Generation; got != step.want {
			t.Errorf("generation %d, want %d", got, step.want)
		}
		k.wantQuiet(r, home())
	}
}

func TestAConditionKeepsTheTimeOfItsTransition(t *testing.T) {
	k := newKit(t)
	early, late := metav1.Unix(1_000_000, 0), metav1.Unix(2_000_000, 0)
	want := newRoute("a", "a.example.com")
	want.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, LastTransitionTime: early}}
	r := k.resource(just(want))
	k.update(r, home())
	want.Conditions[0].LastTransitionTime = late
	k.wantQuiet(r, home())
	want.Conditions[0].Status = metav1.ConditionFalse
	k.update(r, home())
	if got := k.get("a").Conditions[0].LastTransitionTime; !got.Equal(&late) {
		t.Errorf("transition at %s, want %s", got, late)
	}
}

func TestKeepCarriesOverWhatOthersWrite(t *testing.T) {
	k := newKit(t)
	want := newRoute("a", "a.example.com")
	r := k.resource(just(want), func(c *config) {
		c.Keep = func(current, desired *route) { desired.Status = current.Status }
	})
	k.update(r, home())
	k.change("a", func(r *route) { r.Status = &status{Ready: true} })
	k.wantQuiet(r, home())
	want.Host = "b.example.com"
	k.update(r, home())
	if got := k.get("a"); got.Status == nil || !got.Status.Ready || got.Host != "b.example.com" {
		t.Errorf("got %+v", got)
	}
	if want.Status != nil {
		t.Error("what Desired returned was changed")
	}
}

func TestWhatTheCodecDoesNotKeepIsNoDifference(t *testing.T) {
	k := newKit(t)
	want := newRoute("a", "a.example.com")
	want.Status = &status{}
	forgetful, err := natsinformer.NewBucket(natsinformer.BucketConfig[*route]{JetStream: k.js, Name: "routes", Codec: statusless{}})
	if err != nil {
		t.Fatal(err)
	}
	k.use(forgetful)
	r := k.resource(just(want))
	k.update(r, home())
	k.wantQuiet(r, home())
}

// statusless is a codec that drops a part.
type statusless struct{ natsinformer.JSON[*route] }

func (c statusless) Encode(r *route) ([]byte, error) {
	without := *r
	without.Status = nil
	return c.JSON.Encode(&without)
}

func TestPrimariesOfOneBucketDoNotMeet(t *testing.T) {
	k := newKit(t)
	// Names that a careless key would mix up, and other resources and kinds of the same name.
	shop := &gateway{Meta: natsinformer.Meta{Name: "home/shop"}}
	first := k.resource(just(newRoute("first", "1")))
	second := k.resource(just(newRoute("second", "2")))
	other := k.resource(just(newRoute("third", "3")), func(c *config) { c.Name = "other" })
	kind := k.resource(just(newRoute("fourth", "4")), func(c *config) { c.Kind = "Portal" })
	for range 2 {
		k.update(first, home())
		k.update(second, shop)
		k.update(other, home())
		k.update(kind, home())
	}
	k.wantHosts("first=1", "fourth=4", "second=2", "third=3")
	k.catchUp()
	if err := framework.ProcessDelete(t.Context(), home(), []framework.Resource{first}); err != nil {
		t.Fatal(err)
	}
	k.wantHosts("fourth=4", "second=2", "third=3")
}

func TestEntriesNameTheirPrimary(t *testing.T) {
	k := newKit(t)
	k.update(k.resource(just(newRoute("plain", ""))), &gateway{Meta: natsinformer.Meta{Name: "a/b.c"}})
	k.update(k.resource(just(newRoute("spaced", "")), func(c *config) {
		c.OwnerKey = func(g *gateway) string { return "default/" + g.Name }
	}), home())
	k.update(k.resource(just(newRoute("bare", ""))), home())
	for name, tc := range map[string]struct {
		mapped informer.MapFunc
		entry  any
		want   []informer.Key
	}{
		"a primary without a namespace":   {natsresource.OwnerMap("Gateway"), k.get("plain"), []informer.Key{{Name: "a/b.c"}}},
		"a primary with a namespace":      {natsresource.NamespacedOwnerMap("Gateway"), k.get("spaced"), []informer.Key{{Namespace: "default", Name: "home"}}},
		"a key without its namespace":     {natsresource.NamespacedOwnerMap("Gateway"), k.get("bare"), nil},
		"another kind":                    {natsresource.OwnerMap("Portal"), k.get("plain"), nil},
		"an entry that stands for itself": {natsresource.OwnerMap("Gateway"), newRoute("x", ""), nil},
		"what is no entry":                {natsresource.OwnerMap("Gateway"), struct{}{}, nil},
	} {
		if diff := cmp.Diff(tc.want, tc.mapped(t.Context(), tc.entry)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAPatchDescribesItselfForPlans(t *testing.T) {
	k := newKit(t)
	want := []*route{newRoute("a", "old"), newRoute("secret", "old")}
	r := k.resource(func() []*route { return want }, func(c *config) {
		c.Sensitive = func(r *route) bool { return r.Name == "secret" }
	})
	k.update(r, home())
	before := k.get("a")
	want = []*route{newRoute("a", "new"), newRoute("secret", "new")}
	k.catchUp()
	patch, err := k.patch(r, home())
	if err != nil {
		t.Fatal(err)
	}
	update, _ := patch.UpdateChange()
	var described plan.Changer = update
	entry := func(r *route) plan.Object {
		return plan.Object{Kind: "Entry", Namespace: "routes", Name: r.Name, UID: r.UID, Version: r.GetResourceVersion()}
	}
	wantChanges := []plan.Change{
		{Action: plan.Update, Object: entry(before), Fields: []plan.FieldChange{{Path: "host", Old: "old", New: "new"}}},
		{Action: plan.Update, Object: entry(k.get("secret")), Fields: []plan.FieldChange{
			{Path: "host", Old: plan.Redacted, New: plan.Redacted, Sensitive: true},
		}},
	}
	if diff := cmp.Diff(wantChanges, described.Changes()); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	wantText := "update entry a of bucket routes\n  host: \"old\" -> \"new\"\n" +
		"update entry secret of bucket routes\n  host: (sensitive, changed)"
	if diff := cmp.Diff(wantText, update.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]natsresource.Key{{Bucket: "routes", Name: "a"}, {Bucket: "routes", Name: "secret"}}, update.Keys()); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func TestWhatAnotherWriterHasPutIntoAnEntryStaysThoughTheTypeDoesNotHaveIt(t *testing.T) {
	k := newKit(t)
	want := newRoute("a", "a.example.com")
	r := k.resource(func() []*route { return []*route{want} })
	k.update(r, home())
	entry, err := k.kv.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	theirs := strings.Replace(string(entry.Value()), "{", `{"observed":{"by":"another writer"},`, 1)
	if _, err := k.kv.PutString(t.Context(), "a", theirs); err != nil {
		t.Fatal(err)
	}
	k.catchUp()
	k.wantQuiet(r, home())
	want = newRoute("a", "b.example.com")
	k.update(r, home())
	if entry, err = k.kv.Get(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`"observed":{"by":"another writer"}`, "b.example.com"} {
		if !strings.Contains(string(entry.Value()), text) {
			t.Errorf("%s is missing in %s", text, entry.Value())
		}
	}
}

func TestAFullBucketIsAPermanentErrorAndTheEntryIsTriedAgainLater(t *testing.T) {
	k := newKit(t)
	r := k.resource(just(newRoute("a", "a.example.com")))
	drain := natsserver.Fill(t, k.js, "routes")
	ctx := requeuecontext.NewContext(k.context())
	err := r.EnsureCreated(ctx, home())
	if !framework.IsPermanent(err) || !errors.Is(err, natsinformer.ErrFull) {
		t.Errorf("error %v", err)
	}
	if after, asked := requeuecontext.After(ctx); !asked || after != natsinformer.FullPause {
		t.Errorf("tried again: %t, after %s", asked, after)
	}
	drain()
	k.update(r, home())
	k.wantHosts("a=a.example.com")
}
