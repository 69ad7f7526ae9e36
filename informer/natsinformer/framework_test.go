package natsinformer_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// recording is a resource that records its calls.
type recording struct {
	mu    sync.Mutex
	calls []string
	// failures is how often deletions fail.
	failures int
}

func (r *recording) Name() string { return "recording" }

func (r *recording) EnsureCreated(_ context.Context, obj any) error {
	r.add("created " + text(obj.(*Gateway)))
	return nil
}

func (r *recording) EnsureDeleted(_ context.Context, obj any) error {
	r.add("deleted " + text(obj.(*Gateway)))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failures > 0 {
		r.failures--
		return errors.New("on demand")
	}
	return nil
}

func (r *recording) add(call string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
}

// await waits for as many calls as are wanted, and compares them.
func (r *recording) await(t *testing.T, want ...string) {
	t.Helper()
	got := func() []string {
		r.mu.Lock()
		defer r.mu.Unlock()
		return append([]string(nil), r.calls...)
	}
	operatortest.Eventually(t, "the resource is called", func() bool { return len(got()) >= len(want) })
	if diff := cmp.Diff(want, got()); diff != "" {
		t.Fatalf("calls (-want +got):\n%s", diff)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = nil
}

// reconcile runs a framework over a new source of the bucket until stop is called.
func (b *bed) reconcile(failures int) (r *recording, stop func()) {
	b.t.Helper()
	source := newSource(b.t, b.js).source
	r = &recording{failures: failures}
	f, err := framework.New(framework.Config{
		Name: "test", Source: source, Resources: []framework.Resource{r}, Logger: b.log.logger(b.t),
		BackOffFactory: func() backoff.BackOff { return backoff.NewConstantBackOff(time.Millisecond) },
	})
	b.must(err)
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		b.must(<-done)
	})
	b.t.Cleanup(stop)
	return r, stop
}

func TestDeletionsAreProcessedAcrossRestarts(t *testing.T) {
	ctx := t.Context()
	b := newBed(t, jetstream.KeyValueConfig{History: 2})
	for _, name := range []string{"asked", "plain"} {
		b.create(name, "host")
		r, stop := b.reconcile(0)
		r.await(t, "created "+name+" host")
		stop()

		switch name {
		case "asked":
			b.must(b.bucket.RequestDeletion(ctx, name))
		case "plain":
			b.must(b.kv.Delete(ctx, name))
		}
		r, stop = b.reconcile(2)
		r.await(t, "deleted "+name+" host", "deleted "+name+" host", "deleted "+name+" host")
		operatortest.Eventually(t, "the entry is purged", func() error {
			history, err := b.kv.History(ctx, name)
			if err == nil && (len(history) != 1 || history[0].Operation() != jetstream.KeyValuePurge) {
				return errors.New("its history is there")
			}
			return err
		})
		stop()
	}
	b.create("last")
	r, _ := b.reconcile(0)
	r.await(t, "created last")
}
