package natsinformer_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// restarted returns another source of the bucket, that was not there before, and runs it.
func (b *bed) restarted() *bed {
	b.t.Helper()
	after := newSource(b.t, b.js)
	after.kv = b.kv
	after.run()
	after.sync()
	return after
}

// lastDeleted returns the object of the next Deleted event.
func lastDeleted(t *testing.T, b *bed) <-chan *Gateway {
	t.Helper()
	deleted := make(chan *Gateway, 10)
	t.Cleanup(b.source.Subscribe(func(e informer.Event) {
		if e.Type == informer.Deleted {
			deleted <- e.Object.(*Gateway)
		}
	}))
	return deleted
}

func TestDeletionsWhileNobodyWatchedAreAnnouncedAtTheStart(t *testing.T) {
	for name, test := range map[string]struct {
		history uint8
		do      func(b *bed)
		want    []string
	}{
		"a deletion, with history": {
			history: 2,
			do:      func(b *bed) { b.must(b.kv.Delete(t.Context(), "x")) },
			want:    []string{"deleted x new"},
		},
		"a deletion, without history": {
			history: 1,
			do:      func(b *bed) { b.must(b.kv.Delete(t.Context(), "x")) },
		},
		"a purge": {
			history: 2,
			do:      func(b *bed) { b.must(b.kv.Purge(t.Context(), "x")) },
		},
		"a deletion of something that could not be decoded": {
			history: 2,
			do:      func(b *bed) { b.put("x", "{"); b.must(b.kv.Delete(t.Context(), "x")) },
			want:    []string{"deleted x"},
		},
		"two deletions": {
			history: 3,
			do:      func(b *bed) { b.must(b.kv.Delete(t.Context(), "x")); b.must(b.kv.Delete(t.Context(), "x")) },
			want:    []string{"deleted x new"},
		},
		"a deletion and a new entry": {
			history: 5,
			do:      func(b *bed) { b.must(b.kv.Delete(t.Context(), "x")); b.put("x", "{}") },
			want:    []string{"added x backlog"},
		},
		"a request": {
			history: 1,
			do:      func(b *bed) { b.must(b.bucket.RequestDeletion(t.Context(), "x")) },
			want:    []string{"added x new backlog"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, jetstream.KeyValueConfig{History: test.history})
			b.update(b.create("x", "old"), "new")
			test.do(b)
			b.restarted().events.await(t, test.want...)
		})
	}
}

func TestManyDeletionsAreFoundAtTheStart(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{History: 2})
	const n = 450
	for i := range n {
		key := string(rune('a'+i%26)) + "." + time.Duration(i).String()
		b.create(key)
		b.must(b.kv.Delete(t.Context(), key))
	}
	after := b.restarted()
	after.events.mu.Lock()
	defer after.events.mu.Unlock()
	if got := len(after.events.lines); got != n {
		t.Errorf("%d deletions were announced, want %d", got, n)
	}
}

func TestDeletionsAreRepeatedToLaterSubscribersUntilTheyAreProcessed(t *testing.T) {
	ctx := t.Context()
	b := newBed(t, jetstream.KeyValueConfig{History: 2})
	b.create("before", "a")
	b.create("now", "b")
	b.must(b.kv.Delete(ctx, "before"))
	b.run()
	b.sync()
	b.must(b.kv.Delete(ctx, "now"))
	b.events.await(t, "deleted before a", "added now b backlog", "deleted now b")

	var late events
	defer b.source.Subscribe(late.handle)()
	deleted := lastDeleted(t, b)
	first, second := <-deleted, <-deleted
	late.mu.Lock()
	if len(late.lines) != 2 {
		t.Errorf("a later subscriber was told %q", late.lines)
	}
	late.mu.Unlock()

	b.must(b.source.Remove(ctx, first))
	b.must(b.source.Remove(ctx, second))
	operatortest.Eventually(t, "nothing is repeated any more", func() bool {
		var later events
		b.source.Subscribe(later.handle)()
		return len(later.lines) == 0
	})
	b.restarted().events.await(t)
	for _, key := range []string{"before", "now"} {
		history, err := b.kv.History(ctx, key)
		b.must(err)
		if len(history) != 1 || history[0].Operation() != jetstream.KeyValuePurge {
			t.Errorf("%s has a history of %d, want a purge marker alone", key, len(history))
		}
	}
}

func TestDeletionsThatOthersHaveProcessedAreNotRepeated(t *testing.T) {
	ctx := t.Context()
	for name, processed := range map[string]func(b *bed){
		"purged":                 func(b *bed) { b.must(b.kv.Purge(ctx, "x")) },
		"created again":          func(b *bed) { b.put("x", "[]") },
		"its marker was removed": func(b *bed) { b.must(b.kv.PurgeDeletes(ctx, jetstream.DeleteMarkersOlderThan(-1))) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, jetstream.KeyValueConfig{History: 2})
			b.create("x")
			b.run()
			b.sync()
			b.must(b.kv.Delete(ctx, "x"))
			b.events.await(t, "added x backlog", "deleted x")
			processed(b)
			operatortest.Eventually(t, "nothing is repeated any more", func() bool {
				repeated := false
				b.source.Subscribe(func(e informer.Event) { repeated = repeated || e.Type == informer.Deleted })()
				return !repeated
			})
		})
	}
}

func TestRemoveTakesOutWhatIsToBeDeletedAndNothingElse(t *testing.T) {
	ctx := t.Context()
	for name, test := range map[string]struct {
		// prepare returns the object to remove.
		prepare  func(b *bed) *Gateway
		conflict bool
		// left is what is in the bucket afterwards.
		left []string
	}{
		"asked for": {
			prepare: func(b *bed) *Gateway { b.must(b.bucket.RequestDeletion(ctx, "x")); return b.get("x") },
		},
		"not asked for": {
			prepare: func(b *bed) *Gateway { return b.get("x") },
			left:    []string{"x"},
		},
		"changed since": {
			prepare: func(b *bed) *Gateway {
				b.must(b.bucket.RequestDeletion(ctx, "x"))
				before := b.get("x")
				b.update(b.get("x"), "new")
				return before
			},
			conflict: true,
			left:     []string{"x new"},
		},
		"held by others": {
			prepare: func(b *bed) *Gateway {
				g := b.get("x")
				g.Finalizers = []string{"others"}
				b.update(g)
				b.must(b.bucket.RequestDeletion(ctx, "x"))
				return b.get("x")
			},
			left: []string{"x"},
		},
		"gone since": {
			prepare: func(b *bed) *Gateway {
				b.must(b.bucket.RequestDeletion(ctx, "x"))
				before := b.get("x")
				b.must(b.kv.Purge(ctx, "x"))
				return before
			},
		},
		"another one since": {
			prepare: func(b *bed) *Gateway {
				b.must(b.bucket.RequestDeletion(ctx, "x"))
				before := b.get("x")
				b.must(b.kv.Purge(ctx, "x"))
				b.create("x", "reborn")
				return before
			},
			left: []string{"x reborn"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, jetstream.KeyValueConfig{History: 3})
			b.create("x")
			err := b.source.Remove(ctx, test.prepare(b))
			if apierrors.IsConflict(err) != test.conflict || !test.conflict && err != nil {
				t.Errorf("error %v, want a conflict: %t", err, test.conflict)
			}
			if diff := cmp.Diff(test.left, b.bucketHolds()); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}

// plainlyDeleted has an entry x deleted while the source runs, and returns what a framework has of it then: a copy of what it was told.
func (b *bed) plainlyDeleted() *Gateway {
	b.t.Helper()
	b.create("x", "a")
	b.run()
	b.sync()
	deleted := lastDeleted(b.t, b)
	b.must(b.kv.Delete(b.t.Context(), "x"))
	return informer.Copy(<-deleted).(*Gateway)
}

func TestRemoveOfAPlainlyDeletedEntryLeavesNothingToAnnounce(t *testing.T) {
	ctx := t.Context()
	for name, test := range map[string]struct {
		// meanwhile happens between the deletion and Remove.
		meanwhile func(b *bed)
		left      []string
	}{
		"nothing since":       {meanwhile: func(*bed) {}},
		"deleted again since": {meanwhile: func(b *bed) { b.must(b.kv.Delete(ctx, "x")) }},
		"purged since":        {meanwhile: func(b *bed) { b.must(b.kv.Purge(ctx, "x")) }},
		"its marker is gone":  {meanwhile: func(b *bed) { b.must(b.kv.PurgeDeletes(ctx, jetstream.DeleteMarkersOlderThan(-1))) }},
		"another one since":   {meanwhile: func(b *bed) { b.create("x", "reborn") }, left: []string{"x reborn"}},
		"another one deleted": {meanwhile: func(b *bed) { b.create("x", "reborn"); b.must(b.kv.Delete(ctx, "x")) }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, jetstream.KeyValueConfig{History: 5})
			gone := b.plainlyDeleted()
			test.meanwhile(b)
			b.must(b.source.Remove(ctx, gone))
			if diff := cmp.Diff(test.left, b.bucketHolds()); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
			after := b.restarted()
			select {
			case again := <-lastDeleted(t, after):
				t.Errorf("announced again: %s", text(again))
			default:
			}
		})
	}
}

func TestTheLastStateOfAnEntryThatIsGoneIsNotStored(t *testing.T) {
	ctx := t.Context()
	b := newBed(t, jetstream.KeyValueConfig{History: 2})
	gone := b.plainlyDeleted()
	if err := b.bucket.Update(ctx, gone); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want that there is none", err)
	}
	if left := b.bucketHolds(); len(left) > 0 {
		t.Errorf("the bucket holds %q", left)
	}
	// Made anew it is as any other.
	b.must(b.bucket.Create(ctx, gone))
	b.must(b.source.Remove(ctx, gone))
	b.update(gone, "b")
	if diff := cmp.Diff([]string{"x b"}, b.bucketHolds()); diff != "" {
		t.Errorf("the bucket holds (-want +got):\n%s", diff)
	}
}

func TestRemoveOfAnythingElseIsAnError(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{})
	if err := b.source.Remove(t.Context(), "x"); err == nil {
		t.Error("a string was removed")
	}
}

func TestMarkersOfPurgesVanishWhereTheBucketSaysSo(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{LimitMarkerTTL: time.Second})
	b.create("y")
	b.run()
	b.sync()
	x := b.create("x")
	b.events.await(t, "added y backlog", "added x")
	b.must(b.bucket.Purge(t.Context(), x))
	b.events.await(t, "deleted x")
	// History waits for ever for a marker that vanishes while it is asked.
	operatortest.Eventually(t, "the marker is gone", func() error {
		status, err := b.kv.Status(t.Context())
		if err == nil && status.Values() != 1 {
			err = fmt.Errorf("there are %d messages, want that of y", status.Values())
		}
		return err
	})
	b.create("z")
	b.events.await(t, "added z")
}

func TestEntriesThatVanishWithoutATraceAreDeleted(t *testing.T) {
	// The entry is there for long enough to be seen on a busy machine.
	const timeToLive = 8 * time.Second
	for name, test := range map[string]struct {
		config jetstream.KeyValueConfig
		vanish func(b *bed)
	}{
		"by the bucket's time to live": {
			config: jetstream.KeyValueConfig{TTL: timeToLive},
			vanish: func(*bed) {},
		},
		"by the bucket's time to live, with markers": {
			config: jetstream.KeyValueConfig{TTL: timeToLive, LimitMarkerTTL: time.Second},
			vanish: func(*bed) {},
		},
		"by a purge of the stream": {
			vanish: func(b *bed) {
				stream, err := b.js.Stream(b.t.Context(), "KV_gateways")
				b.must(err)
				b.must(stream.Purge(b.t.Context(), jetstream.WithPurgeSubject("$KV.gateways.x")))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, test.config)
			b.run()
			b.sync()
			b.create("x", "a")
			b.events.await(t, "added x a")
			test.vanish(b)
			b.events.await(t, "deleted x a")
		})
	}
}

// withDeletions makes the bucket anew so that single messages can be deleted, which the client library forbids in what it makes. Messages
// with a lifetime of their own go in the same way.
func (b *bed) withDeletions() jetstream.Stream {
	b.t.Helper()
	stream, err := b.js.Stream(b.t.Context(), "KV_gateways")
	b.must(err)
	config := stream.CachedInfo().Config
	config.DenyDelete = false
	b.must(b.js.DeleteStream(b.t.Context(), config.Name))
	// The server may still be removing the folder of the one before.
	operatortest.Eventually(b.t, "the stream is made anew", func() error {
		stream, err = b.js.CreateStream(b.t.Context(), config)
		return err
	})
	return stream
}

func TestAValueWhoseSuccessorVanishedWithoutATraceIsShownAgain(t *testing.T) {
	for name, test := range map[string]struct {
		// later are the keys that are created after the value that vanishes.
		later []string
		want  []string
	}{
		"the newest of all messages": {want: []string{"updated x a"}},
		// What a server has forgotten may be more: all entries are looked at again.
		"one before others": {later: []string{"y"}, want: []string{"updated x a", "updated y"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, jetstream.KeyValueConfig{History: 2})
			stream := b.withDeletions()
			stop := b.run()
			b.sync()
			b.put("x", `{"hosts":["a"]}`)
			b.put("x", `{"hosts":["b"]}`)
			shown := []string{"added x a", "updated x b"}
			for _, key := range test.later {
				b.put(key, "{}")
				shown = append(shown, "added "+key)
			}
			b.events.await(t, shown...)
			b.must(stream.DeleteMsg(t.Context(), b.get("x").Revision()))
			if got := text(b.get("x")); got != "x a" {
				t.Errorf("the bucket has %q", got)
			}

			// It is listed again as after Relist, or after an outage.
			stop()
			b.run()
			b.events.awaitSorted(t, test.want...)
			b.update(b.get("x"), "c")
			b.create("z")
			b.events.await(t, "updated x c", "added z")
		})
	}
}

func TestASourceOfWhatIsNoPrimaryForgetsWhatIsDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		tell func(*natsinformer.Source[*Gateway])
		kept bool
	}{
		"by default":                       {tell: func(*natsinformer.Source[*Gateway]) {}, kept: true},
		"of secondaries":                   {tell: (*natsinformer.Source[*Gateway]).ForgetDeleted},
		"of secondaries, and of primaries": {tell: func(s *natsinformer.Source[*Gateway]) { s.KeepDeleted(); s.ForgetDeleted() }, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, jetstream.KeyValueConfig{History: 2})
			test.tell(b.source)
			before, last := b.create("before"), b.create("x", "a")
			b.must(b.bucket.Delete(t.Context(), before))
			b.run()
			b.sync()
			announced := lastDeleted(t, b)
			if test.kept {
				<-announced
			}
			b.must(b.bucket.Delete(t.Context(), last))
			if got := <-announced; text(got) != "x a" {
				t.Errorf("%s was deleted", text(got))
			}
			repeated := 0
			b.source.Subscribe(func(e informer.Event) {
				if e.Type == informer.Deleted {
					repeated++
				}
			})()
			if want := map[bool]int{true: 2}[test.kept]; repeated != want {
				t.Errorf("%d deletions are repeated, want %d", repeated, want)
			}
		})
	}
}
