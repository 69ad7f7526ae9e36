package natsinformer_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

// wantRead checks that the store has exactly an entity, or nothing where that is nil.
func (b *bed) wantRead(step string, want *Gateway) {
	b.t.Helper()
	got, exists, err := b.source.Lookup("x")
	switch {
	case err != nil || exists != (want != nil):
		b.t.Fatalf("after %s the source has it: %t, %v", step, exists, err)
	case exists && (got.Revision() != want.Revision() || text(got) != text(want)):
		b.t.Fatalf("after %s the source has %q at revision %d, want %q at %d", step, text(got), got.Revision(), text(want), want.Revision())
	}
}

// writeAndRead makes every kind of write, and reads after each.
func (b *bed) writeAndRead() {
	b.t.Helper()
	ctx := b.t.Context()
	for range 5 {
		g := b.create("x", "a")
		b.wantRead("a creation", g)
		b.update(g, "b")
		b.wantRead("an update", g)
		b.must(b.bucket.RequestDeletion(ctx, "x"))
		if marked, exists, err := b.source.Lookup("x"); !exists || marked.DeletionTimestamp == nil {
			b.t.Fatalf("after a request for its deletion there is %v, %v", marked, err)
		} else {
			b.must(b.source.Remove(ctx, marked))
		}
		b.wantRead("the end of its deletion", nil)
		g = b.create("x", "c")
		b.wantRead("another creation", g)
		b.must(b.bucket.Delete(ctx, g))
		b.wantRead("a deletion", nil)
		g = b.create("x", "d")
		b.must(b.bucket.Purge(ctx, g))
		b.wantRead("a purge", nil)
	}
}

func TestR11WhatIsWrittenIsReadAtOnce(t *testing.T) {
	for name, config := range map[string]jetstream.KeyValueConfig{"without history": {}, "with history": {History: 5}} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, config)
			b.run()
			b.sync()
			b.writeAndRead()
		})
	}
	t.Run("on a replicated bucket", func(t *testing.T) {
		_, js := natsserver.StartCluster(t).Connect(t)
		natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: "gateways", Replicas: 3})
		b := newSource(t, js)
		b.run()
		b.sync()
		b.writeAndRead()
	})
}

// author is a reconciliation that writes. It counts how often a source's events are a reason for
// it, and for another key.
type author struct {
	informer.Author
	own, others atomic.Int64
}

// newAuthor returns an author that follows the source of a bed, and its context.
func newAuthor(b *bed) (*author, context.Context) {
	a := &author{Author: informer.Author{Framework: "f", Key: informer.Key{Name: "primary"}}}
	b.source.Subscribe(func(e informer.Event) {
		e.Wake("f", a.Key, func() { a.own.Add(1) })
		e.Wake("f", informer.Key{Name: "other"}, func() { a.others.Add(1) })
	})
	return a, context.WithValue(b.t.Context(), informer.AuthorKey, &a.Author)
}

func TestR11OwnWritesWakeNobodyAndThoseOfOthersDo(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{History: 5})
	b.run()
	b.sync()
	a, ctx := newAuthor(b)
	const rounds = 10
	for range rounds {
		g := gateway("x", "a")
		b.must(b.bucket.Create(ctx, g))
		g.Hosts = []string{"b"}
		b.must(b.bucket.Update(ctx, g))
		b.must(b.bucket.Delete(ctx, g))
	}
	// What comes later goes through the same watch.
	b.put("y", `{}`)
	operatortest.Eventually(t, "the other one is shown", func() bool { return a.others.Load() == 3*rounds+1 })
	if own := a.own.Load(); own != 1 {
		t.Errorf("the author was woken %d times by one change of another", own)
	}
}

// lossy is a connection on which answers to updates can be lost.
type lossy struct {
	jetstream.JetStream
	mu   sync.Mutex
	lose bool
}

func (l *lossy) KeyValue(ctx context.Context, bucket string) (jetstream.KeyValue, error) {
	kv, err := l.JetStream.KeyValue(ctx, bucket)
	return &lossyBucket{kv, l}, err
}

type lossyBucket struct {
	jetstream.KeyValue
	lossy *lossy
}

var errLost = errors.New("the answer was lost")

func (b *lossyBucket) Update(ctx context.Context, key string, value []byte, last uint64) (uint64, error) {
	revision, err := b.KeyValue.Update(ctx, key, value, last)
	b.lossy.mu.Lock()
	defer b.lossy.mu.Unlock()
	if err == nil && b.lossy.lose {
		err = errLost
	}
	return revision, err
}

func TestR11ALostAnswerWakes(t *testing.T) {
	_, js := natsserver.Start(t).Connect(t)
	natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: "gateways"})
	l := &lossy{JetStream: js}
	b := newSource(t, l)
	b.run()
	b.sync()
	a, ctx := newAuthor(b)
	g := gateway("x", "a")
	b.must(b.bucket.Create(ctx, g))
	l.mu.Lock()
	l.lose = true
	l.mu.Unlock()
	g.Hosts = []string{"b"}
	if err := b.bucket.Update(ctx, g); !errors.Is(err, errLost) {
		t.Fatalf("got %v, want %v", err, errLost)
	}
	operatortest.Eventually(t, "the author is woken", func() bool { return a.own.Load() == 1 })
	b.awaitStored("x b")
}

func TestR11AWriteToABucketThatWasMadeAnewIsReadAtOnce(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{}, func(c *natsinformer.SourceConfig[*Gateway]) { c.ProbeInterval = time.Hour })
	b.run()
	b.sync()
	for range 3 {
		b.create("old")
		b.must(b.bucket.Purge(t.Context(), b.get("old")))
	}
	b.must(b.js.DeleteKeyValue(t.Context(), "gateways"))
	b.kv = natsserver.NewBucket(t, b.js, jetstream.KeyValueConfig{Bucket: "gateways"})
	b.wantRead("a creation", b.create("x", "a"))
}

func TestR4AWriteInWhichAFencePanicsKeepsNoLaterChangeFromItsAuthor(t *testing.T) {
	for name, write := range map[string]func(context.Context, *natsinformer.Bucket[*Gateway], *Gateway) error{
		"an update": func(ctx context.Context, b *natsinformer.Bucket[*Gateway], g *Gateway) error { return b.Update(ctx, g) },
		"a removal": func(ctx context.Context, b *natsinformer.Bucket[*Gateway], g *Gateway) error { return b.Purge(ctx, g) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, jetstream.KeyValueConfig{})
			x := b.create("x")
			fenced, err := natsinformer.NewBucket(natsinformer.BucketConfig[*Gateway]{
				JetStream: b.js, Name: "gateways", Fence: func() error { panic("in a fence") },
			})
			b.must(err)
			s := newSource(t, b.js, func(c *natsinformer.SourceConfig[*Gateway]) { c.Bucket = fenced })
			author := &informer.Author{Framework: "f", Key: informer.Key{Name: "primary"}}
			woken := make(chan struct{}, 10)
			s.run()
			s.sync()
			t.Cleanup(s.source.Subscribe(func(e informer.Event) {
				if !e.Backlog {
					e.Wake("f", author.Key, func() { woken <- struct{}{} })
				}
			}))
			func() {
				defer func() {
					if recover() == nil {
						t.Error("the fence has not been asked")
					}
				}()
				_ = write(context.WithValue(t.Context(), informer.AuthorKey, author), fenced, x)
			}()
			b.update(x, "later")
			operatortest.Eventually(t, "the change of somebody else wakes who wanted to write before", func() bool { return len(woken) > 0 })
		})
	}
}
