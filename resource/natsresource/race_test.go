package natsresource_test

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/resource/natsresource"
)

// between reconciles the primary; the function is called after the patch has been computed and before it is applied.
func (k *kit) between(r *resource, g *gateway, do func()) error {
	k.t.Helper()
	k.catchUp()
	wrapped := r.WrapSteps(func(ctx context.Context, step framework.StepInfo, next func(context.Context) error) error {
		err := next(ctx)
		if step.Step == framework.StepNewUpdatePatch {
			do()
		}
		return err
	})
	return framework.ProcessUpdate(k.t.Context(), g, []framework.Resource{wrapped})
}

func TestWhatChangesBetweenPatchAndApplyIsAConflict(t *testing.T) {
	const ours, others = "ours", "theirs"
	for name, tc := range map[string]struct {
		before []*route
		want   []*route
		change func(k *kit)
		// then are the entries after the conflict, and in the end.
		then, finally []string
	}{
		"an update of what is updated": {
			before: []*route{newRoute("a", "old")}, want: []*route{newRoute("a", ours)},
			change: func(k *kit) { k.change("a", func(r *route) { r.Host = others }) },
			then:   []string{"a=theirs"}, finally: []string{"a=ours"},
		},
		"a deletion of what is updated": {
			before: []*route{newRoute("a", "old")}, want: []*route{newRoute("a", ours)},
			change: func(k *kit) { k.purge("a") },
			then:   nil, finally: []string{"a=ours"},
		},
		"a replacement of what is updated": {
			before: []*route{newRoute("a", "old")}, want: []*route{newRoute("a", ours)},
			change: func(k *kit) {
				replacement := k.get("a")
				k.purge("a")
				replacement.UID = ""
				k.create(replacement)
			},
			then: []string{"a=old"}, finally: []string{"a=ours"},
		},
		"an update of what is deleted": {
			before: []*route{newRoute("a", "old")}, want: nil,
			change: func(k *kit) { k.change("a", func(r *route) { r.Host = others }) },
			then:   []string{"a=theirs"}, finally: nil,
		},
		"another one of ours where one is created": {
			before: nil, want: []*route{newRoute("a", ours)},
			change: func(k *kit) { k.update(k.resource(just(newRoute("a", others))), home()) },
			then:   []string{"a=theirs"}, finally: []string{"a=ours"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			want := tc.before
			r := k.resource(func() []*route { return want })
			k.update(r, home())
			want = tc.want
			err := k.between(r, home(), func() { tc.change(k) })
			if !apierrors.IsConflict(err) {
				t.Fatalf("got %v, want a conflict", err)
			}
			k.wantHosts(tc.then...)
			// Not even a source that is late keeps the next reconciliation from seeing what the conflict was with.
			if err := framework.ProcessUpdate(t.Context(), home(), []framework.Resource{r}); err != nil {
				t.Fatalf("once more, on the late source: %v", err)
			}
			k.wantHosts(tc.finally...)
			k.wantQuiet(r, home())
		})
	}
}

func TestWhatIsDeletedTwiceIsDeleted(t *testing.T) {
	k := newKit(t)
	want := []*route{newRoute("a", "old")}
	r := k.resource(func() []*route { return want })
	k.update(r, home())
	want = nil
	k.wantWrites(1, func() {
		if err := k.between(r, home(), func() { k.purge("a") }); err != nil {
			t.Error(err)
		}
	})
	k.wantQuiet(r, home())
}

func TestAnEntryOfSomebodyElseThatAppearsBeforeTheCreationIsRefused(t *testing.T) {
	k := newKit(t)
	r := k.resource(just(newRoute("a", "ours")))
	if err := k.between(r, home(), func() { k.create(newRoute("a", "theirs")) }); !apierrors.IsConflict(err) {
		t.Fatalf("got %v, want a conflict", err)
	}
	err := k.tryUpdate(r, home())
	var refused *natsresource.RefusedError
	if !errors.As(err, &refused) {
		t.Fatalf("got %v, want a refusal", err)
	}
	k.wantHosts("a=theirs")
}

func TestApplyingTwiceWritesOnce(t *testing.T) {
	k := newKit(t)
	k.catchUp()
	r := k.resource(just(newRoute("a", "ours")))
	patch, err := k.patch(r, home())
	if err != nil {
		t.Fatal(err)
	}
	create, _ := patch.CreateChange()
	k.wantWrites(1, func() {
		if err := r.ApplyCreateChange(t.Context(), home(), create); err != nil {
			t.Fatal(err)
		}
		if err := r.ApplyCreateChange(t.Context(), home(), create); !apierrors.IsConflict(err) {
			t.Errorf("got %v, want a conflict", err)
		}
	})
	k.wantQuiet(r, home())
}

func TestAnEntryThatIsCreatedAnewIsAnotherOne(t *testing.T) {
	k := newKit(t)
	k.catchUp()
	r := k.resource(just(newRoute("a", "ours")))
	patch, err := k.patch(r, home())
	if err != nil {
		t.Fatal(err)
	}
	create, _ := patch.CreateChange()
	uids := map[types.UID]bool{}
	for range 2 {
		if err := r.ApplyCreateChange(t.Context(), home(), create); err != nil {
			t.Fatal(err)
		}
		uids[k.get("a").UID] = true
		k.purge("a")
	}
	if len(uids) != 2 {
		t.Errorf("UIDs %v, want two", uids)
	}
}

// purge removes an entry as a user would.
func (k *kit) purge(name string) {
	k.t.Helper()
	if err := k.bucket.Purge(k.t.Context(), k.get(name)); err != nil {
		k.t.Fatal(err)
	}
}

func TestAClosedFenceRefusesEveryWrite(t *testing.T) {
	k := newKit(t)
	lost := errors.New("lost the lease")
	var closed error
	fenced, err := natsinformer.NewBucket(natsinformer.BucketConfig[*route]{
		JetStream: k.js, Name: "routes", Fence: func() error { return closed },
	})
	if err != nil {
		t.Fatal(err)
	}
	k.use(fenced)
	var want []*route
	r := k.resource(func() []*route { return want })
	want = []*route{newRoute("b", "b"), newRoute("c", "c")}
	k.update(r, home())
	for name, desired := range map[string][]*route{
		"create": {newRoute("a", "a"), newRoute("b", "b"), newRoute("c", "c")},
		"update": {newRoute("b", "other"), newRoute("c", "c")},
		"delete": {newRoute("b", "b")},
	} {
		want, closed = desired, lost
		k.wantWrites(0, func() {
			if err := k.tryUpdate(r, home()); !errors.Is(err, lost) {
				t.Errorf("%s: got %v, want the fence's error", name, err)
			}
		})
		closed = nil
	}
	want = []*route{newRoute("a", "a")}
	k.update(r, home())
	k.wantHosts("a=a")
}
