package natsinformer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

// awaitStale waits until the source says that it is cut off.
func (b *bed) awaitStale() {
	b.t.Helper()
	operatortest.Eventually(b.t, "the source is stale", func() bool { return b.source.Status().LastError != nil })
}

// awaitFresh waits until the source has been in contact after a time.
func (b *bed) awaitFresh(since time.Time) {
	b.t.Helper()
	operatortest.Eventually(b.t, "the source is fresh", func() error {
		status := b.source.Status()
		if status.LastError == nil && !status.LastContact.After(since) {
			return fmt.Errorf("last contact %s ago", time.Since(status.LastContact))
		}
		return status.LastError
	})
}

// kvAnswers returns nil when the bucket can be reached by the test itself.
func (b *bed) kvAnswers() error {
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Second)
	defer cancel()
	_, err := b.kv.Status(ctx)
	return err
}

// consumers returns how many watches the server serves, or -1 if it does not say.
func (b *bed) consumers() int {
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Second)
	defer cancel()
	stream, err := b.js.Stream(ctx, "KV_gateways")
	if err != nil {
		return -1
	}
	return stream.CachedInfo().State.Consumers
}

// linked is a bed with a link between its source and the server. The test has its own connection.
type linked struct {
	*bed
	server *natsserver.Server
	link   *natsserver.Link
	// conn is the connection of the source.
	conn *nats.Conn
}

func newLinked(t *testing.T, config jetstream.KeyValueConfig, options ...nats.Option) *linked {
	t.Helper()
	server := natsserver.Start(t)
	_, direct := server.Connect(t)
	link := natsserver.NewLink(t, server.URL())
	conn, js := natsserver.Connect(t, link.URL(), options...)
	config.Bucket = "gateways"
	kv := natsserver.NewBucket(t, direct, config)
	b := newSource(t, js)
	b.bucket, b.kv, b.js = newSource(t, direct).bucket, kv, direct
	return &linked{bed: b, server: server, link: link, conn: conn}
}

func TestAProbeIsContact(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{})
	b.run()
	b.sync()
	b.awaitFresh(time.Now())
	b.awaitFresh(time.Now())
}

func TestASourceWaitsForItsBucket(t *testing.T) {
	_, js := natsserver.Start(t).Connect(t)
	b := newSource(t, js)
	b.run()
	b.awaitStale()
	if status := b.source.Status(); status.Synced || !errors.Is(status.LastError, jetstream.ErrBucketNotFound) {
		t.Errorf("status %+v, want not synced, and %v", status, jetstream.ErrBucketNotFound)
	}
	natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: "gateways"})
	b.sync()
	b.create("x")
	b.events.await(t, "added x")
	operatortest.Eventually(t, "the outage and its end are logged", func() bool { return b.log.count("can be followed again") > 0 })
	if began, ended := b.log.count("can't be followed"), b.log.count("can be followed again"); began != 1 || ended != 1 {
		t.Errorf("the outage was logged %d times, and its end %d times", began, ended)
	}
}

func TestABucketThatIsGoneMakesTheSourceStaleAndDeletesNothing(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{})
	b.create("x")
	b.run()
	b.sync()
	b.must(b.js.DeleteKeyValue(t.Context(), "gateways"))
	b.awaitStale()
	b.awaitStored("x")
	b.events.await(t, "added x backlog")
}

func TestABucketThatIsMadeAnewIsCompared(t *testing.T) {
	for name, between := range map[string]func(b *bed){
		"at once":             func(*bed) {},
		"when it was noticed": func(b *bed) { b.awaitStale() },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, jetstream.KeyValueConfig{})
			b.put("changed", `{"hosts":["a"]}`)
			b.put("gone", "{}")
			b.put("same", "{}")
			b.run()
			b.sync()
			b.events.await(t, "added changed a backlog", "added gone backlog", "added same backlog")

			b.must(b.js.DeleteKeyValue(t.Context(), "gateways"))
			between(b)
			b.kv = natsserver.NewBucket(t, b.js, jetstream.KeyValueConfig{Bucket: "gateways"})
			// It has the revision that the one before had.
			b.put("changed", `{"hosts":["b"]}`)
			b.put("new", "{}")
			b.put("same", "{}")
			b.awaitStored("changed b", "new", "same")
			b.put("new", `{"hosts":["c"]}`)
			b.awaitStored("changed b", "new c", "same")
		})
	}
}

// The probes are too rare here to be of help.
func TestASourceNoticesTheEndOfItsConnectionAtOnce(t *testing.T) {
	server := natsserver.Start(t)
	_, js := server.Connect(t)
	natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: "gateways"})
	b := newSource(t, js, func(c *config) { c.ProbeInterval = time.Hour })
	b.create("x")
	b.run()
	b.sync()
	server.Stop()
	b.awaitStale()
	stale := time.Now()
	server.Restart(t)
	b.awaitFresh(stale)
	b.create("y")
	b.events.await(t, "added x backlog", "added y")
}

func TestNothingThatWasAcknowledgedIsLostWhenTheServerIsKilled(t *testing.T) {
	server := natsserver.StartProcess(t)
	_, js := server.Connect(t)
	natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: "gateways", History: 2})
	b := newSource(t, js)
	b.run()
	b.sync()

	const writes = 300
	kill := make(chan int, writes)
	written := make(chan struct{})
	acknowledged := map[string]int{}
	go func() {
		defer close(written)
		for i := range writes {
			name := fmt.Sprintf("k%d", i%20)
			if b.writeOnce(name, i) {
				acknowledged[name] = i
			}
			kill <- i
		}
	}()
	for i := range writes {
		if <-kill; i%100 == 50 {
			server.Restart(t)
		}
	}
	<-written

	operatortest.Eventually(t, "store and bucket are equal", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		entities, err := b.bucket.List(ctx)
		if err != nil {
			return err
		}
		for _, g := range entities {
			if g.Generation < int64(acknowledged[g.Name]) {
				t.Fatalf("%s has write %d, but %d was acknowledged", g.Name, g.Generation, acknowledged[g.Name])
			}
			stored, _, err := b.source.Lookup(g.Name)
			if err != nil {
				return err
			}
			if stored == nil || stored.Revision() != g.Revision() {
				return fmt.Errorf("%s has revision %d in the bucket, the store has %+v", g.Name, g.Revision(), stored)
			}
		}
		if got := len(b.source.Entities()); got != len(entities) {
			return fmt.Errorf("%d entries in the store, %d in the bucket", got, len(entities))
		}
		return nil
	})
}

// writeOnce makes write i the newest of a key, or fails because the server is gone. A write with a
// lost answer does not count.
func (b *bed) writeOnce(name string, i int) bool {
	ctx, cancel := context.WithTimeout(b.t.Context(), 500*time.Millisecond)
	defer cancel()
	g, err := b.bucket.Get(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		g = gateway(name)
		g.Generation = int64(i)
		err = b.bucket.Create(ctx, g)
	case err == nil:
		g.Generation = int64(i)
		err = b.bucket.Update(ctx, g)
	}
	return err == nil
}

func TestWhatHappenedDuringAnOutageIsFoundOut(t *testing.T) {
	inattentive := nats.PingInterval(time.Hour)
	for name, breakdown := range map[string]struct {
		options []nats.Option
		begin   func(l *linked)
	}{
		"the link is cut": {
			begin: func(l *linked) { l.link.Cut() },
		},
		"the link is cut for longer than the server keeps the watch": {
			begin: func(l *linked) {
				l.link.Cut()
				operatortest.Eventually(l.t, "the server has given up the watch", func() bool { return l.consumers() == 0 })
			},
		},
		"the link is frozen, nobody notices": {
			options: []nats.Option{inattentive},
			begin:   func(l *linked) { l.link.Freeze() },
		},
		"the link is frozen, the client gives up": {
			begin: func(l *linked) {
				l.link.Freeze()
				operatortest.Eventually(l.t, "the client gives up", func() bool { return l.conn.Status() == nats.RECONNECTING })
			},
		},
		"the link is frozen, the server gives up": {
			options: []nats.Option{inattentive},
			begin:   func(l *linked) { l.link.Freeze(); l.awaitStale(); l.server.Restart(l.t) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			b := newLinked(t, jetstream.KeyValueConfig{History: 2}, breakdown.options...)
			names := []string{"changed", "deleted", "kept", "overflown", "purged", "reborn", "untraceable"}
			entities := map[string]*Gateway{}
			for _, name := range names {
				entities[name] = b.create(name)
			}
			b.run()
			b.sync()
			b.awaitStored(names...)
			b.events.await(t, "added changed backlog", "added deleted backlog", "added kept backlog", "added overflown backlog",
				"added purged backlog", "added reborn backlog", "added untraceable backlog")

			breakdown.begin(b)
			b.awaitStale()
			operatortest.Eventually(t, "the test is connected", func() error { return b.kvAnswers() })
			// An answer that had come just before has been taken in by now.
			b.awaitStale()
			before := b.source.Status().LastContact
			b.update(entities["changed"], "a")
			for i := range 10 {
				b.update(entities["overflown"], fmt.Sprint(i))
			}
			b.must(b.bucket.Delete(ctx, entities["untraceable"]))
			b.must(b.kv.PurgeDeletes(ctx, jetstream.DeleteMarkersOlderThan(-1)))
			b.must(b.bucket.Delete(ctx, entities["deleted"]))
			b.must(b.bucket.Purge(ctx, entities["purged"]))
			b.must(b.bucket.Purge(ctx, entities["reborn"]))
			b.create("reborn", "again")
			b.must(b.bucket.Delete(ctx, b.create("brief")))
			b.create("new")
			if now := b.source.Status(); now.LastError == nil || now.LastContact != before {
				t.Errorf("status during the outage: %+v", now)
			}
			b.link.Restore()

			b.awaitFresh(before)
			b.awaitStored("changed a", "kept", "new", "overflown 9", "reborn again")
			b.events.drop("updated overflown", "updated overflown 9")
			b.events.drop("added brief", "")
			b.events.awaitSorted(t, "added new", "added reborn again", "deleted brief", "deleted deleted", "deleted purged", "deleted reborn",
				"deleted untraceable", "updated changed a", "updated overflown 9")
		})
	}
}

// TestAnEntryThatIsDeletedOnceMoreDuringAnOutageIsToldOfOnce deletes an entry that was deleted
// before, which writes a second marker.
func TestAnEntryThatIsDeletedOnceMoreDuringAnOutageIsToldOfOnce(t *testing.T) {
	b := newLinked(t, jetstream.KeyValueConfig{History: 5})
	b.create("x")
	b.run()
	b.sync()
	b.must(b.kv.Delete(t.Context(), "x"))
	b.events.await(t, "added x backlog", "deleted x")
	b.link.Cut()
	b.awaitStale()
	before := b.source.Status().LastContact
	b.must(b.kv.Delete(t.Context(), "x"))
	b.must(b.bucket.Delete(t.Context(), b.create("brief")))
	b.link.Restore()
	b.awaitFresh(before)
	b.events.drop("added brief", "")
	b.events.await(t, "deleted brief")
}

// An old disk is restored. The client is connected to another server of the cluster, and notices
// nothing.
func TestAServerThatForgetsWhatItHasShownIsListedAnew(t *testing.T) {
	cluster := natsserver.StartCluster(t)
	_, direct := cluster.Connect(t)
	natsserver.NewBucket(t, direct, jetstream.KeyValueConfig{Bucket: "gateways"})
	keeper := cluster.Leader(t, direct, "gateways")
	members := cluster.Members()
	_, js := members[(slices.Index(members, keeper)+1)%len(members)].Connect(t)
	b := newSource(t, js)
	x := b.create("x")
	disk, copied := filepath.Join(keeper.Dir(), "jetstream", "$G", "streams", "KV_gateways"), filepath.Join(t.TempDir(), "copied")
	keeper.Kill()
	b.must(os.CopyFS(copied, os.DirFS(disk)))
	keeper.Start(t)
	b.run()
	b.sync()
	for i := range 5 {
		b.update(x, fmt.Sprint(i))
	}
	b.awaitStored("x 4")

	keeper.Kill()
	b.must(errors.Join(os.RemoveAll(disk), os.CopyFS(disk, os.DirFS(copied))))
	keeper.Start(t)
	operatortest.Eventually(t, "there is another x", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		kv, err := js.KeyValue(ctx, "gateways")
		if err != nil {
			return err
		}
		_, err = kv.PutString(ctx, "x", `{"hosts":["anew"]}`)
		return err
	})
	b.awaitStored("x anew")
}

// The client does not notice the loss of a consumer while the connection holds. The source does.
func TestASourceSurvivesTheLossOfItsConsumer(t *testing.T) {
	ctx := t.Context()
	b := newBed(t, jetstream.KeyValueConfig{})
	b.create("x")
	b.run()
	b.sync()
	stream, err := b.js.Stream(ctx, "KV_gateways")
	b.must(err)
	removed := 0
	for name := range stream.ConsumerNames(ctx).Name() {
		b.must(stream.DeleteConsumer(ctx, name))
		removed++
	}
	if removed == 0 {
		t.Fatal("there is no consumer, want that of the source")
	}
	b.create("y")
	b.must(b.kv.Purge(ctx, "x"))
	b.events.awaitSorted(t, "added x backlog", "added y", "deleted x")
	if b.log.count("the watch is stuck") == 0 {
		t.Error("the source did not find out by itself")
	}
}

func TestAWatchThatIsUpToDateIsLeftAlone(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{})
	b.create("x")
	// The newest message of the bucket is invisible.
	b.must(b.bucket.Delete(t.Context(), b.create("y")))
	b.must(b.kv.PurgeDeletes(t.Context(), jetstream.DeleteMarkersOlderThan(-1)))
	b.run()
	b.sync()
	for range 5 {
		b.awaitFresh(time.Now())
	}
	if got := b.log.count("listed again"); got != 0 {
		t.Errorf("it was listed %d times again", got)
	}
}

func TestAConnectionThatIsClosedEndsRunWithAnError(t *testing.T) {
	server := natsserver.Start(t)
	_, js := server.Connect(t)
	natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: "gateways"})
	conn, own := server.Connect(t, nats.MaxReconnects(2))
	b := newSource(t, own)
	ended := make(chan error, 2)
	for range 2 {
		go func() { ended <- b.source.Run(t.Context()) }()
	}
	b.sync()
	if got := b.log.count("nats.MaxReconnects(-1)"); got != 1 {
		t.Errorf("told %d times at the start that the connection may be given up", got)
	}
	conn.Close()
	for range 2 {
		if err := <-ended; !errors.Is(err, nats.ErrConnectionClosed) {
			t.Errorf("Run returned %v", err)
		}
	}
	if err := b.source.Status().LastError; !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("the status says %v", err)
	}
	// Once more, with a connection that is closed from the start.
	if err := b.source.Run(t.Context()); !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("Run returned %v", err)
	}
}

func TestAConnectionThatReconnectsForEverIsNotToldOf(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{})
	b.run()
	b.sync()
	if got := b.log.count("nats.MaxReconnects(-1)"); got != 0 {
		t.Errorf("told %d times of a connection that is never given up", got)
	}
}

func TestMarkersThatExpireHaveTheBucketNotListedAgain(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{LimitMarkerTTL: time.Second})
	stream, err := b.js.Stream(t.Context(), "KV_gateways")
	b.must(err)
	b.create("stays", "a")
	b.run()
	b.sync()
	for i := range 10 {
		g := b.create(fmt.Sprintf("goes-%d", i))
		b.must(b.bucket.Purge(t.Context(), g))
	}
	b.awaitStored("stays a")
	operatortest.Eventually(t, "all markers have expired", func() error {
		info, err := stream.Info(t.Context())
		if err == nil && info.State.NumSubjects != 1 {
			err = fmt.Errorf("there are %d subjects", info.State.NumSubjects)
		}
		return err
	})
	for range 3 {
		b.awaitFresh(time.Now())
	}
	if got := b.log.count("listed again"); got != 0 {
		t.Errorf("the bucket was listed again %d times", got)
	}
}
