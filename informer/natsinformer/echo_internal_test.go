package natsinformer

import (
	"testing"

	"github.com/giantswarm/micrologger/microloggertest"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

// countingCodec counts how often something is decoded.
type countingCodec struct {
	JSON[*thing]
	decoded int
}

// Decode implements Codec.
func (c *countingCodec) Decode(data []byte) (*thing, error) {
	c.decoded++
	return c.JSON.Decode(data)
}

func TestWhatWasWrittenIsNotDecodedAgainWhenItIsSeen(t *testing.T) {
	const value = `{"metadata":{"generation":1}}`
	_, js := natsserver.Start(t).Connect(t)
	for name, test := range map[string]struct {
		// seen is what comes after the write of revision 1 with the value.
		seen    entry
		decoded int
		// kept is how much is kept for what may come yet.
		kept int
	}{
		"it is seen":                              {entry{key: "x", revision: 1, value: []byte(value)}, 1, 0},
		"another value is seen":                   {entry{key: "x", revision: 2, value: []byte(value)}, 2, 0},
		"its revision is seen with another value": {entry{key: "x", revision: 1, value: []byte(`{"metadata":{"generation":2}}`)}, 2, 0},
		"another key is seen":                     {entry{key: "y", revision: 2, value: []byte(value)}, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			codec := &countingCodec{}
			m := mirrorOf(t, js, codec)
			m.begin("x", nil).stored(t.Context(), 0, 1, []byte(value))
			m.apply(test.seen)
			if codec.decoded != test.decoded || len(m.written) != test.kept {
				t.Errorf("decoded %d times, want %d; %d are kept, want %d", codec.decoded, test.decoded, len(m.written), test.kept)
			}
			known := m.keys[test.seen.key]
			if known.revision != test.seen.revision || known.entity.revision != test.seen.revision {
				t.Errorf("revision %d is known, of an entity of revision %d; want %d", known.revision, known.entity.revision, test.seen.revision)
			}
		})
	}
	t.Run("it is seen before the answer comes", func(t *testing.T) {
		codec := &countingCodec{}
		m := mirrorOf(t, js, codec)
		write := m.begin("x", nil)
		m.apply(entry{key: "x", revision: 1, value: []byte(value)})
		write.stored(t.Context(), 0, 1, []byte(value))
		if len(m.written) != 0 {
			t.Error("it is kept although nothing comes any more")
		}
	})
	t.Run("its deletion is seen", func(t *testing.T) {
		m := mirrorOf(t, js, &countingCodec{})
		m.begin("x", nil).stored(t.Context(), 0, 1, []byte(value))
		m.apply(entry{key: "x", revision: 2, operation: jetstream.KeyValueDelete})
		if len(m.written) != 0 {
			t.Error("it is kept although it is deleted")
		}
	})
	t.Run("all is listed anew", func(t *testing.T) {
		m := mirrorOf(t, js, &countingCodec{})
		m.begin("x", nil).stored(t.Context(), 0, 1, []byte(value))
		m.replace(newListing(2), nil)
		if len(m.written) != 0 {
			t.Error("it is kept although it is not there any more")
		}
	})
}

// mirrorOf returns the mirror of a source that does not run.
func mirrorOf(t *testing.T, js jetstream.JetStream, codec Codec[*thing]) *mirror[*thing] {
	t.Helper()
	bucket, err := NewBucket(BucketConfig[*thing]{JetStream: js, Name: "b", Codec: codec})
	if err != nil {
		t.Fatal(err)
	}
	source, err := NewSource(SourceConfig[*thing]{Bucket: bucket, Logger: microloggertest.New()})
	if err != nil {
		t.Fatal(err)
	}
	source.feed.Replace("", []informer.Item{})
	return source.mirror
}
