package keyedresource_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/keyedresource"
)

// blind makes a resource of a zone that holds no marks and can be asked by host only.
func blind(c client.Client, z *zone) func(*config) {
	return func(config *config) {
		config.Current, config.Mark, config.Journal = nil, nil, c
		config.Get = func(_ context.Context, _ primary, host string) (record, bool, error) {
			r, ok := z.get(host)
			return r, ok, nil
		}
		config.Desired = func(_ context.Context, p primary) ([]record, error) { return wanted(context.Background(), p) }
	}
}

// journalKit is a primary on an API server.
type journalKit struct {
	t       *testing.T
	client  client.Client
	faults  *operatortest.Faults
	primary primary
}

func newJournalKit(t *testing.T, data ...string) *journalKit {
	t.Helper()
	server := operatortest.Start(t)
	faults := operatortest.NewFaults(operatortest.KeepBodies())
	k := &journalKit{t: t, faults: faults, primary: newPrimary("home", data...)}
	k.client = operatortest.NewClient(t, faults.Wrap(server.RESTConfig()), nil)
	k.primary.Namespace = server.Namespace(t)
	if err := k.client.Create(t.Context(), k.primary); err != nil {
		t.Fatal(err)
	}
	return k
}

// journal is what stands in the journals of the primary.
func (k *journalKit) journal() string {
	k.t.Helper()
	var all []string
	for name, value := range k.live().Annotations {
		if strings.HasPrefix(name, keyedresource.JournalPrefix) {
			all = append(all, value)
		}
	}
	return strings.Join(all, " ")
}

// journalOf is the journal of the primary with these keys.
func (k *journalKit) journalOf(keys string) string {
	return fmt.Sprintf(`{"of":"resource \"records\" of framework \"f\" of operator \"o\"","for":"%s/%s","uid":"%s","keys":[%s]}`,
		k.primary.Namespace, k.primary.Name, k.primary.UID, keys)
}

// live is the primary as it is on the API server.
func (k *journalKit) live() primary {
	k.t.Helper()
	live := &corev1.ConfigMap{}
	if err := k.client.Get(k.t.Context(), client.ObjectKeyFromObject(k.primary), live); err != nil {
		k.t.Fatal(err)
	}
	return live
}

// restore makes the primary anew, with the annotations of a backup.
func (k *journalKit) restore(backup primary, data ...string) {
	k.t.Helper()
	if err := client.IgnoreNotFound(k.client.Delete(k.t.Context(), k.primary.DeepCopy())); err != nil {
		k.t.Fatal(err)
	}
	k.primary = newPrimary(backup.Name, data...)
	k.primary.Namespace, k.primary.Annotations = backup.Namespace, backup.Annotations
	if err := k.client.Create(k.t.Context(), k.primary); err != nil {
		k.t.Fatal(err)
	}
}

func TestAKeyIsInTheJournalFromBeforeItsThingIsPutUntilItIsGone(t *testing.T) {
	k := newJournalKit(t, "a", "1")
	z, ctx := newZone(), as(t, "o", "f")
	var before string
	r := newResource(t, z, &bytes.Buffer{}, blind(k.client, z), func(c *config) {
		c.Put = func(_ context.Context, _ primary, r record) error {
			before = k.journal()
			return z.put(r)
		}
	})
	if err := update(ctx, k.primary, r); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(k.journalOf(`"a"`), before); diff != "" {
		t.Errorf("the journal before the thing was put (-want +got):\n%s", diff)
	}
	writes := len(k.faults.Writes())
	if err := update(ctx, k.primary, r); err != nil || len(k.faults.Writes()) != writes {
		t.Errorf("got %v, and %d writes, when there is nothing to do", err, len(k.faults.Writes())-writes)
	}
	k.primary.Data = map[string]string{"b": "2"}
	if err := update(ctx, k.primary, r); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(k.journalOf(`"b"`), k.journal()); diff != "" || z.hosts() != "b=2" {
		t.Errorf("%s; the journal (-want +got):\n%s", z.hosts(), diff)
	}
	k.primary.Data = nil
	if err := update(ctx, k.primary, r); err != nil || k.journal() != "" || z.hosts() != "" {
		t.Errorf("got %v, the journal %s and %s; want nothing left", err, k.journal(), z.hosts())
	}
}

func TestWhatWasMadeBeforeACrashIsFoundAgainWhenNobodyWantsItAnyMore(t *testing.T) {
	k := newJournalKit(t, "a", "1", "b", "1")
	z, ctx := newZone(), as(t, "o", "f")
	crashed := newResource(t, z, &bytes.Buffer{}, blind(k.client, z), func(c *config) {
		c.Put = func(_ context.Context, _ primary, r record) error {
			return errors.Join(z.put(r), unanswered{}) // and b is never put, nor is this known to have been
		}
	})
	if err := update(ctx, k.primary, crashed); err == nil {
		t.Fatal("no error")
	}
	k.primary.Data = nil
	if err := update(ctx, k.primary, newResource(t, z, &bytes.Buffer{}, blind(k.client, z))); err != nil {
		t.Fatal(err)
	}
	if z.hosts() != "" || k.journal() != "" {
		t.Errorf("left: %s, and the journal %s", z.hosts(), k.journal())
	}
}

func TestR16AThingThatIsNotInTheJournalIsRefused(t *testing.T) {
	k := newJournalKit(t, "a", "1")
	z, ctx := newZone(record{Host: "a", Address: "theirs"}), as(t, "o", "f")
	err := update(ctx, k.primary, newResource(t, z, &bytes.Buffer{}, blind(k.client, z)))
	var refused *keyedresource.RefusedError
	if !errors.As(err, &refused) || !refused.Adoptable || z.hosts() != "a=theirs" || k.journal() != "" {
		t.Fatalf("got %v, %s and the journal %s; want a refusal", err, z.hosts(), k.journal())
	}
	r := newResource(t, z, &bytes.Buffer{}, blind(k.client, z), func(c *config) { c.Adopt = true })
	if err := update(ctx, k.primary, r); err != nil || z.hosts() != "a=1" || k.journal() != k.journalOf(`"a"`) {
		t.Errorf("got %v, %s and the journal %s; want it adopted", err, z.hosts(), k.journal())
	}
}

// Nothing of the thing has to change, and yet it has to be known: what the journal does not know is never deleted.
func TestAThingThatIsAdoptedAsItIsGoesWhenNobodyWantsItAnyMore(t *testing.T) {
	k := newJournalKit(t, "a", "1")
	z, ctx := newZone(record{Host: "a", Address: "1"}), as(t, "o", "f")
	r := newResource(t, z, &bytes.Buffer{}, blind(k.client, z), func(c *config) { c.Adopt = true })
	if got := planned(t, ctx, k.primary, r); len(got) != 1 || !strings.Contains(got[0], "taken over as it is") {
		t.Errorf("the plan is %q", got)
	}
	if err := update(ctx, k.primary, r); err != nil || z.hosts() != "a=1" || k.journal() != k.journalOf(`"a"`) {
		t.Errorf("got %v, %s and the journal %s; want it adopted", err, z.hosts(), k.journal())
	}
	if got := planned(t, ctx, k.primary, r); len(got) != 0 {
		t.Errorf("the plan afterwards is %q", got)
	}
	k.primary.Data = nil
	if err := update(ctx, k.primary, r); err != nil || z.hosts() != "" || k.journal() != "" {
		t.Errorf("got %v, %s and the journal %s; want it gone", err, z.hosts(), k.journal())
	}
}

func TestR17TheJournalIsOneOfTheLifeAndTheVersionThatWereRead(t *testing.T) {
	k := newJournalKit(t, "a", "1")
	z, ctx := newZone(), as(t, "o", "f")
	meddle := func() {}
	r := newResource(t, z, &bytes.Buffer{}, blind(k.client, z), func(c *config) {
		c.Desired = func(_ context.Context, p primary) ([]record, error) {
			meddle()
			return wanted(context.Background(), p)
		}
	})
	meddle = func() {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"changed":"meanwhile"}}}`))
		if err := k.client.Patch(t.Context(), k.primary.DeepCopy(), patch); err != nil {
			t.Fatal(err)
		}
	}
	if err := update(ctx, k.primary, r); !apierrors.IsConflict(err) || z.hosts() != "" {
		t.Errorf("changed meanwhile: got %v and %s, want a conflict and nothing put", err, z.hosts())
	}
	another := func() {
		if err := k.client.Delete(t.Context(), k.primary.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		next := newPrimary("home")
		next.Namespace = k.primary.Namespace
		if err := k.client.Create(t.Context(), next); err != nil {
			t.Fatal(err)
		}
	}
	meddle = another
	if err := update(ctx, k.primary, r); !apierrors.IsConflict(err) || z.hosts() != "" {
		t.Errorf("replaced meanwhile: got %v and %s, want a conflict and nothing put", err, z.hosts())
	}
	meddle = func() {}
	if err := update(ctx, k.primary, r); !apierrors.IsConflict(err) || z.hosts() != "" {
		t.Errorf("replaced before: got %v and %s, want a conflict and nothing put", err, z.hosts())
	}
}

func TestR16TheJournalOfAFormerNameIsTakenOver(t *testing.T) {
	k := newJournalKit(t, "a", "1", "b", "1")
	z := newZone()
	if err := update(as(t, "o", "f"), k.primary, newResource(t, z, &bytes.Buffer{}, blind(k.client, z))); err != nil {
		t.Fatal(err)
	}
	neighbour := newResource(t, z, &bytes.Buffer{}, blind(k.client, z), func(c *config) { c.Name = "other" })
	if err := update(as(t, "o", "f"), newPrimaryLike(k.primary), neighbour); err != nil || z.hosts() != "a=1 b=1" {
		t.Errorf("another resource: got %v and %s", err, z.hosts())
	}
	scope := &identity.Scope{Identity: identity.Identity{Operator: "o", Framework: "f", FormerOperators: []string{"before"}}}
	ctx := identity.NewContext(t.Context(), scope)
	k.primary.Data = map[string]string{"a": "1"}
	renamed := newResource(t, z, &bytes.Buffer{}, blind(k.client, z), func(c *config) { c.Name, c.FormerNames = "renamed", []string{"records"} })
	want := []string{`update record a: taken over from resource "records" of framework "f" of operator "o"`, "delete record b"}
	if diff := cmp.Diff(want, planned(t, ctx, k.primary, renamed)); diff != "" {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}
	if err := update(ctx, k.primary, renamed); err != nil {
		t.Fatal(err)
	}
	if want := strings.ReplaceAll(k.journalOf(`"a"`), "records", "renamed"); k.journal() != want || z.hosts() != "a=1" {
		t.Errorf("got %s and the journal %s, want %s", z.hosts(), k.journal(), want)
	}
}

// newPrimaryLike is the same primary, which wants nothing.
func newPrimaryLike(p primary) primary {
	p = p.DeepCopy()
	p.Data = nil
	return p
}

func TestAPrimaryThatIsGoneAlreadyHasItsLastJournal(t *testing.T) {
	k := newJournalKit(t, "a", "1")
	z, ctx := newZone(), as(t, "o", "f")
	r := newResource(t, z, &bytes.Buffer{}, blind(k.client, z))
	if err := update(ctx, k.primary, r); err != nil {
		t.Fatal(err)
	}
	last := k.live()
	if err := k.client.Delete(t.Context(), k.primary); err != nil {
		t.Fatal(err)
	}
	if err := update(ctx, last, r); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want nothing to be put for what is gone", err)
	}
	if err := framework.ProcessDelete(ctx, last, plain([]*resource{r})); err != nil || z.hosts() != "" {
		t.Errorf("got %v and %s", err, z.hosts())
	}
}

func TestR5AJournalOfAGonePrimaryDoesNotWaitForItsSuccessor(t *testing.T) {
	k := newJournalKit(t, "a", "1")
	z, ctx := newZone(), as(t, "o", "f")
	r := newResource(t, z, &bytes.Buffer{}, blind(k.client, z))
	if err := update(ctx, k.primary, r); err != nil {
		t.Fatal(err)
	}
	last := k.live()
	k.restore(newPrimaryLike(k.primary), "b", "2")
	if err := update(ctx, last, r); !apierrors.IsConflict(err) || z.hosts() != "a=1" {
		t.Errorf("got %v and %s, want nothing to be put for what is gone", err, z.hosts())
	}
	if err := framework.ProcessDelete(ctx, last, plain([]*resource{r})); err != nil || z.hosts() != "" {
		t.Errorf("got %v and %s, want what it had to be gone", err, z.hosts())
	}
	if err := update(ctx, k.primary, r); err != nil || z.hosts() != "b=2" || k.journal() != k.journalOf(`"b"`) {
		t.Errorf("got %v, %s and the journal %s, want the successor to have its own", err, z.hosts(), k.journal())
	}
}

func TestR16TheJournalInACopyOfThePrimaryClaimsNothing(t *testing.T) {
	k := newJournalKit(t, "a", "1")
	z, ctx := newZone(), as(t, "o", "f")
	r := newResource(t, z, &bytes.Buffer{}, blind(k.client, z))
	if err := update(ctx, k.primary, r); err != nil {
		t.Fatal(err)
	}
	duplicate := &journalKit{t: t, client: k.client, faults: k.faults, primary: newPrimary("copy")}
	duplicate.primary.Namespace, duplicate.primary.Annotations = k.primary.Namespace, k.live().Annotations
	if err := k.client.Create(t.Context(), duplicate.primary); err != nil {
		t.Fatal(err)
	}
	if err := update(ctx, duplicate.primary, r); err != nil || z.hosts() != "a=1" {
		t.Errorf("got %v and %s, want the thing of the other primary to stay", err, z.hosts())
	}
	duplicate.primary.Data = map[string]string{"a": "2"}
	err := update(ctx, duplicate.primary, r)
	var refused *keyedresource.RefusedError
	if !errors.As(err, &refused) || !strings.Contains(refused.Reason, "a copy of that of "+k.primary.Namespace+"/home") || z.hosts() != "a=1" {
		t.Errorf("got %v and %s, want a refusal", err, z.hosts())
	}
	duplicate.primary.Data = map[string]string{"b": "2"}
	if err := update(ctx, duplicate.primary, r); err != nil || z.hosts() != "a=1 b=2" || duplicate.journal() != duplicate.journalOf(`"b"`) {
		t.Errorf("got %v, %s and the journal %s, want one of its own", err, z.hosts(), duplicate.journal())
	}
	if err := framework.ProcessDelete(ctx, duplicate.live(), plain([]*resource{r})); err != nil || z.hosts() != "a=1" {
		t.Errorf("got %v and %s, want its own things alone to be deleted", err, z.hosts())
	}
}

func TestR16ARestoredPrimaryTakesOverWhatItWantsAndDeletesNothingElseOfItsJournal(t *testing.T) {
	k := newJournalKit(t, "a", "1", "b", "1", "c", "1")
	z, ctx := newZone(), as(t, "o", "f")
	r := newResource(t, z, &bytes.Buffer{}, blind(k.client, z))
	if err := update(ctx, k.primary, r); err != nil {
		t.Fatal(err)
	}
	k.restore(k.live(), "0", "new", "a", "1", "b", "2")
	z.refuse["0"] = errors.New("not now")
	if err := update(ctx, k.primary, r); err == nil || k.journal() != k.journalOf(`"0","a","b"`) {
		t.Errorf("got %v and the journal %s, want nothing of it to be lost when it is first written", err, k.journal())
	}
	delete(z.refuse, "0")
	if err := update(ctx, k.primary, r); err != nil || z.hosts() != "0=new a=1 b=2 c=1" || k.journal() != k.journalOf(`"0","a","b"`) {
		t.Errorf("got %v, %s and the journal %s, want what is desired to be taken over", err, z.hosts(), k.journal())
	}
	if err := framework.ProcessDelete(ctx, k.live(), plain([]*resource{r})); err != nil || z.hosts() != "c=1" {
		t.Errorf("got %v and %s, want what it took over to be deleted with it", err, z.hosts())
	}
}

func TestTheMarksOfThingsSayWhoseTheyAreAfterARestoreToo(t *testing.T) {
	k := newJournalKit(t, "a", "1", "b", "1")
	z, ctx := newZone(), as(t, "o", "f")
	r := newResource(t, z, &bytes.Buffer{}, blind(k.client, z), func(c *config) {
		c.Mark, c.Desired = func(r record) string { return r.Owner }, wanted
	})
	if err := update(ctx, k.primary, r); err != nil {
		t.Fatal(err)
	}
	k.restore(k.live(), "a", "1")
	if err := update(ctx, k.primary, r); err != nil || z.hosts() != "a=1" {
		t.Errorf("got %v and %s, want what is not desired to be deleted", err, z.hosts())
	}
}

func TestWhatTakesItsTimeToGoIsWaitedFor(t *testing.T) {
	k := newJournalKit(t, "a", "1", "b", "1")
	z, ctx := newZone(), as(t, "o", "f")
	going := map[string]bool{}
	r := newResource(t, z, &bytes.Buffer{}, blind(k.client, z), func(c *config) {
		c.WaitForDeletion = true
		c.Delete = func(_ context.Context, _ primary, r record) error {
			going[r.Host] = true
			return nil
		}
	})
	if err := update(ctx, k.primary, r); err != nil {
		t.Fatal(err)
	}
	k.primary.Data = map[string]string{"b": "1"}
	waiting := requeuecontext.NewContext(ctx)
	if err := update(waiting, k.primary, r); err != nil || !going["a"] || k.journal() != k.journalOf(`"a","b"`) {
		t.Errorf("got %v and the journal %s, want a to be in it until it is gone", err, k.journal())
	}
	if _, asked := requeuecontext.After(waiting); !asked {
		t.Error("nobody looks whether it is gone")
	}
	if err := errors.Join(z.delete("a"), update(ctx, k.primary, r)); err != nil || k.journal() != k.journalOf(`"b"`) {
		t.Errorf("got %v and the journal %s, want b to be left in it", err, k.journal())
	}
	keeping := finalizerskeptcontext.NewContext(ctx)
	if err := framework.ProcessDelete(keeping, k.primary, plain([]*resource{r})); err != nil || !going["b"] || !finalizerskeptcontext.IsKept(keeping) {
		t.Errorf("got %v, want the finalizer to be kept", err)
	}
	over := finalizerskeptcontext.NewContext(ctx)
	if err := errors.Join(z.delete("b"), framework.ProcessDelete(over, k.primary, plain([]*resource{r}))); err != nil || finalizerskeptcontext.IsKept(over) {
		t.Errorf("got %v, want the finalizer to be let go", err)
	}
}

func TestAJournalThatAnObjectCannotHoldIsAPermanentError(t *testing.T) {
	k := newJournalKit(t)
	k.primary.Data = map[string]string{}
	for i := range 3000 {
		k.primary.Data[fmt.Sprintf("%0100d", i)] = "1"
	}
	z := newZone()
	err := update(as(t, "o", "f"), k.primary, newResource(t, z, &bytes.Buffer{}, blind(k.client, z)))
	if !framework.IsPermanent(err) || !strings.Contains(err.Error(), "262144 bytes of annotations") {
		t.Errorf("error %v", err)
	}
	if z.hosts() != "" {
		t.Error("a thing was put that is not in the journal")
	}
}
