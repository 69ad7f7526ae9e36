package natsinformer

import (
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/operatorkit/operatorkit/informer"
)

// mirror turns what is seen of a bucket into changes of the store. It outlives the sessions.
type mirror[T Entity] struct {
	bucket *Bucket[T]
	feed   *informer.Feed
	config SourceConfig[T]
	counts *counts

	// keys is what is known of every key in the bucket, those that have a marker alone and those that the filter refuses
	// included.
	keys map[string]tracked[T]
	// created and incarnation tell the bucket from those that had its name before, and in which the same revision was
	// another value.
	created     time.Time
	incarnation int
	// seen is the sequence up to which changes have been seen.
	seen uint64
}

// tracked is what is known of a key.
type tracked[T Entity] struct {
	// live is true if the store holds the entity.
	live   bool
	entity T
}

func newMirror[T Entity](bucket *Bucket[T], feed *informer.Feed, config SourceConfig[T], counts *counts) *mirror[T] {
	return &mirror[T]{bucket: bucket, feed: feed, config: config, counts: counts, keys: map[string]tracked[T]{}}
}

// meet finds out whether the bucket is another one than before, or has lost its last entries.
func (m *mirror[T]) meet(state bucketState) {
	if !m.created.Equal(state.created) || state.lastSeq < m.seen {
		m.incarnation++
		m.seen = 0
	}
	m.created = state.created
}

// apply applies one change.
func (m *mirror[T]) apply(entry jetstream.KeyValueEntry) {
	key := entry.Key()
	m.seen = max(m.seen, entry.Revision())
	if !m.config.Filter(key) {
		m.keys[key] = tracked[T]{}
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
			m.feed.Delete(informer.Key{Name: key}, m.last(known.entity, 0))
			m.forget(key)
		default:
			m.feed.Forget(informer.Key{Name: key})
			m.forget(key)
		}
	}
	for _, entity := range deleted {
		m.feed.KeepDeleted(informer.Key{Name: entity.GetName()}, entity)
	}
	var items []informer.Item
	for _, entry := range l.inOrder() {
		switch {
		case !m.config.Filter(entry.Key()):
			m.keys[entry.Key()] = tracked[T]{}
		case entry.Operation() == jetstream.KeyValuePut:
			items = append(items, m.put(entry))
		default:
			m.remove(entry)
		}
		m.seen = max(m.seen, entry.Revision())
	}
	m.seen = max(m.seen, l.target)
	m.feed.Replace("", items)
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
	m.track(key, tracked[T]{live: true, entity: entity})
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
	switch {
	case known.live && deleted:
		m.feed.KeepDeleted(key, m.last(known.entity, entry.Revision()))
	case known.live:
		m.feed.Delete(key, m.last(known.entity, 0))
	case !deleted:
		m.feed.Forget(key)
	}
	m.track(entry.Key(), tracked[T]{})
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
	m.forget(key)
	m.keys[key] = now
	if now.live && now.entity.EntityMeta().DecodeError() != nil {
		m.counts.undecodable.Add(1)
	}
}

// forget notes that a key is not in the bucket.
func (m *mirror[T]) forget(key string) {
	if known := m.keys[key]; known.live && known.entity.EntityMeta().DecodeError() != nil {
		m.counts.undecodable.Add(-1)
	}
	delete(m.keys, key)
}
