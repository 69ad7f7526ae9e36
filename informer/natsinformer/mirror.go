package natsinformer

import (
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/operatorkit/operatorkit/informer"
)

// mirror turns what is seen of a bucket into changes of the store. It outlives the sessions.
//
// What it has shown of a key may be asked for from elsewhere; all else is for the work of a source alone.
type mirror[T Entity] struct {
	bucket *Bucket[T]
	feed   *informer.Feed
	config SourceConfig[T]
	counts *counts
	// keeps tells whether deletions are held and repeated.
	keeps func() bool

	// mu is held to change keys, written and created, and to read them elsewhere.
	mu sync.RWMutex
	// keys is what is known of every key in the bucket, those that have a marker alone and those that the filter refuses
	// included.
	keys map[string]tracked[T]
	// markers is how many of the keys have no value.
	markers int
	// written is what was written and has not been seen yet.
	written map[string]shown
	// created and incarnation tell the bucket from those that had its name before, and in which the same revision was
	// another value.
	created     time.Time
	incarnation int
	// seen is the sequence up to which changes have been seen.
	seen uint64
	// behindSince is when the servers began to know less than that, and zero while they don't.
	behindSince time.Time
}

// tracked is what is known of a key.
type tracked[T Entity] struct {
	// live is true if the store holds the entity.
	live   bool
	entity T
	// revision is that of the value or of the marker, and 0 for a key that the filter refuses.
	revision uint64
	// marker is true for a key that has no value.
	marker bool
}

func newMirror[T Entity](bucket *Bucket[T], feed *informer.Feed, config SourceConfig[T], counts *counts) *mirror[T] {
	return &mirror[T]{bucket: bucket, feed: feed, config: config, counts: counts, keys: map[string]tracked[T]{}, written: map[string]shown{}}
}

// follows returns an error while the bucket is behind what has been seen of it. A leader that was elected a moment ago catches up; what is
// still missing after the patience, or what a server without replicas has not, is lost.
func (m *mirror[T]) follows(state bucketState, patience time.Duration) error {
	if !state.replicated || !m.created.Equal(state.created) || state.lastSeq >= m.seen {
		m.behindSince = time.Time{}
		return nil
	}
	if m.behindSince.IsZero() {
		m.behindSince = time.Now()
	}
	if time.Since(m.behindSince) > patience {
		return nil
	}
	return fmt.Errorf("%w: its last revision is %d, and revision %d was seen", ErrBehind, state.lastSeq, m.seen)
}

// meet finds out whether the bucket is another one than before, or has lost its last entries.
func (m *mirror[T]) meet(state bucketState) {
	if !m.created.Equal(state.created) || state.lastSeq < m.seen {
		m.incarnation++
		m.seen = 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.created = state.created
	if m.seen > 0 {
		return
	}
	clear(m.written)
	for key, known := range m.keys {
		known.revision = 0
		m.keys[key] = known
	}
}

// isNewerThan tells whether a listing is older than what has been seen.
func (m *mirror[T]) isNewerThan(l *listing) bool {
	for key, entry := range l.newest {
		if entry.Revision() < m.keys[key].revision {
			return true
		}
	}
	return false
}

// shown implements follower.
func (m *mirror[T]) shown(key string) (shown, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if s, ok := m.written[key]; ok {
		return s, true
	}
	known, ok := m.keys[key]
	return shown{revision: known.revision, live: known.live, created: m.created}, ok && known.revision > 0
}

// wrote implements follower.
func (m *mirror[T]) wrote(key string, revision uint64, live bool) {
	if !m.config.Filter(key) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if revision > max(m.keys[key].revision, m.written[key].revision) {
		m.written[key] = shown{revision: revision, live: live, created: m.created}
	}
}

// apply applies one change.
func (m *mirror[T]) apply(entry jetstream.KeyValueEntry) {
	key := entry.Key()
	m.seen = max(m.seen, entry.Revision())
	if !m.config.Filter(key) {
		m.track(key, refused[T](entry))
		return
	}
	if entry.Operation() != jetstream.KeyValuePut {
		m.remove(entry)
		return
	}
	item := m.put(entry)
	m.feed.Set(item)
}

// replace makes a complete listing all there is. deleted are the last known values of entries that were deleted while
// nobody was watching.
func (m *mirror[T]) replace(l *listing, deleted []T) {
	for key, known := range m.keys {
		switch _, listed := l.newest[key]; {
		case listed:
		case known.live:
			m.forget(key)
			m.feed.Delete(informer.Key{Name: key}, m.last(known.entity, 0))
		default:
			m.forget(key)
			m.feed.Forget(informer.Key{Name: key})
		}
	}
	for _, entity := range deleted {
		m.feed.KeepDeleted(informer.Key{Name: entity.GetName()}, entity)
	}
	var items []informer.Item
	for _, entry := range l.inOrder() {
		switch {
		case !m.config.Filter(entry.Key()):
			m.track(entry.Key(), refused[T](entry))
		case entry.Operation() == jetstream.KeyValuePut:
			items = append(items, m.put(entry))
		default:
			m.remove(entry)
		}
		m.seen = max(m.seen, entry.Revision())
	}
	m.seen = max(m.seen, l.target)
	m.settle(l.reached)
	m.feed.Replace("", items)
}

// refused is what is known of a key that the filter refuses.
func refused[T Entity](entry jetstream.KeyValueEntry) tracked[T] {
	return tracked[T]{marker: entry.Operation() != jetstream.KeyValuePut}
}

// staying is how many keys there must be in the bucket still, as far as is known. Where markers have a lifetime, those don't count.
func (m *mirror[T]) staying(markersExpire bool) int {
	if !markersExpire {
		return len(m.keys)
	}
	return len(m.keys) - m.markers
}

// settle forgets the writes of which a listing that reached this far would have shown what is left.
func (m *mirror[T]) settle(reached uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.written, func(_ string, s shown) bool { return s.revision <= reached })
}

// put takes note of a value, and returns it as the store is to hold it.
func (m *mirror[T]) put(entry jetstream.KeyValueEntry) informer.Item {
	key, known := entry.Key(), m.keys[entry.Key()]
	entity, err := m.bucket.decode(key, entry.Revision(), entry.Value())
	if err != nil {
		entity = m.undecodable(known, entry, err)
	} else if !copiesItself(entity) {
		entity.EntityMeta().stored = &stored{data: entry.Value()}
	}
	if known.live && replaces(entity, known.entity) {
		// The store would find that out by itself, but would not know that the old entity is not to be removed any more.
		m.feed.Delete(informer.Key{Name: key}, m.last(known.entity, 0))
	}
	m.track(key, tracked[T]{live: true, entity: entity, revision: entry.Revision()})
	return informer.Item{
		Key:     informer.Key{Name: key},
		Object:  entity,
		Version: strconv.Itoa(m.incarnation) + "." + strconv.FormatUint(entry.Revision(), 10),
	}
}

// undecodable returns what the store holds for a value that can't be decoded, and logs it once.
func (m *mirror[T]) undecodable(known tracked[T], entry jetstream.KeyValueEntry, err error) T {
	entity := newEntity[T](entry.Key())
	var data []byte
	if known.live {
		meta := known.entity.EntityMeta()
		if meta.DecodeError() == nil || meta.revision != entry.Revision() {
			m.log(entry, err)
		}
		if copied, err := m.bucket.clone(known.entity); err == nil {
			entity = copied
		}
		if meta.stored != nil {
			data = meta.stored.data
		}
	} else {
		m.log(entry, err)
	}
	meta := entity.EntityMeta()
	meta.revision, meta.copier, meta.stored = entry.Revision(), m.bucket.copier, &stored{data: data, fault: err}
	return entity
}

func (m *mirror[T]) log(entry jetstream.KeyValueEntry, err error) {
	m.config.Logger.Log("level", "error", "message", "entry can't be decoded", "key", entry.Key(), "revision", entry.Revision(), "error", err.Error())
}

// replaces tells whether now is another entity than the one that had its name before.
func replaces[T Entity](now, before T) bool {
	return now.GetUID() != "" && before.GetUID() != "" && now.GetUID() != before.GetUID()
}

// remove takes note of a marker.
func (m *mirror[T]) remove(entry jetstream.KeyValueEntry) {
	key, known := informer.Key{Name: entry.Key()}, m.keys[entry.Key()]
	deleted := entry.Operation() == jetstream.KeyValueDelete
	m.track(entry.Key(), tracked[T]{revision: entry.Revision(), marker: true})
	switch {
	case known.live && deleted && m.keeps():
		m.feed.KeepDeleted(key, m.last(known.entity, entry.Revision()))
	case known.live:
		m.feed.Delete(key, m.last(known.entity, 0))
	case !deleted:
		m.feed.Forget(key)
	}
}

// last returns the last known state of an entity that is gone, with the revision of the marker that is to be cleaned up, or 0.
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

// track notes what is known of a key.
func (m *mirror[T]) track(key string, now tracked[T]) {
	m.counts.undecodable.Add(now.undecodable() - m.keys[key].undecodable())
	m.markers += now.markers() - m.keys[key].markers()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keys[key] = now
	if m.written[key].revision <= now.revision {
		delete(m.written, key)
	}
}

// forget notes that a key is not in the bucket.
func (m *mirror[T]) forget(key string) {
	m.counts.undecodable.Add(-m.keys[key].undecodable())
	m.markers -= m.keys[key].markers()
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.keys, key)
}

// markers is how many keys without a value this is.
func (t tracked[T]) markers() int {
	if t.marker {
		return 1
	}
	return 0
}

// undecodable is how many entries this is whose value can't be decoded.
func (t tracked[T]) undecodable() int64 {
	if t.live && t.entity.EntityMeta().DecodeError() != nil {
		return 1
	}
	return 0
}
