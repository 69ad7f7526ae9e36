package natsinformer_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

// Gateway is an entity that leaves copying to its Bucket.
type Gateway struct {
	natsinformer.Meta `json:"metadata"`
	Hosts             []string `json:"hosts,omitempty"`
}

func gateway(name string, hosts ...string) *Gateway {
	return &Gateway{Meta: natsinformer.Meta{Name: name}, Hosts: hosts}
}

// text writes an entity as "name host,host".
func text(g *Gateway) string { return strings.TrimSpace(g.Name + " " + strings.Join(g.Hosts, ",")) }

// log collects log lines.
type log struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

func (l *log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.Write(line)
}

// count returns how many lines contain text.
func (l *log) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for line := range strings.Lines(l.lines.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func (l *log) logger(t testing.TB) micrologger.Logger {
	t.Helper()
	logger, err := micrologger.New(micrologger.Config{IOWriter: l})
	if err != nil {
		t.Fatal(err)
	}
	return logger
}

// events collects events as lines such as "updated x a,b".
type events struct {
	mu    sync.Mutex
	lines []string
}

func (r *events) handle(e informer.Event) {
	line := e.Type.String() + " " + text(e.Object.(*Gateway))
	if e.Backlog {
		line += " backlog"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}

// await waits until as many events have come as are wanted, and compares them.
func (r *events) await(t *testing.T, want ...string) {
	t.Helper()
	operatortest.Eventually(t, fmt.Sprintf("%d events have come", len(want)), func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.lines) < len(want) {
			return fmt.Errorf("so far: %q", r.lines)
		}
		return nil
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if diff := cmp.Diff(want, r.lines); diff != "" {
		t.Fatalf("events (-want +got):\n%s", diff)
	}
	r.lines = nil
}

// drop forgets the events with a prefix, except one: several changes of a key may be one event or
// several.
func (r *events) drop(prefix, except string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = slices.DeleteFunc(r.lines, func(line string) bool { return strings.HasPrefix(line, prefix) && line != except })
}

// awaitSorted is await without regard to the order.
func (r *events) awaitSorted(t *testing.T, want ...string) {
	t.Helper()
	operatortest.Eventually(t, fmt.Sprintf("%d events have come", len(want)), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.lines) < len(want) {
			return false
		}
		slices.Sort(r.lines)
		return true
	})
	r.await(t, want...)
}

// bed is a bucket on a server of its own, and a source of it.
type bed struct {
	t      *testing.T
	js     jetstream.JetStream
	kv     jetstream.KeyValue
	bucket *natsinformer.Bucket[*Gateway]
	source *natsinformer.Source[*Gateway]
	log    *log
	events events
}

// newBed has a bucket, and a source that does not run yet.
func newBed(t *testing.T, config jetstream.KeyValueConfig, options ...func(*natsinformer.SourceConfig[*Gateway])) *bed {
	t.Helper()
	_, js := natsserver.Start(t).Connect(t)
	config.Bucket = "gateways"
	kv := natsserver.NewBucket(t, js, config)
	b := newSource(t, js, options...)
	b.kv = kv
	return b
}

// newSource has a source that does not run yet, of a bucket that need not be there.
func newSource(t *testing.T, js jetstream.JetStream, options ...func(*natsinformer.SourceConfig[*Gateway])) *bed {
	t.Helper()
	bucket, err := natsinformer.NewBucket(natsinformer.BucketConfig[*Gateway]{JetStream: js, Name: "gateways"})
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{t: t, js: js, bucket: bucket, log: &log{}}
	config := natsinformer.SourceConfig[*Gateway]{Bucket: bucket, ProbeInterval: 200 * time.Millisecond, Logger: b.log.logger(t)}
	for _, option := range options {
		option(&config)
	}
	if b.source, err = natsinformer.NewSource(config); err != nil {
		t.Fatal(err)
	}
	b.source.Subscribe(b.events.handle)
	return b
}

// run runs the source until the returned function is called, or the test ends.
func (b *bed) run() (stop func()) {
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan error, 1)
	go func() { done <- b.source.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("Run: %v", err)
		}
	})
	b.t.Cleanup(stop)
	return stop
}

func (b *bed) sync() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	if err := b.source.WaitForSync(ctx); err != nil {
		b.t.Fatalf("wait for sync: %v, status %+v", err, b.source.Status())
	}
}

func (b *bed) create(name string, hosts ...string) *Gateway {
	b.t.Helper()
	g := gateway(name, hosts...)
	if err := b.bucket.Create(b.t.Context(), g); err != nil {
		b.t.Fatal(err)
	}
	return g
}

func (b *bed) update(g *Gateway, hosts ...string) {
	b.t.Helper()
	g.Hosts = hosts
	if err := b.bucket.Update(b.t.Context(), g); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) put(key, value string) {
	b.t.Helper()
	if _, err := b.kv.PutString(b.t.Context(), key, value); err != nil {
		b.t.Fatal(err)
	}
}

// must fails the test on an error.
func (b *bed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// stored returns the entities in the store as text, sorted.
func (b *bed) stored() []string {
	var all []string
	for _, g := range b.source.Entities() {
		all = append(all, text(g))
	}
	slices.Sort(all)
	return all
}

// awaitStored waits until the store holds these entities.
func (b *bed) awaitStored(want ...string) {
	b.t.Helper()
	operatortest.Eventually(b.t, "the store is up to date", func() error {
		if diff := cmp.Diff(want, b.stored()); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
}

func (b *bed) get(key string) *Gateway {
	b.t.Helper()
	g, err := b.bucket.Get(b.t.Context(), key)
	if err != nil {
		b.t.Fatal(err)
	}
	return g
}

// bucketHolds returns the entities in the bucket as text, sorted.
func (b *bed) bucketHolds() []string {
	b.t.Helper()
	entities, err := b.bucket.List(b.t.Context())
	b.must(err)
	var all []string
	for _, g := range entities {
		all = append(all, text(g))
	}
	slices.Sort(all)
	return all
}
