package natsinformer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

// fill creates a bucket with two gateways.
func fill(t *testing.T, js jetstream.JetStream, name string) {
	t.Helper()
	kv := natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: name})
	for _, key := range []string{"x", "y"} {
		if _, err := kv.PutString(t.Context(), key, "{}"); err != nil {
			t.Fatal(err)
		}
	}
}

// newStream creates the stream of the bucket gateways by hand.
func newStream(t *testing.T, js jetstream.JetStream, change func(*jetstream.StreamConfig)) {
	t.Helper()
	config := jetstream.StreamConfig{
		Name: "KV_gateways", MaxMsgsPerSubject: 1, AllowRollup: true, AllowDirect: true, DenyDelete: true, Discard: jetstream.DiscardNew,
	}
	change(&config)
	if _, err := js.CreateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
}

func TestABucketWithMessagesThatAreNoEntriesOfItIsNeverSynced(t *testing.T) {
	for name, create := range map[string]func(t *testing.T, js jetstream.JetStream){
		"a mirror": func(t *testing.T, js jetstream.JetStream) {
			fill(t, js, "origin")
			natsserver.NewMirror(t, js, "origin", "gateways")
		},
		"a mirror of an empty bucket": func(t *testing.T, js jetstream.JetStream) {
			natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: "origin"})
			natsserver.NewMirror(t, js, "origin", "gateways")
		},
		"a bucket with sources that keep their subjects": func(t *testing.T, js jetstream.JetStream) {
			fill(t, js, "origin")
			newStream(t, js, func(c *jetstream.StreamConfig) {
				c.Subjects, c.Sources = []string{"$KV.gateways.>"}, []*jetstream.StreamSource{{Name: "KV_origin"}}
			})
		},
		"a bucket with sources that keep their subjects, and entries of its own": func(t *testing.T, js jetstream.JetStream) {
			fill(t, js, "origin")
			newStream(t, js, func(c *jetstream.StreamConfig) {
				c.Subjects, c.Sources = []string{"$KV.gateways.>"}, []*jetstream.StreamSource{{Name: "KV_origin"}}
			})
			publish(t, js, "$KV.gateways.z")
		},
		"a stream that stores its messages under other subjects": func(t *testing.T, js jetstream.JetStream) {
			newStream(t, js, func(c *jetstream.StreamConfig) {
				c.Subjects = []string{"$KV.gateways.>"}
				c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: "$KV.gateways.>", Destination: "gateways.>"}
			})
			publish(t, js, "$KV.gateways.x")
		},
		"a bucket whose source is not there": func(t *testing.T, js jetstream.JetStream) {
			natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: "gateways", Sources: []*jetstream.StreamSource{{Name: "origin"}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, js := natsserver.Start(t).Connect(t)
			create(t, js)
			b := newSource(t, js)
			b.run()
			operatortest.Eventually(t, "the source says why it is not synced", func() error {
				if status := b.source.Status(); status.Synced || status.LastError == nil {
					return fmt.Errorf("status %+v", status)
				}
				return nil
			})
			if entities, err := b.bucket.List(t.Context()); err == nil {
				t.Errorf("List: %d entities and no error", len(entities))
			}
			if status := b.source.Status(); status.Synced || status.LastError == nil {
				t.Errorf("status %+v, want an error", status)
			}
		})
	}
}

func publish(t *testing.T, js jetstream.JetStream, subject string) {
	t.Helper()
	if _, err := js.Publish(t.Context(), subject, []byte("{}")); err != nil {
		t.Fatal(err)
	}
}

func TestAMirrorIsRefusedByEveryCallThatNamesTheBucketToOpen(t *testing.T) {
	_, js := natsserver.Start(t).Connect(t)
	fill(t, js, "origin")
	natsserver.NewMirror(t, js, "origin", "gateways")
	b := newSource(t, js)
	for name, call := range map[string]func(context.Context) error{
		"Get":             func(ctx context.Context) error { _, err := b.bucket.Get(ctx, "x"); return err },
		"List":            func(ctx context.Context) error { _, err := b.bucket.List(ctx); return err },
		"Create":          func(ctx context.Context) error { return b.bucket.Create(ctx, gateway("z")) },
		"RequestDeletion": func(ctx context.Context) error { return b.bucket.RequestDeletion(ctx, "x") },
	} {
		if err := call(t.Context()); err == nil || !strings.Contains(err.Error(), "open the bucket origin itself") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestABucketWithSourcesIsReadOnceItHasAllOfThem(t *testing.T) {
	_, js := natsserver.Start(t).Connect(t)
	const entries = 5000
	kv := natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: "origin", Storage: jetstream.MemoryStorage})
	for i := range entries {
		if _, err := js.PublishAsync(fmt.Sprintf("$KV.origin.x%d", i), []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
	b := newSource(t, js)
	b.run()
	natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: "gateways", Storage: jetstream.MemoryStorage, Sources: []*jetstream.StreamSource{{Name: "origin"}}})
	b.sync()
	if got := len(b.source.Entities()); got != entries {
		t.Fatalf("the source is synced with %d entities, want %d", got, entries)
	}
	if _, err := kv.PutString(t.Context(), "late", "{}"); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "a change of the origin comes", func() error {
		_, exists, err := b.source.Lookup("late")
		if err == nil && !exists {
			return fmt.Errorf("there are %d entities", len(b.source.Entities()))
		}
		return err
	})
	late, err := b.bucket.Get(t.Context(), "late")
	if err == nil {
		late.Hosts = []string{"a"}
		err = b.bucket.Update(t.Context(), late)
	}
	if err != nil {
		t.Fatal(err)
	}
}
