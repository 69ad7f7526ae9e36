package natsinformer

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

// entry is an entry as a watch delivers it.
type entry struct {
	jetstream.KeyValueEntry
	key       string
	revision  uint64
	delta     uint64
	value     []byte
	operation jetstream.KeyValueOp
}

func (e entry) Key() string      { return e.key }
func (e entry) Revision() uint64 { return e.revision }
func (e entry) Delta() uint64    { return e.delta }
func (e entry) Value() []byte    { return e.value }

// Operation implements jetstream.KeyValueEntry.
func (e entry) Operation() jetstream.KeyValueOp { return e.operation }

func TestAListingIsCompleteWhenTheServerSaysSo(t *testing.T) {
	mark := jetstream.KeyValueEntry(nil)
	for name, test := range map[string]struct {
		delivered []jetstream.KeyValueEntry
		complete  bool
	}{
		"nothing yet":                            {},
		"an empty bucket":                        {delivered: []jetstream.KeyValueEntry{mark}, complete: true},
		"more to come":                           {delivered: []jetstream.KeyValueEntry{entry{key: "a", revision: 1, delta: 2}}},
		"the last one":                           {delivered: []jetstream.KeyValueEntry{entry{key: "a", revision: 1, delta: 1}, entry{key: "b", revision: 2}}, complete: true},
		"a mark of the client with more to come": {delivered: []jetstream.KeyValueEntry{entry{key: "a", revision: 1, delta: 2}, mark}},
		"newer than all there was, more to come": {delivered: []jetstream.KeyValueEntry{entry{key: "a", revision: 9, delta: 5}}, complete: true},
	} {
		t.Run(name, func(t *testing.T) {
			l, complete := newListing(9), false
			for _, e := range test.delivered {
				complete = l.add(e)
			}
			if complete != test.complete {
				t.Errorf("complete = %t, want %t", complete, test.complete)
			}
		})
	}
}

type thing struct {
	Meta `json:"metadata"`
}

func TestAListingThatCanNotBeAllIsRefused(t *testing.T) {
	ctx := t.Context()
	recreate := func(t *testing.T, js jetstream.JetStream, _ jetstream.KeyValue) {
		if err := js.DeleteKeyValue(ctx, "b"); err != nil {
			t.Fatal(err)
		}
		kv := natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: "b"})
		for range 5 {
			if _, err := kv.PutString(ctx, "z", ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, test := range map[string]struct {
		listed []string
		// meanwhile happens before the listing is verified.
		meanwhile func(t *testing.T, js jetstream.JetStream, kv jetstream.KeyValue)
		want      error
	}{
		"all":            {listed: []string{"x", "y"}},
		"one missing":    {listed: []string{"x"}, want: errIncomplete},
		"none":           {want: errIncomplete},
		"another bucket": {listed: []string{"x", "y"}, meanwhile: recreate, want: errRecreated},
		"one vanished meanwhile": {listed: []string{"x"}, meanwhile: func(t *testing.T, _ jetstream.JetStream, kv jetstream.KeyValue) {
			if err := errors.Join(kv.Delete(ctx, "y"), kv.PurgeDeletes(ctx, jetstream.DeleteMarkersOlderThan(-1))); err != nil {
				t.Fatal(err)
			}
		}},
		"one new meanwhile": {listed: []string{"x", "y"}, meanwhile: func(t *testing.T, _ jetstream.JetStream, kv jetstream.KeyValue) {
			if _, err := kv.PutString(ctx, "z", ""); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, js := natsserver.Start(t).Connect(t)
			kv := natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: "b"})
			b, err := NewBucket(BucketConfig[*thing]{JetStream: js, Name: "b"})
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"x", "y"} {
				if _, err := kv.PutString(ctx, name, "{}"); err != nil {
					t.Fatal(err)
				}
			}
			bucket, before, err := b.inspect(ctx)
			if err != nil {
				t.Fatal(err)
			}
			l := newListing(before.lastSeq)
			for i, name := range test.listed {
				l.add(entry{key: name, revision: uint64(i + 1)})
			}
			if test.meanwhile != nil {
				test.meanwhile(t, js, kv)
			}
			if err := bucket.verify(ctx, before, l); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
}
