package natsinformer

import (
	"bytes"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/operatorkit/operatorkit/informer"
)

// mirror turns what is seen of a bucket into changes of the store. It outlives the sessions.
//
// What it has shown of a key may be asked for, and writes be told, from elsewhere; all else is for the work of a source alone.
type mirror[T Entity] struct {
	bucket *Bucket[T]
	feed   *informer.Feed
	config SourceConfig[T]
	counts *counts
	// keeps tells whether deletions are held and repeated.
	keeps func() bool

	// again has the bucket listed again.
	again chan struct{}

	// mu is held to change what follows up to listed, and to read it elsewhere.
	mu sync.RWMutex
	// keys is what is known of every key in the bucket, those that have a marker alone and those that the filter refuses
	// included.
	keys map[string]tracked[T]
	// written is what was written through the bucket and has not been seen yet, by keys.
	written map[string]written[T]
	// markers is how many of the keys have no value.
	markers int
	// created and bucketNumber tell the bucket from those that had its name before, and in which the same revision was
	// another value.
	created      time.Time
	bucketNumber int
	// newest is the highest revision that was seen or written.
	newest uint64
	// announced is the sequence up to which all that was seen is announced.
	announced uint64
	// begun is how many sessions have begun, and complete the last one of which the listing is. Then listed is closed, and made anew.
	begun, complete int
	listed          chan struct{}

	// seen is the sequence up to which changes have been seen.
	seen uint64
	// behindSince is when the servers began to know less than that, and zero while they don't.
	behindSince time.Time
	// doubtedSince is when listings began not to have reached what was seen of a key, and zero while they have.
	doubtedSince time.Time
	// doubted is when one was doubted last: what was long before is another doubt.
	doubted time.Time
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

// written is a value that was written, and decoded for the store.
type written[T Entity] struct {
	revision uint64
	data     []byte
	entity   T
}

func newMirror[T Entity](bucket *Bucket[T], feed *informer.Feed, config SourceConfig[T], counts *counts) *mirror[T] {
	return &mirror[T]{
		bucket: bucket, feed: feed, config: config, counts: counts, keys: map[string]tracked[T]{}, written: map[string]written[T]{},
		again: make(chan struct{}, 1), listed: make(chan struct{}),
	}
}

// beginRound notes that a session begins, and returns its number and the highest revision that is known before it.
func (m *mirror[T]) beginRound() (round int, newest uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.again:
	default:
	}
	m.begun++
	return m.begun, m.newest
}

// endRound notes that the listing of a session is complete.
func (m *mirror[T]) endRound(round int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.complete = round
	close(m.listed)
	m.listed = make(chan struct{})
}

// follows returns an error while the bucket is behind the newest revision that was known of it before. A leader that was elected a moment ago
// catches up; what is still missing after the patience, or what a server without replicas has not, is lost.
func (m *mirror[T]) follows(state bucketState, newest uint64, patience time.Duration) error {
	if !state.replicated || !m.created.Equal(state.created) || state.lastSeq >= newest {
		m.behindSince = time.Time{}
		return nil
	}
	if m.behindSince.IsZero() {
		m.behindSince = time.Now()
	}
	if time.Since(m.behindSince) > patience {
		return nil
	}
	return fmt.Errorf("%w: its last revision is %d, and revision %d was seen", ErrBehind, state.lastSeq, newest)
}

// meet finds out whether the bucket is another one than before, or has lost entries up to the newest revision that was known before.
func (m *mirror[T]) meet(state bucketState, newest uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.created.Equal(state.created) && state.lastSeq >= newest {
		return
	}
	m.created, m.newest, m.announced, m.seen = state.created, 0, 0, 0
	m.bucketNumber++
	clear(m.written)
	for key, known := range m.keys {
		known.revision = 0
		m.keys[key] = known
	}
}

// isNewerThan tells whether more has been seen of a key than a listing has, which has not come as far as that. One that has come further
// lacks it because it has vanished.
func (m *mirror[T]) isNewerThan(l *listing) bool {
	for key, entry := range l.newest {
		if seen := m.keys[key].revision; entry.Revision() < seen && l.reached < seen {
			return true
		}
	}
	return false
}

// anotherDoubt is after which time without a listing one that is doubted is so anew: the next one begins within seconds, however long it takes.
const anotherDoubt = time.Minute

// doubts tells whether a listing may be older than what has been seen, although the leader says that there is no more. One that was elected
// a moment ago catches up; what is still missing after the patience, or where there are no replicas, has vanished.
func (m *mirror[T]) doubts(l *listing, replicated bool, patience time.Duration) bool {
	if !replicated || !m.isNewerThan(l) {
		m.doubtedSince = time.Time{}
		return false
	}
	now := time.Now()
	if m.doubtedSince.IsZero() || l.begun.Sub(m.doubted) > anotherDoubt {
		m.doubtedSince = now
	}
	m.doubted = now
	return now.Sub(m.doubtedSince) <= patience
}

// shown implements follower.
func (m *mirror[T]) shown(key string) (shown, bool) {
	m.mu.RLock()
	known, number := m.keys[key], m.bucketNumber
	s := shown{revision: known.revision, live: known.live, created: m.created}
	m.mu.RUnlock()
	if v, exists := m.newestOf(key); v.bucketNumber == number && v.revision > s.revision {
		s.revision, s.live = v.revision, exists
	}
	return s, s.revision > 0
}

// newestOf returns the newest version of a key that the store knows, and whether it has a value then.
func (m *mirror[T]) newestOf(key string) (v version, exists bool) {
	text, exists := m.feed.Newest(informer.Key{Name: key})
	v, _ = parseVersion(text) // It is zero where there is none.
	return v, exists
}

// apply applies one change.
func (m *mirror[T]) apply(entry jetstream.KeyValueEntry) {
	m.saw(entry.Revision())
	m.announce(entry)
	m.hasAnnounced()
}

// announce tells of one change.
func (m *mirror[T]) announce(entry jetstream.KeyValueEntry) {
	key := entry.Key()
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
	whole := max(l.reached, l.target)
	if m.lost(l, whole) {
		m.mu.Lock()
		m.bucketNumber++
		m.mu.Unlock()
	}
	for key, known := range m.keys {
		if _, listed := l.newest[key]; listed {
			continue
		}
		m.forget(key)
		if !known.live {
			m.feed.Forget(informer.Key{Name: key})
		}
	}
	for _, entity := range deleted {
		key := informer.Key{Name: entity.GetName()}
		if v, _ := m.newestOf(key.Name); v.bucketNumber == m.bucketNumber && v.revision > entity.EntityMeta().revision {
			m.feed.AnnounceDeleted(key, entity)
			continue
		}
		m.feed.KeepDeleted(key, entity)
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
	}
	m.saw(whole)
	m.mu.Lock()
	maps.DeleteFunc(m.written, func(_ string, w written[T]) bool { return w.revision <= whole })
	m.mu.Unlock()
	m.feed.ReplaceAsOf("", items, m.version(whole))
	m.hasAnnounced()
}

// lost tells whether a listing that is all there was up to a revision has an entry in an older state than it was seen or written: a server
// has forgotten what it had acknowledged, or the newest message of a key has gone without a trace and has left one before it.
func (m *mirror[T]) lost(l *listing, whole uint64) bool {
	for key, entry := range l.newest {
		if entry.Revision() < m.keys[key].revision {
			return true
		}
		if v, _ := m.newestOf(key); v.bucketNumber == m.bucketNumber && entry.Revision() < v.revision && v.revision <= whole {
			return true
		}
	}
	return false
}

// saw notes up to which revision changes have been seen.
func (m *mirror[T]) saw(revision uint64) {
	m.seen = max(m.seen, revision)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.newest = max(m.newest, revision)
}

// hasAnnounced notes that all that was seen is announced.
func (m *mirror[T]) hasAnnounced() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.announced = m.seen
}

// covers tells whether everything is announced that a bucket had in a state.
func (m *mirror[T]) covers(state bucketState) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.created.Equal(state.created) && m.announced >= state.lastSeq
}

// version returns that of a revision of the bucket as it was met.
func (m *mirror[T]) version(revision uint64) string {
	return version{m.bucketNumber, revision}.String()
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

// put takes note of a value, and returns it as the store is to hold it.
func (m *mirror[T]) put(entry jetstream.KeyValueEntry) informer.Item {
	key, known := entry.Key(), m.keys[entry.Key()]
	entity, own := m.ownOf(entry)
	if !own {
		var err error
		if entity, err = m.entity(key, entry.Revision(), entry.Value()); err != nil {
			entity = m.undecodable(known, entry, err)
		}
	}
	m.track(key, tracked[T]{live: true, entity: entity, revision: entry.Revision()})
	return informer.Item{Key: informer.Key{Name: key}, Object: entity, Version: m.version(entry.Revision())}
}

// entity returns a value as the store holds it.
func (m *mirror[T]) entity(key string, revision uint64, data []byte) (T, error) {
	entity, err := m.bucket.decode(key, revision, data)
	if err == nil && !copiesItself(entity) {
		entity.EntityMeta().stored = &stored{data: data}
	}
	return entity, err
}

// wrote notes a value that was written, until it is seen: it is not decoded again then.
func (m *mirror[T]) wrote(key string, w written[T]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keys[key].revision < w.revision && m.written[key].revision < w.revision {
		m.written[key] = w
	}
}

// ownOf returns what was decoded of a value when it was written. A server that has lost something may give its revision to another value.
func (m *mirror[T]) ownOf(entry jetstream.KeyValueEntry) (entity T, own bool) {
	m.mu.RLock()
	w := m.written[entry.Key()]
	m.mu.RUnlock()
	return w.entity, w.revision == entry.Revision() && bytes.Equal(w.data, entry.Value())
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
	key, deleted := informer.Key{Name: entry.Key()}, entry.Operation() == jetstream.KeyValueDelete
	m.track(entry.Key(), tracked[T]{revision: entry.Revision(), marker: true})
	m.feed.End(key, m.version(entry.Revision()), deleted && m.keeps())
	if !deleted {
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
