package natsresource_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/resource/natsresource"
)

// delete reconciles the deletion of a primary on a source that has caught up, and tells whether it has to be looked at
// again before the primary may go.
func (k *kit) delete(r *resource) (waits bool) {
	k.t.Helper()
	k.catchUp()
	ctx := requeuecontext.NewContext(finalizerskeptcontext.NewContext(k.t.Context()))
	now := metav1.Now()
	g := home()
	g.DeletionTimestamp = &now
	if err := framework.ProcessDelete(ctx, g, []framework.Resource{r}); err != nil {
		k.t.Fatal(err)
	}
	_, again := requeuecontext.After(ctx)
	if waits = finalizerskeptcontext.IsKept(ctx); waits != again {
		k.t.Errorf("the primary is kept: %v, looked at again: %v", waits, again)
	}
	return waits
}

func TestADeletionPurgesWhatIsOursAndAsksNothingOfDesired(t *testing.T) {
	k := newKit(t)
	k.create(newRoute("theirs", "x"))
	r := k.resource(just(newRoute("a", "1"), newRoute("b", "2")))
	k.update(r, home())
	called := k.resource(nil, func(c *config) {
		c.Desired = func(context.Context, *gateway) ([]*route, error) {
			t.Error("Desired was called for a deletion")
			return nil, nil
		}
	})
	k.wantWrites(2, func() {
		if k.delete(called) {
			t.Error("the primary has to wait")
		}
		k.delete(called)
	})
	k.wantHosts("theirs=x")
	history, err := k.kv.History(t.Context(), "a")
	if err != nil || len(history) != 1 {
		t.Errorf("history %v, %v: want nothing but the marker", history, err)
	}
}

func TestAnEntryWithFinalizersIsAskedToGo(t *testing.T) {
	k := newKit(t)
	r := k.resource(just(newRoute("held", "1"), newRoute("a", "2")))
	k.update(r, home())
	k.change("held", func(r *route) { r.Finalizers = []string{"theirs"} })

	k.wantWrites(2, func() {
		for range 3 {
			if !k.delete(r) {
				t.Error("the primary does not wait")
			}
		}
	})
	k.wantHosts("held=1")
	if k.get("held").DeletionTimestamp == nil {
		t.Error("deletion was not asked for")
	}
	k.change("held", func(r *route) { r.Finalizers = nil })
	if k.delete(r) {
		t.Error("the primary waits for nothing")
	}
	k.wantHosts()
}

func TestRequestDeletionLeavesTheRemovalToTheController(t *testing.T) {
	k := newKit(t)
	want := []*route{newRoute("a", "1"), newRoute("b", "1")}
	r := k.resource(func() []*route { return want }, func(c *config) { c.RequestDeletion = true })
	k.update(r, home())

	want = want[1:]
	k.update(r, home())
	k.wantQuiet(r, home())
	if k.get("a").DeletionTimestamp == nil {
		t.Error("the deletion of what is no longer desired was not asked for")
	}
	// What is wanted again has to go first.
	want = append(want, newRoute("a", "2"))
	k.wantQuiet(r, home())
	k.purge("a")
	k.update(r, home())
	k.wantHosts("a=2", "b=1")

	for range 2 {
		if !k.delete(r) {
			t.Error("the primary does not wait")
		}
	}
	k.purge("a")
	k.purge("b")
	if k.delete(r) {
		t.Error("the primary waits for nothing")
	}
}

func TestADesiredEntryThatNobodyLetsGoIsMadeAnew(t *testing.T) {
	k := newKit(t)
	r := k.resource(just(newRoute("a", "1")))
	k.update(r, home())
	before := k.get("a").UID
	if err := k.bucket.RequestDeletion(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	k.wantPlan(r, home(), "delete a")
	k.catchUp()
	ctx := requeuecontext.NewContext(k.context())
	if err := framework.ProcessUpdate(ctx, home(), []framework.Resource{r}); err != nil {
		t.Fatal(err)
	}
	// Nobody else changes anything that could wake the primary.
	if _, again := requeuecontext.After(ctx); !again {
		t.Error("no other look is asked for")
	}
	k.update(r, home())
	k.wantHosts("a=1")
	if k.get("a").UID == before || k.get("a").DeletionTimestamp != nil {
		t.Errorf("got %+v, want a new entry", k.get("a").Meta)
	}
}

// behind is a source that has lost contact before it saw what was written last.
type behind struct{ natsresource.Source }

func (behind) ByIndex(string, string) ([]any, error) { return nil, nil }

func (b behind) Status() informer.Status {
	status := b.Source.Status()
	status.LastError = nats.ErrDisconnected
	return status
}

func TestR5ADeletionWaitsForASourceThatMayLackEntries(t *testing.T) {
	k := newKit(t)
	r := k.resource(just(newRoute("a", "1")))
	k.update(r, home())
	now := metav1.Now()
	g := home()
	g.DeletionTimestamp = &now
	out := k.resource(nil, func(c *config) { c.Source = behind{k.source} })
	err := framework.ProcessDelete(t.Context(), g, []framework.Resource{out})
	if !errors.Is(err, nats.ErrDisconnected) || !strings.Contains(err.Error(), "out of contact") || framework.IsPermanent(err) {
		t.Errorf("got %v, want an error that is tried again and says that the source is out of contact", err)
	}
	k.wantHosts("a=1")

	// Once it is back, it has all.
	if k.delete(r) {
		t.Error("the primary waits for nothing")
	}
	k.wantHosts()
}
