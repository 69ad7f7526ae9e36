package natsinformer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/operatorkit/operatorkit/informer"
)

// mirror converts messages of a bucket to changes of the store. It outlives the sessions, which use
// it one at a time. Fields guarded by mu are also read by others.
type mirror[T Entity] struct {
	bucket *Bucket[T]
	feed   *informer.Feed
	config SourceConfig[T]
	counts *counts
	// keeps reports whether deletions are held and repeated.
	keeps func() bool
	// again requests another listing of the bucket.
	again chan struct{}

	// keys has the state seen of every key in the bucket, including keys without a value and keys
	// that the filter refuses.
	keys map[string]tracked
	// markers is the number of keys without a value.
	markers int
	// behind is the time since when the servers lack revisions that were seen. doubted is the same
	// for listings.
	behind, doubted since

	mu sync.RWMutex
	// created and bucketNumber identify the bucket among those of its name. In another bucket the
	// same revision was another value.
	created      time.Time
	bucketNumber int
	// newest is the highest revision that was seen or written. Everything up to announced is
	// announced.
	newest, announced uint64
}

// tracked is the state seen of a key.
type tracked struct {
	// live is true if the store has an entity; marker is true if the key has no value. Both are
	// false for a value that the filter refuses.
	live, marker bool
	// undecodable is true if the value can't be decoded.
	undecodable bool
	// revision is the revision of the value or of the marker.
	revision uint64
}

// since is the time at which a condition started. It is zero while the condition does not hold.
type since struct{ time.Time }

// lasts notes whether the condition holds now. It reports whether the condition holds, and has held
// for no longer than the limit.
func (s *since) lasts(now bool, limit time.Duration) bool {
	if !now {
		s.Time = time.Time{}
		return false
	}
	if s.IsZero() {
		s.Time = time.Now()
	}
	return time.Since(s.Time) <= limit
}

func newMirror[T Entity](bucket *Bucket[T], feed *informer.Feed, config SourceConfig[T], counts *counts) *mirror[T] {
	return &mirror[T]{bucket: bucket, feed: feed, config: config, counts: counts, keys: map[string]tracked{}, again: make(chan struct{}, 1), bucketNumber: 1}
}

// follows returns an error while the bucket is behind its newest known revision. A newly elected
// leader catches up. Revisions that are missing after the patience, or on a server without
// replicas, are lost.
func (m *mirror[T]) follows(state bucketState, newest uint64, patience time.Duration) error {
	behind := state.replicated && m.created.Equal(state.created) && state.lastSeq < newest
	if m.behind.lasts(behind, patience) {
		return fmt.Errorf("%w: its last revision is %d, and revision %d was seen", ErrBehind, state.lastSeq, newest)
	}
	return nil
}

// meet checks whether the bucket is another one than before, or has lost entries up to its newest
// known revision, and resets the revisions then.
func (m *mirror[T]) meet(state bucketState, newest uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.created.Equal(state.created) && state.lastSeq >= newest {
		return
	}
	m.created, m.newest, m.announced = state.created, 0, 0
	m.bucketNumber++
	for key, known := range m.keys {
		known.revision = 0
		m.keys[key] = known
	}
}

// doubts reports whether a listing may be older than the known state, because a known revision lies
// beyond its end. The leader says that the listing is complete, but as in follows that is not
// believed before the patience is over.
func (m *mirror[T]) doubts(l *listing, replicated bool, patience time.Duration) bool {
	return m.doubted.lasts(replicated && m.hasOlder(l, func(known uint64) bool { return known > l.reached }), patience)
}

// hasOlder reports whether a listing has an older state of an entry than the known one, for a known
// revision that counts accepts.
func (m *mirror[T]) hasOlder(l *listing, counts func(known uint64) bool) bool {
	for key, entry := range l.newest {
		if known, _ := m.known(key); entry.Revision() < known && counts(known) {
			return true
		}
	}
	return false
}

// known returns the newest revision of a key in this bucket that was seen or written, and whether
// it has a value.
func (m *mirror[T]) known(key string) (revision uint64, exists bool) {
	item, exists := m.feed.Newest(informer.Key{Name: key})
	number, revision := parseVersion(item.Version)
	m.mu.RLock()
	defer m.mu.RUnlock()
	if number != m.bucketNumber {
		return 0, false
	}
	return revision, exists
}

// shown implements follower.
func (m *mirror[T]) shown(key string) (shown, bool) {
	revision, live := m.known(key)
	m.mu.RLock()
	defer m.mu.RUnlock()
	return shown{revision: revision, live: live, created: m.created}, revision > 0
}

// apply announces one change.
func (m *mirror[T]) apply(entry jetstream.KeyValueEntry) {
	switch {
	case !m.config.Filter(entry.Key()):
		m.refuse(entry)
	case entry.Operation() == jetstream.KeyValuePut:
		m.feed.Set(m.put(entry))
	default:
		m.remove(entry)
	}
	m.hasAnnounced(entry.Revision())
}

// replace makes a complete listing the content of the store. deleted are the last known values of
// entries that were deleted without a watch.
func (m *mirror[T]) replace(l *listing, deleted []T) {
	whole := max(l.reached, l.target)
	if m.hasOlder(l, func(known uint64) bool { return known <= whole }) {
		// A server has lost an acknowledged message, or the newest message of a key was removed and
		// the one before it is left.
		m.mu.Lock()
		m.bucketNumber++
		m.mu.Unlock()
	}
	for key := range m.keys {
		if _, listed := l.newest[key]; !listed {
			m.track(key, tracked{})
			delete(m.keys, key)
			m.feed.Forget(informer.Key{Name: key})
		}
	}
	for _, entity := range deleted {
		key := informer.Key{Name: entity.GetName()}
		if known, _ := m.known(key.Name); known > entity.EntityMeta().revision {
			m.feed.AnnounceDeleted(key, entity)
			continue
		}
		m.feed.KeepDeleted(key, entity)
	}
	var items []informer.Item
	for _, entry := range l.inOrder() {
		switch {
		case !m.config.Filter(entry.Key()):
			m.refuse(entry)
		case entry.Operation() == jetstream.KeyValuePut:
			items = append(items, m.put(entry))
		default:
			m.remove(entry)
		}
	}
	m.feed.ReplaceAsOf("", items, m.version(whole))
	m.hasAnnounced(whole)
}

// hasAnnounced notes that everything up to a revision is announced.
func (m *mirror[T]) hasAnnounced(revision uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.newest, m.announced = max(m.newest, revision), max(m.announced, revision)
}

// catchUp waits until the current content of the bucket is announced and the number of listings
// exceeds listings.
func (m *mirror[T]) catchUp(ctx context.Context, listings int64) error {
	_, state, err := m.bucket.inspect(ctx)
	if err != nil {
		return err
	}
	for {
		m.mu.RLock()
		done := m.created.Equal(state.created) && m.announced >= state.lastSeq && m.counts.listings.Load() > listings
		m.mu.RUnlock()
		if done {
			return nil
		}
		if err := wait(ctx, minCatchUpPause); err != nil {
			return fmt.Errorf("bucket %s: the source has not come to sequence %d yet: %w", m.bucket.Name(), state.lastSeq, err)
		}
	}
}

// version returns the version of a revision of this bucket.
func (m *mirror[T]) version(revision uint64) string {
	return versionOf(m.bucketNumber, revision)
}

// staying returns how many of the known keys must still be in the bucket. If markers expire, keys
// with only a marker do not count.
func (m *mirror[T]) staying(markersExpire bool) int {
	if !markersExpire {
		return len(m.keys)
	}
	return len(m.keys) - m.markers
}

// refuse notes an entry that the filter refuses.
func (m *mirror[T]) refuse(entry jetstream.KeyValueEntry) {
	m.track(entry.Key(), tracked{marker: entry.Operation() != jetstream.KeyValuePut})
}

// put notes a value, and returns the item to store. A value that the store already has, such as an
// own write, is not decoded.
func (m *mirror[T]) put(entry jetstream.KeyValueEntry) informer.Item {
	key, version := entry.Key(), m.version(entry.Revision())
	item, exists := m.feed.Newest(informer.Key{Name: key})
	if !exists || item.Version != version {
		entity, err := m.entity(key, entry.Revision(), entry.Value())
		if err != nil {
			m.config.Logger.Log("level", "error", "message", "entry can't be decoded", "key", key, "revision", entry.Revision(), "error", err.Error())
			last, _ := item.Object.(T)
			entity = m.undecodable(last, exists, entry, err)
		}
		item.Object, item.Version = entity, version
	}
	fault := item.Object.(T).EntityMeta().DecodeError()
	m.track(key, tracked{live: true, revision: entry.Revision(), undecodable: fault != nil})
	return item
}

// entity decodes a value for the store.
func (m *mirror[T]) entity(key string, revision uint64, data []byte) (T, error) {
	entity, err := m.bucket.decode(key, revision, data)
	if err == nil && !copiesItself(entity) {
		entity.EntityMeta().stored = &stored{data: data}
	}
	return entity, err
}

// undecodable returns the entity to store for a value that can't be decoded: the last entity, if it
// exists, with the fault.
func (m *mirror[T]) undecodable(last T, exists bool, entry jetstream.KeyValueEntry, fault error) T {
	entity := newEntity[T](entry.Key())
	var data []byte
	if exists {
		if copied, err := m.bucket.clone(last); err == nil {
			entity = copied
		}
		if held := last.EntityMeta().stored; held != nil {
			data = held.data
		}
	}
	meta := entity.EntityMeta()
	meta.revision, meta.copier, meta.stored = entry.Revision(), m.bucket.copier, &stored{data: data, fault: fault}
	return entity
}

// replaces reports whether now is another entity than an earlier one of its name.
func replaces[T Entity](now, before T) bool {
	return now.GetUID() != "" && before.GetUID() != "" && now.GetUID() != before.GetUID()
}

// remove notes a marker.
func (m *mirror[T]) remove(entry jetstream.KeyValueEntry) {
	key, deleted := informer.Key{Name: entry.Key()}, entry.Operation() == jetstream.KeyValueDelete
	m.track(entry.Key(), tracked{revision: entry.Revision(), marker: true})
	m.feed.End(key, m.version(entry.Revision()), deleted && m.keeps())
	if !deleted {
		m.feed.Forget(key)
	}
}

// last returns the last known state of an entity that is gone, with the revision of the marker to
// clean up, or 0.
func (m *mirror[T]) last(entity T, marker uint64) T {
	last, err := m.bucket.clone(entity)
	if err != nil {
		last = newEntity[T](entity.GetName())
		last.EntityMeta().copier = m.bucket.copier
	}
	meta := last.EntityMeta()
	meta.gone, meta.revision = true, marker
	return last
}

// track records the state seen of a key.
func (m *mirror[T]) track(key string, now tracked) {
	before := m.keys[key]
	m.counts.undecodable.Add(one(now.undecodable) - one(before.undecodable))
	m.markers += int(one(now.marker) - one(before.marker))
	m.keys[key] = now
}

func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
