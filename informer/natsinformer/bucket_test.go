package natsinformer_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

func TestBucketReadsWhatItWrote(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{})
	written := b.create("x", "a", "b")
	if written.UID == "" || written.Generation != 1 || written.CreationTimestamp.IsZero() || written.Revision() != 1 {
		t.Errorf("Create has not filled in the metadata: %+v", written.Meta)
	}
	b.update(written, "c")

	read, err := b.bucket.Get(t.Context(), "x")
	b.must(err)
	if diff := cmp.Diff("x c", text(read)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if read.UID != written.UID || read.Revision() != 2 || read.GetResourceVersion() != "2" {
		t.Errorf("uid %s revision %d, want uid %s revision 2", read.UID, read.Revision(), written.UID)
	}
}

func TestBucketGivesAnEntryThatWasWrittenByOthersAUIDAtTheFirstUpdate(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{})
	b.put("x", `{"hosts":["a"]}`)
	g, err := b.bucket.Get(t.Context(), "x")
	b.must(err)
	if text(g) != "x a" || g.UID != "" {
		t.Errorf("got %q with uid %q", text(g), g.UID)
	}
	b.update(g, "b")
	if g.UID == "" {
		t.Error("no UID after the update")
	}
}

func TestBucketComparesRevisions(t *testing.T) {
	ctx := t.Context()
	type args struct {
		b *bed
		// fresh is the current entity, old the same one before its last change.
		fresh, old *Gateway
	}
	for name, test := range map[string]struct {
		do   func(args) error
		want func(error) bool
		kind string
	}{
		"create over a value":   {do: func(a args) error { return a.b.bucket.Create(ctx, gateway("x")) }, want: apierrors.IsAlreadyExists, kind: "already exists"},
		"get without a value":   {do: func(a args) error { _, err := a.b.bucket.Get(ctx, "y"); return err }, want: apierrors.IsNotFound, kind: "not found"},
		"get after a deletion":  {do: func(a args) error { return getAfter(a.b, a.b.bucket.Delete(ctx, a.fresh)) }, want: apierrors.IsNotFound, kind: "not found"},
		"get after a purge":     {do: func(a args) error { return getAfter(a.b, a.b.bucket.Purge(ctx, a.fresh)) }, want: apierrors.IsNotFound, kind: "not found"},
		"update":                {do: func(a args) error { return a.b.bucket.Update(ctx, a.fresh) }, want: isNil, kind: "none"},
		"update of an old one":  {do: func(a args) error { return a.b.bucket.Update(ctx, a.old) }, want: apierrors.IsConflict, kind: "conflict"},
		"update of a new one":   {do: func(a args) error { return a.b.bucket.Update(ctx, gateway("z")) }, want: mentions("no revision"), kind: "no revision"},
		"update of a gone one":  {do: func(a args) error { a.b.must(a.b.bucket.Purge(ctx, a.fresh)); return a.b.bucket.Update(ctx, a.old) }, want: apierrors.IsConflict, kind: "conflict"},
		"delete of an old one":  {do: func(a args) error { return a.b.bucket.Delete(ctx, a.old) }, want: apierrors.IsConflict, kind: "conflict"},
		"delete of a gone one":  {do: func(a args) error { a.b.must(a.b.bucket.Delete(ctx, a.fresh)); return a.b.bucket.Delete(ctx, a.old) }, want: isNil, kind: "none"},
		"delete without having": {do: func(a args) error { return a.b.bucket.Delete(ctx, gateway("x")) }, want: mentions("no revision"), kind: "no revision"},
		"purge of an old one":   {do: func(a args) error { return a.b.bucket.Purge(ctx, a.old) }, want: apierrors.IsConflict, kind: "conflict"},
		"purge of a gone one":   {do: func(a args) error { a.b.must(a.b.bucket.Purge(ctx, a.fresh)); return a.b.bucket.Purge(ctx, a.old) }, want: isNil, kind: "none"},
		"create after a deletion": {do: func(a args) error {
			a.b.must(a.b.bucket.Delete(ctx, a.fresh))
			return a.b.bucket.Create(ctx, gateway("x"))
		}, want: isNil, kind: "none"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, jetstream.KeyValueConfig{History: 5})
			b.create("x")
			old, err := b.bucket.Get(ctx, "x")
			b.must(err)
			fresh, err := b.bucket.Get(ctx, "x")
			b.must(err)
			b.update(fresh, "a")
			if err := test.do(args{b: b, fresh: fresh, old: old}); !test.want(err) {
				t.Errorf("the error is %v, want kind %q", err, test.kind)
			}
		})
	}
}

func getAfter(b *bed, err error) error {
	b.must(err)
	_, err = b.bucket.Get(b.t.Context(), "x")
	return err
}

func isNil(err error) bool { return err == nil }

func mentions(text string) func(error) bool {
	return func(err error) bool { return err != nil && strings.Contains(err.Error(), text) }
}

func TestBucketErrorsSayWhatWhereAndKeepTheServersOwn(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{})
	_, err := b.bucket.Get(t.Context(), "x")
	if !errors.Is(err, jetstream.ErrKeyNotFound) || !mentions("get x in bucket gateways")(err) {
		t.Errorf("%v", err)
	}
	b.must(b.js.DeleteKeyValue(t.Context(), "gateways"))
	absent := newSource(t, b.js)
	if _, err := absent.bucket.Get(t.Context(), "x"); !errors.Is(err, jetstream.ErrBucketNotFound) || apierrors.IsNotFound(err) {
		t.Errorf("a bucket that is not there: %v", err)
	}
}

func TestBucketThatIsMadeAnewIsFoundAgain(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{LimitMarkerTTL: time.Minute})
	b.must(b.bucket.Purge(t.Context(), b.create("x")))
	b.must(b.js.DeleteKeyValue(t.Context(), "gateways"))
	natsserver.NewBucket(t, b.js, jetstream.KeyValueConfig{Bucket: "gateways"})
	x := b.create("x")
	if err := b.bucket.Purge(t.Context(), x); err == nil {
		t.Error("a marker with a lifetime was put into a bucket that has none")
	}
	b.must(b.bucket.Purge(t.Context(), x))
}

func TestDeletionIsRequestedOnceWhateverElseChanges(t *testing.T) {
	ctx := t.Context()
	b := newBed(t, jetstream.KeyValueConfig{})
	b.must(b.bucket.RequestDeletion(ctx, "x"))

	b.create("x")
	done := make(chan error)
	go func() {
		for range 20 {
			g, err := b.bucket.Get(ctx, "x")
			if err == nil {
				err = b.bucket.Update(ctx, g)
			}
			if err != nil && !apierrors.IsConflict(err) {
				done <- err
				return
			}
		}
		done <- nil
	}()
	b.must(b.bucket.RequestDeletion(ctx, "x"))
	b.must(<-done)
	g, err := b.bucket.Get(ctx, "x")
	b.must(err)
	if g.DeletionTimestamp == nil {
		t.Fatal("no deletion timestamp")
	}
	b.must(b.bucket.RequestDeletion(ctx, "x"))
	again, err := b.bucket.Get(ctx, "x")
	b.must(err)
	if again.Revision() != g.Revision() {
		t.Error("a second request wrote again")
	}
}

func TestFenceRefusesWritesAndNoReads(t *testing.T) {
	ctx := t.Context()
	b := newBed(t, jetstream.KeyValueConfig{})
	x := b.create("x")
	closed := errors.New("closed")
	fenced, err := natsinformer.NewBucket(natsinformer.BucketConfig[*Gateway]{JetStream: b.js, Name: "gateways", Fence: func() error { return closed }})
	b.must(err)

	for verb, write := range map[string]func() error{
		"create":           func() error { return fenced.Create(ctx, gateway("y")) },
		"update":           func() error { return fenced.Update(ctx, x) },
		"delete":           func() error { return fenced.Delete(ctx, x) },
		"purge":            func() error { return fenced.Purge(ctx, x) },
		"request deletion": func() error { return fenced.RequestDeletion(ctx, "x") },
	} {
		if err := write(); !errors.Is(err, closed) {
			t.Errorf("%s: %v", verb, err)
		}
	}
	all, err := fenced.List(ctx)
	b.must(err)
	if len(all) != 1 || all[0].Revision() != x.Revision() {
		t.Errorf("the bucket has %d entries, want x alone, unchanged", len(all))
	}
}

// A purged entry has a marker. A creation learns about it from the server: it may be a marker by
// the next leader.
func TestTheFenceIsAskedBeforeEachRequestThatWrites(t *testing.T) {
	ctx := t.Context()
	b := newBed(t, jetstream.KeyValueConfig{})
	b.must(b.bucket.Purge(ctx, b.create("x")))
	closed, asked := errors.New("closed"), 0
	fenced, err := natsinformer.NewBucket(natsinformer.BucketConfig[*Gateway]{JetStream: b.js, Name: "gateways", Fence: func() error {
		if asked++; asked > 1 {
			return closed
		}
		return nil
	}})
	b.must(err)
	if err := fenced.Create(ctx, gateway("x")); !errors.Is(err, closed) {
		t.Errorf("got %v, want %v", err, closed)
	}
	if left := b.bucketHolds(); len(left) > 0 {
		t.Errorf("the bucket holds %q", left)
	}
	asked = 0
	b.must(fenced.Create(ctx, gateway("y")))
	if asked != 1 {
		t.Errorf("the fence was asked %d times, want once", asked)
	}
}

func TestListNamesWhatCanNotBeDecodedAndReturnsTheRest(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{History: 3})
	b.create("b")
	b.update(b.create("a"), "new")
	b.put("bad", "{")
	b.put("null", "null")
	b.must(b.bucket.Delete(t.Context(), b.create("gone")))

	all, err := b.bucket.List(t.Context())
	var got []string
	for _, g := range all {
		got = append(got, text(g))
	}
	if diff := cmp.Diff([]string{"b", "a new"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !errors.Is(err, natsinformer.ErrUndecodable) || !mentions("entry bad of bucket gateways, revision 4")(err) || !mentions("entry null")(err) {
		t.Errorf("%v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if all, err := b.bucket.List(cancelled); all != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled list: %v, %v", all, err)
	}
}

// words is a codec that is not JSON: hosts, with spaces in between.
type words struct{}

func (words) Encode(g *Gateway) ([]byte, error) { return []byte(strings.Join(g.Hosts, " ")), nil }

func (words) Decode(data []byte) (*Gateway, error) {
	hosts := strings.Fields(string(data))
	if slices.Contains(hosts, "panic") {
		panic("on demand")
	}
	return &Gateway{Hosts: hosts}, nil
}

func TestCodecOfOnesOwn(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{})
	bucket, err := natsinformer.NewBucket(natsinformer.BucketConfig[*Gateway]{JetStream: b.js, Name: "gateways", Codec: words{}})
	b.must(err)
	b.must(bucket.Create(t.Context(), gateway("x", "a", "b")))
	entry, err := b.kv.Get(t.Context(), "x")
	b.must(err)
	if diff := cmp.Diff("a b", string(entry.Value())); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	g, err := bucket.Get(t.Context(), "x")
	b.must(err)
	if diff := cmp.Diff("x a,b", text(g)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b.put("x", "panic")
	if _, err := bucket.Get(t.Context(), "x"); !errors.Is(err, natsinformer.ErrUndecodable) || !mentions("words.Decode")(err) {
		t.Errorf("a codec that panics: %v", err)
	}
}

// pointing embeds its metadata by a pointer, which is nil in a new one.
type pointing struct{ *natsinformer.Meta }

func TestBucketConfigIsValidated(t *testing.T) {
	_, js := natsserver.Start(t).Connect(t)
	_, err := natsinformer.NewBucket(natsinformer.BucketConfig[*Gateway]{})
	if !errors.Is(err, informer.ErrInvalidConfig) || !mentions("JetStream")(err) || !mentions("Name")(err) {
		t.Errorf("%v", err)
	}
	_, err = natsinformer.NewBucket(natsinformer.BucketConfig[pointing]{JetStream: js, Name: "b"})
	if !errors.Is(err, informer.ErrInvalidConfig) || !mentions("by value")(err) {
		t.Errorf("%v", err)
	}
}
