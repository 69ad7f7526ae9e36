package natsinformer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

type config = natsinformer.SourceConfig[*Gateway]

func TestSourceAnnouncesWhatHappensToEntries(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{})
	x := b.create("x", "a")
	b.create("y")
	b.run()
	b.sync()
	b.events.await(t, "added x a backlog", "added y backlog")

	// Each is waited for: the server does not deliver a value that has been replaced by then.
	b.update(x, "b")
	b.events.await(t, "updated x b")
	z := b.create("z")
	b.events.await(t, "added z")
	b.must(b.bucket.Delete(t.Context(), x))
	b.events.await(t, "deleted x b")
	b.must(b.bucket.Purge(t.Context(), z))
	b.events.await(t, "deleted z")
	b.awaitStored("y")
}

func TestSourceOfAnEmptyBucketIsSynced(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{})
	b.run()
	b.sync()
	b.create("x")
	b.events.await(t, "added x")
}

func TestAnEntryThatTookThePlaceOfAnotherOneIsANewObject(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{})
	b.put("x", `{"metadata":{"uid":"1"},"hosts":["a"]}`)
	b.run()
	b.sync()
	b.put("x", `{"metadata":{"uid":"2"},"hosts":["b"]}`)
	b.events.await(t, "added x a backlog", "deleted x a", "added x b")
}

func TestReadsCarryTheRevisionAndBelongToTheCaller(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{}, func(c *config) {
		c.Indexers = map[string]informer.IndexFunc{"host": func(obj any) []string { return obj.(*Gateway).Hosts }}
	})
	written := b.create("x", "a")
	b.run()
	b.sync()

	spoil := func(g *Gateway) {
		if g.Revision() != written.Revision() || g.Name != "x" || g.UID != written.UID {
			t.Errorf("got %s with revision %d and uid %s", g.Name, g.Revision(), g.UID)
		}
		g.Hosts[0] = "spoiled"
	}
	g, exists, err := b.source.Lookup("x")
	b.must(err)
	if !exists {
		t.Fatal("x does not exist")
	}
	spoil(g)
	obj, _, err := b.source.Get(informer.Key{Name: "x"})
	b.must(err)
	spoil(obj.(*Gateway))
	spoil(b.source.Entities()[0])
	indexed, err := b.source.EntitiesByIndex("host", "a")
	b.must(err)
	spoil(indexed[0])
	live, _, err := b.source.GetLive(t.Context(), informer.Key{Name: "x"})
	b.must(err)
	spoil(live.(*Gateway))
	b.awaitStored("x a")

	g, _, err = b.source.Lookup("x")
	b.must(err)
	b.update(g, "b")
	b.awaitStored("x b")
	if _, exists, err := b.source.Lookup("y"); exists || err != nil {
		t.Errorf("y: exists %t, error %v", exists, err)
	}
	if _, err := b.source.EntitiesByIndex("color", "red"); err == nil {
		t.Error("an index that is not there gives no error")
	}
}

func TestBucketsHaveNoNamespaces(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{})
	b.create("x")
	b.run()
	b.sync()
	key := informer.Key{Namespace: "n", Name: "x"}
	if _, exists, err := b.source.Get(key); exists || err != nil {
		t.Errorf("Get: exists %t, error %v", exists, err)
	}
	if _, exists, err := b.source.GetLive(t.Context(), key); exists || err != nil {
		t.Errorf("GetLive: exists %t, error %v", exists, err)
	}
}

// Route copies itself.
type Route struct {
	natsinformer.Meta `json:"metadata"`
	Path              []string `json:"path"`
	copies            int
}

func (r *Route) Copy() any {
	return &Route{Meta: r.DeepCopy(), Path: slices.Clone(r.Path), copies: r.copies + 1}
}

func TestEntitiesThatCopyThemselvesAreNotDecodedAgain(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{})
	bucket, err := natsinformer.NewBucket(natsinformer.BucketConfig[*Route]{JetStream: b.js, Name: "gateways"})
	b.must(err)
	source, err := natsinformer.NewSource(natsinformer.SourceConfig[*Route]{Bucket: bucket, Logger: b.log.logger(t)})
	b.must(err)
	b.must(bucket.Create(t.Context(), &Route{Meta: natsinformer.Meta{Name: "x"}, Path: []string{"a"}}))
	go func() { _ = source.Run(t.Context()) }()
	b.must(source.WaitForSync(t.Context()))

	r, _, err := source.Lookup("x")
	b.must(err)
	r.Path[0] = "spoiled"
	r, _, err = source.Lookup("x")
	b.must(err)
	if r.copies != 1 || r.Path[0] != "a" || r.Revision() != 1 {
		t.Errorf("got %+v", r)
	}
}

func TestCopyOfAnEntityFromABucketSharesNothing(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{})
	original := b.create("x", "a")
	original.Hosts = append(original.Hosts, "not stored yet")
	copied := informer.Copy(original).(*Gateway)
	copied.Hosts[0] = "spoiled"
	if diff := cmp.Diff([]string{"a", "not stored yet"}, original.Hosts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if copied.Revision() != original.Revision() || copied.Hosts[1] != "not stored yet" {
		t.Errorf("the copy is %+v", copied)
	}
}

func TestAnEntryThatCanNotBeDecodedIsAnErrorOfItsKeyOnly(t *testing.T) {
	registry := prometheus.NewRegistry()
	byHost := func(obj any) []string { return obj.(*Gateway).Hosts }
	b := newBed(t, jetstream.KeyValueConfig{History: 3}, func(c *config) {
		c.Registerer = registry
		c.Indexers = map[string]informer.IndexFunc{"host": byHost}
		c.Relist = 100 * time.Millisecond
	})
	undecodable := func(want int) {
		t.Helper()
		expected := fmt.Sprintf(`# HELP operatorkit_natsinformer_undecodable_entries Entries whose value can't be decoded.
# TYPE operatorkit_natsinformer_undecodable_entries gauge
operatorkit_natsinformer_undecodable_entries{source="bucket gateways"} %d
`, want)
		// The event of an entry may arrive earlier than the change of the metric.
		operatortest.Eventually(t, "the metric says so", func() error {
			return testutil.GatherAndCompare(registry, strings.NewReader(expected), "operatorkit_natsinformer_undecodable_entries")
		})
	}
	b.create("good", "a")
	b.put("never", "{")
	b.run()
	b.sync()
	b.events.await(t, "added good a backlog", "added never backlog")
	undecodable(1)

	b.put("good", "{")
	b.events.await(t, "updated good a")
	undecodable(2)
	for _, key := range []string{"good", "never"} {
		g, exists, err := b.source.Lookup(key)
		if g != nil || !exists || !errors.Is(err, natsinformer.ErrUndecodable) {
			t.Errorf("%s: %v, exists %t, error %v", key, g, exists, err)
		}
		live, exists, err := b.source.GetLive(t.Context(), informer.Key{Name: key})
		if live != nil || !exists || !errors.Is(err, natsinformer.ErrUndecodable) {
			t.Errorf("%s live: %v, exists %t, error %v", key, live, exists, err)
		}
	}
	b.create("other")
	b.events.await(t, "added other")
	b.awaitStored("other")
	// It is listed over and over here, and each faulty revision is logged once all the same.
	listed := gathered(t, registry, "operatorkit_natsinformer_listings_total")
	operatortest.Eventually(t, "it is listed again", func() bool {
		return gathered(t, registry, "operatorkit_natsinformer_listings_total") > listed+2
	})

	b.put("good", `{"hosts":["b"]}`)
	b.events.await(t, "updated good b")
	b.awaitStored("good b", "other")
	undecodable(1)

	b.put("good", "[]")
	b.events.await(t, "updated good b")
	b.must(b.kv.Delete(t.Context(), "good"))
	b.events.await(t, "deleted good b")
	b.must(b.kv.Delete(t.Context(), "never"))
	b.events.await(t, "deleted never")
	undecodable(0)
	if got := b.log.count("can't be decoded"); got != 3 {
		t.Errorf("logged %d times, want once for each of 3 revisions", got)
	}
}

func gathered(t *testing.T, gatherer prometheus.Gatherer, name string) float64 {
	t.Helper()
	families, err := gatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			m := family.GetMetric()[0]
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

func TestEventsOfUndecodableEntriesSayWhy(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{})
	faults := make(chan error, 2)
	b.source.Subscribe(func(e informer.Event) { faults <- e.Object.(*Gateway).DecodeError() })
	b.put("x", "{")
	b.run()
	if err := <-faults; !errors.Is(err, natsinformer.ErrUndecodable) {
		t.Errorf("an entry that can't be decoded: %v", err)
	}
	b.put("x", "{}")
	if err := <-faults; err != nil {
		t.Errorf("after its repair: %v", err)
	}
}

func TestFilteredEntriesDoNotExist(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{}, func(c *config) {
		c.Filter = func(key string) bool { return strings.HasPrefix(key, "our/") }
	})
	b.create("our/x")
	b.put("their/bad", "{")
	b.run()
	b.sync()
	b.put("their/bad", "[")
	b.must(b.kv.Delete(t.Context(), "their/bad"))
	b.create("our/y")
	b.events.await(t, "added our/x backlog", "added our/y")
	if got := b.source.Status().Objects; got != 2 {
		t.Errorf("%d objects, want 2", got)
	}
}

func TestKeysMayHaveAllCharactersThatBucketsAllow(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{History: 2})
	keys := []string{"a", "A.b", "ns/name", "-_=./Z9", "a.b.c.d", "=", "/", strings.Repeat("k", 400)}
	entities := map[string]*Gateway{}
	for _, key := range keys {
		entities[key] = b.create(key)
	}
	stop := b.run()
	b.sync()
	slices.Sort(keys)
	b.awaitStored(keys...)
	stop()
	for _, key := range keys {
		b.must(b.bucket.Delete(t.Context(), entities[key]))
	}
	after := newSource(t, b.js)
	after.run()
	after.sync()
	var want []string
	for range keys {
		want = append(want, "deleted")
	}
	after.events.mu.Lock()
	defer after.events.mu.Unlock()
	var got []string
	for _, line := range after.events.lines {
		got = append(got, strings.Fields(line)[0])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestResyncAnnouncesEverythingAgain(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{}, func(c *config) { c.Resync = 20 * time.Millisecond })
	b.create("x")
	seen := make(chan struct{}, 100)
	b.source.Subscribe(func(e informer.Event) {
		if e.Type == informer.Updated && e.Backlog {
			select {
			case seen <- struct{}{}:
			default:
			}
		}
	})
	b.run()
	<-seen
	<-seen
}

func TestARelistingThatFindsNothingNewAnnouncesNothing(t *testing.T) {
	registry := prometheus.NewRegistry()
	b := newBed(t, jetstream.KeyValueConfig{}, func(c *config) { c.Relist, c.Registerer = 20*time.Millisecond, registry })
	b.create("x")
	b.run()
	b.sync()
	operatortest.Eventually(t, "it is listed five times", func() bool { return gathered(t, registry, "operatorkit_natsinformer_listings_total") >= 5 })
	b.create("y")
	b.events.await(t, "added x backlog", "added y")
}

func TestAnIndexThatPanicsDoesNotFileTheEntity(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{}, func(c *config) {
		c.Indexers = map[string]informer.IndexFunc{"host": func(obj any) []string { return obj.(*Gateway).Hosts[:1] }}
	})
	b.create("x", "a")
	b.create("y")
	b.run()
	b.sync()
	b.awaitStored("x a", "y")
	found, err := b.source.EntitiesByIndex("host", "a")
	b.must(err)
	if len(found) != 1 || b.log.count("index host panicked") != 1 {
		t.Errorf("found %d entities, logged %d panics; want 1 and 1", len(found), b.log.count("index host panicked"))
	}
}

func TestAStoppedSourceTakesUpWhereItEnded(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{})
	x := b.create("x")
	b.create("y")
	stop := b.run()
	b.sync()
	b.events.await(t, "added x backlog", "added y backlog")
	stop()
	b.must(b.bucket.Purge(t.Context(), x))
	b.create("z")
	b.run()
	b.events.await(t, "deleted x", "added z")
}

func TestSourceConfigIsValidated(t *testing.T) {
	_, js := natsserver.Start(t).Connect(t)
	bucket, err := natsinformer.NewBucket(natsinformer.BucketConfig[*Gateway]{JetStream: js, Name: "b"})
	if err != nil {
		t.Fatal(err)
	}
	logger := (&log{}).logger(t)
	_, err = natsinformer.NewSource(config{Resync: -1, ProbeInterval: -1, Relist: -1, Indexers: map[string]informer.IndexFunc{"i": nil}})
	if !errors.Is(err, informer.ErrInvalidConfig) {
		t.Fatal(err)
	}
	for _, field := range []string{"Bucket", "Resync", "ProbeInterval", "Relist", "Indexers", "Logger"} {
		if !mentions("field " + field)(err) {
			t.Errorf("the error does not name %s: %v", field, err)
		}
	}
	registry := prometheus.NewRegistry()
	if _, err := natsinformer.NewSource(config{Bucket: bucket, Logger: logger, Registerer: registry}); err != nil {
		t.Error(err)
	}
	if _, err := natsinformer.NewSource(config{Bucket: bucket, Logger: logger, Registerer: registry}); !errors.Is(err, informer.ErrInvalidConfig) {
		t.Errorf("the same metrics twice: %v", err)
	}
	named, err := natsinformer.NewSource(config{Bucket: bucket, Logger: logger, Name: "n", Registerer: registry})
	if err != nil || named.Name() != "n" {
		t.Errorf("name %q, error %v", named.Name(), err)
	}
}

func TestCatchingUpWaitsUntilWhatHasHappenedIsAnnounced(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{History: 2}, func(c *natsinformer.SourceConfig[*Gateway]) {
		c.Filter = func(key string) bool { return key != "refused" }
	})
	var told atomic.Bool
	lag := make(chan struct{})
	b.source.Subscribe(func(e informer.Event) {
		if e.Type == informer.Deleted {
			<-lag
			told.Store(true)
		}
	})
	catchUp := func(patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err := b.source.Behind(ctx, nil)
		return err
	}
	b.create("x")
	b.run()
	b.sync()
	b.put("refused", "{}")
	b.must(catchUp(time.Minute))
	b.must(b.kv.Delete(t.Context(), "x"))
	if err := catchUp(100 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a deletion is not announced, and: %v", err)
	}
	close(lag)
	b.must(catchUp(time.Minute))
	if !told.Load() {
		t.Error("it was not waited for the deletion")
	}

	b.must(b.js.DeleteKeyValue(t.Context(), "gateways"))
	b.kv = natsserver.NewBucket(t, b.js, jetstream.KeyValueConfig{Bucket: "gateways"})
	b.put("y", "{}")
	b.must(catchUp(time.Minute))
	if _, exists, err := b.source.Lookup("y"); !exists || err != nil {
		t.Errorf("the entry of a bucket that was made anew is not shown: %v", err)
	}
}
