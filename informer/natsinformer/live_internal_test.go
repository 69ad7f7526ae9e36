package natsinformer

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/giantswarm/micrologger/microloggertest"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

// witness is a source that has shown something of every key.
type witness struct {
	mu   sync.Mutex
	seen shown
	// asked is how often it was asked.
	asked int
}

func (w *witness) shown(string) (shown, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	return w.seen, true
}

func (w *witness) begin(string, *informer.Author) *write[*thing] { return nil }

// newThings is a bucket of things, empty, with the time at which it was made.
func newThings(t *testing.T, patience time.Duration) (*Bucket[*thing], jetstream.KeyValue, time.Time) {
	t.Helper()
	_, js := natsserver.Start(t).Connect(t)
	kv := natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: "b", History: 2})
	b, err := NewBucket(BucketConfig[*thing]{JetStream: js, Name: "b", CatchUpTimeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	_, state, err := b.inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return b, kv, state.created
}

func putThing(t *testing.T, kv jetstream.KeyValue, key string) uint64 {
	t.Helper()
	revision, err := kv.PutString(t.Context(), key, "{}")
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

func TestR11AnAnswerOlderThanWhatWasShownIsAnErrorAndNoAnswer(t *testing.T) {
	const last = 2
	for name, test := range map[string]struct {
		key      string
		revision uint64
		live     bool
		other    time.Duration // by which the bucket that was shown is older
		want     func(error) bool
		patience time.Duration
	}{
		"a value, and a newer one was shown":                 {"x", last + 1, true, 0, isBehind, 20 * time.Millisecond},
		"a value, and its deletion was shown":                {"x", last + 1, false, 0, isBehind, 20 * time.Millisecond},
		"nothing, and a value was shown":                     {"y", last + 1, true, 0, isBehind, 20 * time.Millisecond},
		"nothing, and a value was shown that the server had": {"y", last, true, 0, apierrors.IsNotFound, time.Minute},
		"nothing, and a deletion was shown":                  {"y", last + 1, false, 0, apierrors.IsNotFound, time.Minute},
		"the value that was shown":                           {"x", last, true, 0, isNil, time.Minute},
		"a value after a deletion":                           {"x", last - 1, false, 0, isNil, time.Minute},
		"a value of another bucket":                          {"x", last + 1, true, time.Hour, isNil, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			b, kv, created := newThings(t, test.patience)
			putThing(t, kv, "x")
			if revision := putThing(t, kv, "x"); revision != last {
				t.Fatalf("the bucket is at revision %d, want %d", revision, last)
			}
			stop := b.follow(&witness{seen: shown{test.revision, test.live, created.Add(-test.other)}})
			defer stop()
			if _, err := b.Get(t.Context(), test.key); !test.want(err) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Another server may have been asked for the state than for the answer where there are several.
func TestR11AnOlderValueIsBelievedWhereTheOnlyServerHadTheNewerOne(t *testing.T) {
	for _, test := range []struct {
		lastSeq    uint64
		replicated bool
		older      bool
	}{
		{lastSeq: 7, older: true}, {lastSeq: 8}, {lastSeq: 7, replicated: true, older: true}, {lastSeq: 8, replicated: true, older: true},
	} {
		created := time.Now()
		state := bucketState{created: created, lastSeq: test.lastSeq, replicated: test.replicated}
		if got := (message{revision: 5, value: true}).olderThan(shown{8, true, created}, state); got != test.older {
			t.Errorf("at %d, replicated %t: %t, want %t", test.lastSeq, test.replicated, got, test.older)
		}
	}
}

func isNil(err error) bool    { return err == nil }
func isBehind(err error) bool { return errors.Is(err, ErrBehind) && !apierrors.IsNotFound(err) }

func TestR11AReadAsksAgainUntilTheServersHaveCaughtUp(t *testing.T) {
	b, kv, created := newThings(t, time.Minute)
	behind := putThing(t, kv, "x")
	w := &witness{seen: shown{revision: behind + 1, live: true, created: created}}
	defer b.follow(w)()

	answer := make(chan uint64, 1)
	go func() {
		got, err := b.Get(t.Context(), "x")
		if err != nil {
			t.Error(err)
			answer <- 0
			return
		}
		answer <- got.Revision()
	}()
	operatortest.Eventually(t, "it is asked again", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.asked > 2
	})
	newer := putThing(t, kv, "x")
	if got := <-answer; got != newer {
		t.Errorf("revision %d, want %d", got, newer)
	}
}

func TestR11ReadsAskTheLeaderAndNotWhicheverReplicaAnswers(t *testing.T) {
	b, kv, _ := newThings(t, time.Minute)
	putThing(t, kv, "x")
	var mu sync.Mutex
	var asked []string
	conn := b.config.JetStream.Conn()
	for _, subject := range []string{"$JS.API.DIRECT.GET.>", "$JS.API.STREAM.MSG.GET.>"} {
		_, err := conn.Subscribe(subject, func(msg *nats.Msg) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, msg.Subject)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Get(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if err := b.RequestDeletion(t.Context(), "nothing"); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "both questions were overheard", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(asked) >= 2
	})
	for _, subject := range asked {
		if strings.Contains(subject, "DIRECT") {
			t.Errorf("asked %s", subject)
		}
	}
}

func TestR11AListingThatLacksTheNewestEntryIsNotComplete(t *testing.T) {
	b, kv, _ := newThings(t, time.Minute)
	bucket, err := b.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	covers := func(reached uint64, want bool) {
		t.Helper()
		got, err := bucket.covers(t.Context(), &listing{reached: reached, target: 99})
		if err != nil || got != want {
			t.Errorf("a listing that has reached %d covers the bucket: %t (%v), want %t", reached, got, err, want)
		}
	}
	covers(0, true)
	first := putThing(t, kv, "x")
	covers(0, false)
	covers(first, true)
	last := putThing(t, kv, "y")
	covers(first, false)
	covers(last, true)
	// The last one is removed without a trace.
	if err := errors.Join(kv.Purge(t.Context(), "y"), kv.PurgeDeletes(t.Context(), jetstream.DeleteMarkersOlderThan(-1))); err != nil {
		t.Fatal(err)
	}
	covers(first, true)
}

// newThingSource returns a source of things that does not run: the test feeds it.
func newThingSource(t *testing.T, filter func(string) bool) *Source[*thing] {
	t.Helper()
	b, _, created := newThings(t, 20*time.Millisecond)
	s, err := NewSource(SourceConfig[*thing]{Bucket: b, Filter: filter, Logger: microloggertest.New()})
	if err != nil {
		t.Fatal(err)
	}
	s.mirror.meet(bucketState{created: created}, 0)
	return s
}

func TestR11WhatIsReadIsNotOlderThanWhatWasWritten(t *testing.T) {
	s := newThingSource(t, func(key string) bool { return key != "refused" })
	m := s.mirror
	floor := func(key string, revision uint64, live bool) {
		t.Helper()
		if got, _ := m.shown(key); got.revision != revision || got.live != live {
			t.Errorf("the floor of %s is %d, live %t; want %d, %t", key, got.revision, got.live, revision, live)
		}
	}
	if m.begin("refused", nil) != nil {
		t.Error("a write of a key that the filter refuses is noted")
	}
	m.begin("x", nil).stored(t.Context(), 0, 5, []byte("{}"))
	floor("x", 5, true)
	m.apply(entry{key: "x", revision: 4, value: []byte("{}")})
	floor("x", 5, true)
	m.begin("x", nil).ended(t.Context(), 5, 6, byPurge)
	floor("x", 6, false)
	m.apply(entry{key: "x", revision: 5, value: []byte("{}")})
	floor("x", 6, false)
	if got, exists, _ := s.Lookup("x"); exists {
		t.Errorf("what was purged is read as %v", got)
	}
	m.apply(entry{key: "x", revision: 6, operation: jetstream.KeyValuePurge})
	floor("x", 6, false)
}

// TestR11AWriteToABucketThatMayBeAnotherOneIsListedBeforeItReturns is about revisions that the
// known bucket has assigned already.
func TestR11AWriteToABucketThatMayBeAnotherOneIsListedBeforeItReturns(t *testing.T) {
	s := newThingSource(t, nil)
	m := s.mirror
	m.apply(entry{key: "x", revision: 9, value: []byte("{}")})
	m.config.Logger = microloggertest.New()
	m.bucket.config.CatchUpTimeout = time.Minute
	w := m.begin("x", nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.stored(t.Context(), 0, 3, []byte("{}"))
	}()
	<-m.again
	select {
	case <-ended:
		t.Error("it was not waited for")
	default:
	}
	m.meet(bucketState{created: m.created, lastSeq: 3}, m.newest)
	l := newListing(3)
	l.add(entry{key: "x", revision: 3, value: []byte("{}")})
	m.replace(l, nil)
	m.counts.listings.Add(1)
	<-ended
	if got, exists, err := s.Lookup("x"); !exists || got.Revision() != 3 {
		t.Errorf("read %v, %v", got, err)
	}
}

func TestR11AListingOlderThanWhatWasSeenIsThrownAway(t *testing.T) {
	m := newThingSource(t, nil).mirror
	m.apply(entry{key: "x", revision: 5, value: []byte("{}")})
	m.apply(entry{key: "y", revision: 8, value: []byte("{}")})
	for revision, want := range map[uint64]bool{4: true, 5: false, 6: false} {
		l := newListing(9)
		l.add(entry{key: "x", revision: revision})
		if got := m.doubts(l, true, time.Hour); got != want {
			t.Errorf("revision %d: %t, want %t", revision, got, want)
		}
	}
	l := newListing(9)
	l.add(entry{key: "x", revision: 4})
	if !m.doubts(l, true, time.Hour) {
		t.Error("a listing that has not come as far as what was seen is believed")
	}
	if m.doubts(l, true, 0) {
		t.Error("what is lost is waited for for ever")
	}
	if m.doubts(l, false, time.Hour) {
		t.Error("what is lost where there are no replicas is waited for")
	}
	l.add(entry{key: "z", revision: 6})
	if m.doubts(l, true, time.Hour) {
		t.Error("what is missing from a listing that has come further is waited for")
	}
	behind := bucketState{created: m.created, lastSeq: 7, replicated: true}
	if err := m.follows(behind, 8, time.Hour); !errors.Is(err, ErrBehind) {
		t.Errorf("a leader that is behind: %v", err)
	}
	if err := m.follows(behind, 8, 0); err != nil {
		t.Errorf("a bucket that has lost its last entries: %v", err)
	}
	for name, state := range map[string]bucketState{
		"up to date":       {created: m.created, lastSeq: 8, replicated: true},
		"without replicas": {created: m.created, lastSeq: 7},
		"made anew":        {created: time.Now(), replicated: true},
	} {
		if err := m.follows(state, 8, time.Hour); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
