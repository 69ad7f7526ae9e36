package natsinformer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

// isPermanent reports whether a framework does not retry after an error.
func isPermanent(err error) bool { return errors.As(err, new(*backoff.PermanentError)) }

func TestAKeyThatIsTooLongIsAPermanentErrorAndLeavesTheConnectionOpen(t *testing.T) {
	_, js := natsserver.Start(t).Connect(t)
	kv := natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: "gateways", History: 5})
	b := newSource(t, js)
	b.kv = kv
	longest := 0
	for length := 3900; length <= 4200; length += 5 {
		err := b.bucket.Create(t.Context(), gateway(strings.Repeat("k", length)))
		switch {
		case err == nil:
			longest = length
		case !errors.Is(err, natsinformer.ErrTooLarge) || !isPermanent(err):
			t.Fatalf("a key of %d characters: %v", length, err)
		}
	}
	if longest < 3950 || longest >= 4096 {
		t.Errorf("the longest key has %d characters", longest)
	}
	for _, length := range []int{4096, 100_000} {
		key := strings.Repeat("k", length)
		_, err := b.bucket.Get(t.Context(), key)
		if !apierrors.IsNotFound(err) {
			t.Errorf("get a key of %d characters: %v", length, err)
		}
	}
	if js.Conn().IsClosed() || js.Conn().Stats().Reconnects > 0 {
		t.Fatal("the server has closed the connection")
	}

	// Whatever can be created can be followed, updated and deleted, also while nobody watches.
	key := strings.Repeat("k", longest)
	g, err := b.bucket.Get(t.Context(), key)
	b.must(err)
	b.update(g, "a")
	b.must(b.bucket.Delete(t.Context(), g))
	b.run()
	b.sync()
	operatortest.Eventually(t, "the deletion is announced with the last state", func() error {
		b.events.mu.Lock()
		defer b.events.mu.Unlock()
		for _, line := range b.events.lines {
			if strings.HasPrefix(line, "deleted "+key+" a") {
				return nil
			}
		}
		return fmt.Errorf("%d events", len(b.events.lines))
	})
	if js.Conn().IsClosed() {
		t.Error("the server has closed the connection")
	}
}

func TestAValueThatIsTooLargeIsAPermanentErrorWithBothSizes(t *testing.T) {
	const limit = 2000
	b := newBed(t, jetstream.KeyValueConfig{MaxValueSize: limit})
	for size, says := range map[int]string{
		3000:    fmt.Sprintf("the MaxValueSize of the bucket is %d", limit),
		2 << 20: fmt.Sprintf("the max_payload of the server is %d", 1<<20),
	} {
		err := b.bucket.Create(t.Context(), gateway("x", strings.Repeat("h", size)))
		if !errors.Is(err, natsinformer.ErrTooLarge) || !isPermanent(err) {
			t.Fatalf("error %v", err)
		}
		for _, says := range []string{says, fmt.Sprintf("the value has %d", size/1000)} {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%q is missing in: %v", says, err)
			}
		}
	}
}

func TestAnEntryCanBeRemovedFromAFullBucket(t *testing.T) {
	for name, test := range map[string]struct {
		history uint8
		remove  func(*bed, *Gateway) error
		full    bool
	}{
		"purge":                              {history: 1, remove: func(b *bed, g *Gateway) error { return b.bucket.Purge(b.t.Context(), g) }},
		"purge, with a history":              {history: 5, remove: func(b *bed, g *Gateway) error { return b.bucket.Purge(b.t.Context(), g) }},
		"delete":                             {history: 1, remove: func(b *bed, g *Gateway) error { return b.bucket.Delete(b.t.Context(), g) }},
		"delete, with a history":             {history: 5, remove: func(b *bed, g *Gateway) error { return b.bucket.Delete(b.t.Context(), g) }},
		"requested deletion, with a history": {history: 5, remove: requestAndRemove},
		"requested deletion":                 {history: 1, remove: requestAndRemove, full: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, jetstream.KeyValueConfig{History: test.history})
			g := b.create("x", strings.Repeat("h", 500))
			b.update(g, strings.Repeat("i", 300))
			other := b.create("y")
			b.run()
			b.sync()
			natsserver.Fill(t, b.js, "gateways")
			if err := b.bucket.Create(t.Context(), gateway("z")); !errors.Is(err, natsinformer.ErrFull) || !isPermanent(err) {
				t.Fatalf("create in a full bucket: %v", err)
			}
			if b.source.Status().Degraded == nil {
				t.Error("the source does not say that the bucket is full")
			}

			err := test.remove(b, g)
			if test.full {
				if !errors.Is(err, natsinformer.ErrFull) || !isPermanent(err) || !strings.Contains(err.Error(), "raise its MaxBytes") {
					t.Errorf("error %v", err)
				}
				return
			}
			b.must(err)
			b.awaitStored("y")
			if _, err := b.bucket.Get(t.Context(), "x"); !apierrors.IsNotFound(err) {
				t.Errorf("the entry: %v", err)
			}
			if err := b.bucket.Purge(t.Context(), g); err != nil {
				t.Errorf("purge of what is gone: %v", err)
			}
			b.must(b.bucket.Purge(t.Context(), other))
		})
	}
}

// requestAndRemove has an entry removed as a framework does when a deletion was requested.
func requestAndRemove(b *bed, g *Gateway) error {
	if err := b.bucket.RequestDeletion(b.t.Context(), g.Name); err != nil {
		return err
	}
	requested, err := b.bucket.Get(b.t.Context(), g.Name)
	if err != nil {
		return err
	}
	return b.source.Remove(b.t.Context(), requested)
}

func TestAPurgeInAFullBucketLeavesANewerValue(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{History: 5})
	read := b.create("x", "a")
	newer := b.get("x")
	b.update(newer, "b")
	natsserver.Fill(t, b.js, "gateways")
	if err := b.bucket.Purge(t.Context(), read); !apierrors.IsConflict(err) {
		t.Errorf("error %v, want a conflict", err)
	}
	if got := text(b.get("x")); got != "x b" {
		t.Errorf("the entry is %q", got)
	}
}

func TestASourceIsNotDegradedOnceThereIsRoom(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{})
	b.run()
	b.sync()
	drain := natsserver.Fill(t, b.js, "gateways")
	if err := b.bucket.Create(t.Context(), gateway("x")); !errors.Is(err, natsinformer.ErrFull) {
		t.Fatalf("error %v", err)
	}
	drain()
	operatortest.Eventually(t, "the source is not degraded", func() error { return b.source.Status().Degraded })
	b.create("x")
}

func TestADeniedSubjectIsToldAsAPermissionAndNotAsATimeout(t *testing.T) {
	for name, test := range map[string]struct {
		denied string
		call   func(context.Context, *natsinformer.Bucket[*Gateway]) error
	}{
		"inspect": {"$JS.API.STREAM.INFO.KV_gateways", func(ctx context.Context, b *natsinformer.Bucket[*Gateway]) error { _, err := b.List(ctx); return err }},
		"read": {"$JS.API.STREAM.MSG.GET.KV_gateways", func(ctx context.Context, b *natsinformer.Bucket[*Gateway]) error {
			_, err := b.Get(ctx, "x")
			return err
		}},
		"write": {"$KV.gateways.>", func(ctx context.Context, b *natsinformer.Bucket[*Gateway]) error { return b.Create(ctx, gateway("y")) }},
	} {
		t.Run(name, func(t *testing.T) {
			server, err := natsserver.Run(t.Context(), natsserver.Config{Dir: t.TempDir(), Deny: []string{test.denied}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(server.Stop)
			conn, js := server.Connect(t)
			if _, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "gateways"}); err != nil {
				t.Fatal(err)
			}
			hasty, err := jetstream.New(conn, jetstream.WithDefaultTimeout(300*time.Millisecond))
			if err != nil {
				t.Fatal(err)
			}
			bucket, err := natsinformer.NewBucket(natsinformer.BucketConfig[*Gateway]{JetStream: hasty, Name: "gateways"})
			if err != nil {
				t.Fatal(err)
			}
			err = test.call(t.Context(), bucket)
			if !errors.Is(err, nats.ErrPermissionViolation) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v", err)
			}
		})
	}
}
