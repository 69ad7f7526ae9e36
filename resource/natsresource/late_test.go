package natsresource_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
)

// late reconciles on the source as it is: the watch may be behind what was written.
func (k *kit) late(r *resource, g *gateway) {
	k.t.Helper()
	if err := framework.ProcessUpdate(k.t.Context(), g, []framework.Resource{r}); err != nil {
		k.t.Fatal(err)
	}
}

func TestNothingIsWrittenTwiceOnALateSource(t *testing.T) {
	k := newKit(t)
	var want []*route
	r := k.resource(func() []*route { return want })
	k.catchUp()
	for _, step := range []struct {
		name   string
		want   []*route
		writes uint64
	}{
		{"create", []*route{newRoute("a", "1"), newRoute("b", "1")}, 2},
		{"update", []*route{newRoute("a", "2"), newRoute("b", "1")}, 1},
		{"delete", []*route{newRoute("b", "1")}, 1},
		{"create anew", []*route{newRoute("a", "3"), newRoute("b", "1")}, 1},
		{"delete all", nil, 2},
	} {
		want = step.want
		k.wantWrites(step.writes, func() {
			for range 3 {
				k.late(r, home())
			}
		})
		if t.Failed() {
			t.Fatalf("in step %q", step.name)
		}
	}
	k.wantQuiet(r, home())
}

func TestALateSourceAnswersThatOfAnotherPrimaryToo(t *testing.T) {
	k := newKit(t)
	k.catchUp()
	want := []*route{newRoute("a", "1")}
	r := k.resource(func() []*route { return want })
	k.late(r, home())
	want = nil
	k.late(r, home())
	// The key is free again, and the source has seen nothing of it.
	want = []*route{newRoute("a", "2")}
	shop := &gateway{Meta: natsinformer.Meta{Name: "shop"}}
	k.wantWrites(1, func() { k.late(r, shop); k.late(r, shop) })
	k.wantHosts("a=2")
	want = nil
	k.wantWrites(0, func() { k.late(r, home()) })
	k.wantHosts("a=2")
}

func TestWhatSomebodyElseDidAfterOurWriteIsSeenOnALateSource(t *testing.T) {
	k := newKit(t)
	k.catchUp()
	r := k.resource(just(newRoute("a", "1")))
	k.late(r, home())
	k.change("a", func(r *route) { r.Host = "theirs" })
	k.late(r, home())
	k.wantHosts("a=1")
	k.purge("a")
	k.late(r, home())
	k.wantHosts("a=1")
	k.wantQuiet(r, home())
}

// TestAnyOrderOfWorkEndsAsDesired goes through random changes of what is desired, edits by others, and a source that
// catches up at random.
func TestAnyOrderOfWorkEndsAsDesired(t *testing.T) {
	k := newKit(t)
	k.catchUp()
	var want []*route
	r := k.resource(func() []*route { return want })
	const seed = 7
	random := rand.New(rand.NewPCG(seed, seed))
	names := []string{"a", "b", "c", "d"}
	for range 400 {
		name := names[random.IntN(len(names))]
		switch random.IntN(6) {
		case 0:
			want = slices.DeleteFunc(slices.Clone(want), func(r *route) bool { return r.Name == name })
		case 1:
			want = slices.DeleteFunc(slices.Clone(want), func(r *route) bool { return r.Name == name })
			want = append(want, newRoute(name, strconv.Itoa(random.IntN(3))))
		case 2:
			if _, err := k.bucket.Get(t.Context(), name); err == nil {
				k.change(name, func(r *route) { r.Host = "theirs" })
			}
		case 3:
			if _, err := k.bucket.Get(t.Context(), name); err == nil {
				k.purge(name)
			}
		case 4:
			k.catchUp()
		}
		err := framework.ProcessUpdate(t.Context(), home(), []framework.Resource{r})
		if err != nil && !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
	}
	k.update(r, home())
	var hosts []string
	for _, r := range want {
		hosts = append(hosts, r.Name+"="+r.Host)
	}
	slices.Sort(hosts)
	k.wantHosts(hosts...)
	k.wantQuiet(r, home())
}

func TestWhatWasPurgedDoesNotComeBackOnALateSource(t *testing.T) {
	k := newKit(t)
	want := []*route{newRoute("a", "1")}
	r := k.resource(func() []*route { return want })
	k.update(r, home())
	k.catchUp()
	want = nil
	k.late(r, home())
	for _, tc := range []struct {
		desired []*route
		want    []string
	}{
		{nil, nil},
		{[]*route{newRoute("a", "1")}, []string{"create a", `  host: "1"`}},
	} {
		want = tc.desired
		patch, err := k.patch(r, home())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, lines(patch)); diff != "" {
			t.Errorf("plan (-want +got):\n%s", diff)
		}
	}
	k.wantWrites(1, func() { k.late(r, home()) })
}

func TestR11NothingButWritesIsSentToTheServer(t *testing.T) {
	k := newKit(t)
	k.create(newRoute("theirs", "")) // The first request opens the bucket.
	want := []*route{newRoute("a", "1"), newRoute("b", "1")}
	r := k.resource(func() []*route { return want })
	k.wantRequests(2, func() { k.late(r, home()) })
	k.wantRequests(0, func() { k.late(r, home()) })

	// What comes and goes before the watch shows it.
	want = append(want, newRoute("c", "1"))
	k.wantRequests(1, func() { k.late(r, home()) })
	k.purge("c")
	want = want[:2]
	k.wantRequests(0, func() { k.late(r, home()) })
}

func TestWhatSomebodyElseTookOverIsNotDeletedOnALateSource(t *testing.T) {
	k := newKit(t)
	k.catchUp()
	want := []*route{newRoute("a", "1")}
	r := k.resource(func() []*route { return want })
	k.late(r, home())
	k.change("a", func(r *route) { r.OwnerKey = "shop" })
	want = nil
	k.late(r, home())
	k.wantHosts("a=1")
}
