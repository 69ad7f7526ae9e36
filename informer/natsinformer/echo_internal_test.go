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
	}{
		"it is seen":            {entry{key: "x", revision: 1, value: []byte(value)}, 1},
		"another value is seen": {entry{key: "x", revision: 2, value: []byte(value)}, 2},
		"another key is seen":   {entry{key: "y", revision: 2, value: []byte(value)}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			codec := &countingCodec{}
			m := mirrorOf(t, js, codec)
			m.begin("x", nil).stored(t.Context(), 0, 1, []byte(value))
			m.apply(test.seen)
			if codec.decoded != test.decoded {
				t.Errorf("decoded %d times, want %d", codec.decoded, test.decoded)
			}
			if known, exists := m.known(test.seen.key); known != test.seen.revision || !exists {
				t.Errorf("revision %d is known, exists %t; want %d", known, exists, test.seen.revision)
			}
		})
	}
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
