package natsinformer_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// witness is a subscriber that rebuilds the store from events alone, and reports inconsistent
// events.
type witness struct {
	t     *testing.T
	mu    sync.Mutex
	known map[string]*Gateway
	gone  map[types.UID]bool
	seen  int
	// The events of each key.
	told map[string][]string
}

func (w *witness) handle(e informer.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen++
	now := e.Object.(*Gateway)
	w.told[e.Key.Name] = append(w.told[e.Key.Name], fmt.Sprintf("%s %s at %d", e.Type, now.UID, now.Revision()))
	old, known := w.known[e.Key.Name]
	switch e.Type {
	case informer.Added:
		if known {
			w.t.Errorf("%s was added twice", e.Key.Name)
		}
		w.known[e.Key.Name] = now
	case informer.Updated:
		if !known || e.Old != any(old) {
			w.t.Errorf("%s was updated from %v, known was %v", e.Key.Name, e.Old, old)
		}
		if known && old.UID != "" && now.UID != "" && old.UID != now.UID {
			w.t.Errorf("%s was updated to another one", e.Key.Name)
		}
		w.known[e.Key.Name] = now
	case informer.Deleted:
		// An entity that was created and deleted without a watch is announced although it was never
		// seen.
		if known && (now.UID != old.UID || now == old) {
			w.t.Errorf("%s was deleted as %v, known was %v", e.Key.Name, now, old)
		}
		if now.UID != "" && w.gone[now.UID] {
			w.t.Errorf("%s was deleted twice, as %v: %q", e.Key.Name, now, w.told[e.Key.Name])
		}
		delete(w.known, e.Key.Name)
		w.gone[now.UID] = true
	}
}

// revisions returns the known revisions by key.
func (w *witness) revisions() map[string]uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	revisions := map[string]uint64{}
	for key, g := range w.known {
		revisions[key] = g.Revision()
	}
	return revisions
}

// monkey does things at random to a bucket and to the link between it and its source.
type monkey struct {
	*linked
	random *rand.Rand
	step   int
}

// bucketRevisions returns the revision of each key that has a value, decodable or not.
func (m *monkey) bucketRevisions() (map[string]uint64, error) {
	ctx, cancel := context.WithTimeout(m.t.Context(), 2*time.Second)
	defer cancel()
	kv, err := m.js.KeyValue(ctx, "gateways")
	if err != nil {
		return nil, err
	}
	keys, err := kv.Keys(ctx)
	if err != nil && !errors.Is(err, jetstream.ErrNoKeysFound) {
		return nil, err
	}
	revisions := map[string]uint64{}
	for _, key := range keys {
		entry, err := kv.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		revisions[key] = entry.Revision()
	}
	return revisions, nil
}

// change changes an entry. It may fail: the server may be away, the entry may be there or not.
func (m *monkey) change() {
	ctx, cancel := context.WithTimeout(m.t.Context(), 200*time.Millisecond)
	defer cancel()
	key := fmt.Sprintf("k%d", m.random.IntN(12))
	value := fmt.Sprint(m.step)
	g, getErr := m.bucket.Get(ctx, key)
	switch m.random.IntN(12) {
	case 0, 1, 2:
		_ = m.bucket.Create(ctx, gateway(key, value))
	case 3, 4, 5:
		if getErr == nil {
			g.Hosts = []string{value}
			_ = m.bucket.Update(ctx, g)
		}
	case 6:
		_ = m.kv.Delete(ctx, key)
	case 7:
		_ = m.kv.Purge(ctx, key)
	case 8:
		_ = m.bucket.RequestDeletion(ctx, key)
	case 9:
		_, _ = m.kv.PutString(ctx, key, "{")
	case 10:
		_, _ = m.kv.PutString(ctx, key, `{"hosts":["`+value+`"]}`)
	case 11:
		if m.random.IntN(5) == 0 {
			_ = m.kv.PurgeDeletes(ctx, jetstream.DeleteMarkersOlderThan(-1))
		}
	}
}

// disturb breaks something, or restores the link.
func (m *monkey) disturb() {
	switch m.random.IntN(12) {
	case 0, 1, 2:
		m.link.Cut()
	case 3, 4:
		m.link.Freeze()
	case 5:
		m.server.Restart(m.t)
	case 6:
		if m.random.IntN(3) == 0 {
			m.recreate()
		}
	default:
		m.link.Restore()
	}
}

func (m *monkey) recreate() {
	ctx, cancel := context.WithTimeout(m.t.Context(), 2*time.Second)
	defer cancel()
	_ = m.js.DeleteKeyValue(ctx, "gateways")
	operatortest.Eventually(m.t, "the bucket is made anew", func() error {
		_, err := m.js.CreateKeyValue(m.t.Context(), jetstream.KeyValueConfig{Bucket: "gateways", History: 3})
		if errors.Is(err, jetstream.ErrBucketExists) {
			return nil
		}
		return err
	})
}

func TestAfterAnyChangesAndOutagesTheStoreIsTheBucket(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	m := &monkey{linked: newLinked(t, jetstream.KeyValueConfig{History: 3}), random: rand.New(rand.NewPCG(seed, 0))}
	w := &witness{t: t, known: map[string]*Gateway{}, gone: map[types.UID]bool{}, told: map[string][]string{}}
	m.source.Subscribe(w.handle)
	m.run()
	m.sync()

	for m.step = range 4000 {
		m.change()
		if m.random.IntN(40) == 0 {
			m.disturb()
		}
		if m.step%500 == 499 {
			m.link.Restore()
			m.awaitEqual(w)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t.Logf("%d events, %d listings", w.seen, m.log.count("listed again"))
}

// awaitEqual waits until the store, the events, and the bucket agree.
func (m *monkey) awaitEqual(w *witness) {
	m.t.Helper()
	operatortest.Eventually(m.t, "store, events and bucket are the same", func() error {
		bucket, err := m.bucketRevisions()
		if err != nil {
			return err
		}
		if diff := cmp.Diff(bucket, w.revisions()); diff != "" {
			return fmt.Errorf("events (-bucket +events):\n%s", diff)
		}
		stored := map[string]uint64{}
		for _, key := range slices.Collect(maps.Keys(bucket)) {
			g, exists, err := m.source.Lookup(key)
			switch {
			case errors.Is(err, natsinformer.ErrUndecodable):
				stored[key] = bucket[key]
			case exists:
				stored[key] = g.Revision()
			}
		}
		if diff := cmp.Diff(bucket, stored); diff != "" {
			return fmt.Errorf("store (-bucket +store):\n%s", diff)
		}
		if got := m.source.Status().Objects; got != len(bucket) {
			return fmt.Errorf("the store has %d objects, the bucket %d", got, len(bucket))
		}
		return nil
	})
}
