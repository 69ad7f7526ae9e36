package inspector

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// memory keeps the last reconciliations of objects, within limits: those of the objects that were reconciled longest ago
// go first, and of objects that fail last. It is safe for concurrent use.
type memory struct {
	maxRecords int
	maxObjects int
	maxBytes   int

	// hash is that of an ID, which nobody has to compute twice.
	hash func(objectID) uint64
	// objects are the histories by the hashes of their IDs, and all are the same in a row. They are changed with both mu and index held, so
	// that either is enough to read them.
	objects map[uint64]*history
	all     []*history

	// mu is what recording needs: whoever reads holds it for no longer than it takes to look at one object.
	mu sync.Mutex
	// index is held by whoever looks objects up, for no longer than it takes to copy all. It goes after mu.
	index sync.RWMutex
	// calm and failing hold them, the one that was added to longest ago at the front.
	calm, failing chain
	bytes         int
	version       uint64

	// readers is how many look at histories and entries, which are not used again meanwhile.
	readers atomic.Int64
	// spare and spareEntry are used again next, and empty.
	spare      *history
	spareEntry *entry

	// describing is held by those who describe records, one at a time. It goes before mu.
	describing sync.Mutex
}

// objectID names an object among those of all frameworks.
type objectID struct {
	framework string
	key       informer.Key
}

// history is what is known of one object.
type history struct {
	id   objectID
	hash uint64
	// same is the next one of the same hash.
	same    *history
	version atomic.Uint64
	// entries are the last reconciliations, the newest at the end.
	entries []*entry
	// one is where they are while there is one.
	one [1]*entry
	// last is the newest one, for those who do not hold the lock.
	last atomic.Pointer[entry]

	// in is where it is between prev and next. It is nil once the object is forgotten.
	in         *chain
	prev, next *history

	bytes int
	// place is that among all histories.
	place int
	// seen is the last search that had the object among those that exist. It belongs to the search that goes on.
	seen uint64
}

// entry is a reconciliation, and those like it right before in which nothing happened either. Only what describing a record
// completes is changed once it is in a history.
type entry struct {
	record *framework.Record
	// object is the object as the last record knew it that did. It is not changed.
	object *plan.Object
	// failure says since when it fails.
	failure failure
	bytes   int
	// described tells whether the changes of the record are complete. Nobody reads them before.
	described bool
	// quiet tells that nothing happened: all was as it should be.
	quiet bool
	// shown tells that somebody was given the record, who may keep it.
	shown bool
	// repeats is how many reconciliations before this one it stands for, the first of which began at first.
	repeats int
	first   time.Time
}

// failure says since when an object fails, and how often in a row. The zero value is one that does not.
type failure struct {
	since time.Time
	count int
}

// chain is a list of histories.
type chain struct{ front, back *history }

// push puts a history at the end, which is in no list.
func (c *chain) push(h *history) {
	h.in, h.prev = c, c.back
	if h.prev == nil {
		c.front = h
	} else {
		h.prev.next = h
	}
	c.back = h
}

// remove takes a history out of the list that it is in.
func (c *chain) remove(h *history) {
	if h.prev == nil {
		c.front = h.next
	} else {
		h.prev.next = h.next
	}
	if h.next == nil {
		c.back = h.prev
	} else {
		h.next.prev = h.prev
	}
	h.in, h.prev, h.next = nil, nil, nil
}

func newMemory(c Config) *memory {
	seed := maphash.MakeSeed()
	return &memory{
		maxRecords: c.RecordsPerObject, maxObjects: c.Objects, maxBytes: c.Memory, objects: map[uint64]*history{},
		hash: func(id objectID) uint64 { return maphash.Comparable(seed, id) },
	}
}

// add keeps a record.
func (m *memory) add(r *framework.Record) {
	id := objectID{r.Framework, r.Key}
	hash, quiet, described := m.hash(id), isQuiet(r), !canWait(r)
	if described {
		r.Describe()
	}
	bytes := trim(r)

	m.mu.Lock()
	defer m.mu.Unlock()
	m.version++
	h := m.lookUp(hash, id)
	isNew := h == nil
	if isNew {
		h = m.newHistory(hash, id)
		m.grow(h, historyBytes+len(id.key.Namespace)+len(id.key.Name))
	}
	h.version.Store(m.version)
	e := m.newEntry()
	e.record, e.quiet, e.described, e.bytes = r, quiet, described, bytes
	e.object, e.failure = h.objectAfter(r), h.failureAfter(r)
	dropped, grown := h.append(e, m.maxRecords)
	m.grow(h, grown)
	h.last.Store(e)
	m.reuseEntry(dropped)
	m.move(h)
	if isNew || m.isFull() {
		m.index.Lock()
		defer m.index.Unlock()
		if isNew {
			m.remember(h)
		}
		for m.isFull() {
			m.forgetOldest()
		}
	}
}

// newHistory returns that of an object of which nothing is known.
func (m *memory) newHistory(hash uint64, id objectID) *history {
	h := m.spare
	if h == nil {
		h = &history{}
	}
	m.spare = nil
	h.hash, h.id = hash, id
	h.entries = h.one[:0]
	return h
}

func (m *memory) newEntry() *entry {
	e := m.spareEntry
	if e == nil {
		e = &entry{}
	}
	m.spareEntry = nil
	return e
}

// reading keeps what the caller looks at until done is called. It never waits.
func (m *memory) reading() (done func()) {
	m.readers.Add(1)
	return func() { m.readers.Add(-1) }
}

// reuse keeps a history and its entries for the next ones, of an object that can't be looked up any more, unless somebody has done so.
func (m *memory) reuse(h *history) {
	for _, e := range h.entries {
		m.reuseEntry(e)
	}
	if m.readers.Load() == 0 {
		*h = history{}
		m.spare = h
	}
}

// reuseEntry is reuse for an entry that is in its history no more. Nil is none.
func (m *memory) reuseEntry(e *entry) {
	if e == nil || m.readers.Load() > 0 {
		return
	}
	if !e.shown {
		e.record.Release()
	}
	*e = entry{}
	m.spareEntry = e
}

// lookUp returns the history of an object, or nil. It is called with mu or index held.
func (m *memory) lookUp(hash uint64, id objectID) *history {
	h := m.objects[hash]
	for h != nil && h.id != id {
		h = h.same
	}
	return h
}

// history returns the history of an object, or nil. It is the caller's while it is reading.
func (m *memory) history(id objectID) *history {
	hash := m.hash(id)
	m.index.RLock()
	defer m.index.RUnlock()
	return m.lookUp(hash, id)
}

// histories returns those of all objects, which are the caller's while it is reading.
func (m *memory) histories() []*history {
	m.index.RLock()
	defer m.index.RUnlock()
	return slices.Clone(m.all)
}

// remember has a history be looked up.
func (m *memory) remember(h *history) {
	h.same, h.place = m.objects[h.hash], len(m.all)
	m.objects[h.hash], m.all = h, append(m.all, h)
}

// forget undoes remember. The last history takes the place of this one.
func (m *memory) forget(h *history) {
	switch before := m.objects[h.hash]; {
	case before != h:
		for before.same != h {
			before = before.same
		}
		before.same = h.same
	case h.same == nil:
		delete(m.objects, h.hash)
	default:
		m.objects[h.hash] = h.same
	}
	last := len(m.all) - 1
	m.all[h.place], m.all[last].place = m.all[last], h.place
	m.all[last] = nil
	m.all = m.all[:last]
}

// show returns the last reconciliations of an object. Their records may be kept.
func (m *memory) show(h *history) []*entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range h.entries {
		e.shown = true
	}
	return slices.Clone(h.entries)
}

// versionOf returns a number that changes when something is added to what is remembered of an object.
func (m *memory) versionOf(id objectID) uint64 {
	defer m.reading()()
	if h := m.history(id); h != nil {
		return h.version.Load()
	}
	return 0
}

// describe puts into words what was changed in a reconciliation.
func (m *memory) describe(h *history, e *entry) {
	m.describing.Lock()
	defer m.describing.Unlock()
	if e.described {
		return
	}
	e.record.Describe()
	size := trimResources(e.record)
	e.described = true

	m.mu.Lock()
	defer m.mu.Unlock()
	if h.in != nil && slices.Contains(h.entries, e) {
		m.grow(h, size-e.bytes)
	}
	e.bytes = size
}

func (m *memory) grow(h *history, bytes int) {
	h.bytes += bytes
	m.bytes += bytes
}

// append adds an entry, and returns the one that it drops, if any, and by how many bytes the history is larger.
func (h *history) append(e *entry, limit int) (dropped *entry, grown int) {
	if n := len(h.entries); e.quiet && n > 0 && h.entries[n-1].quiet {
		before := h.entries[n-1]
		e.repeats, e.first = before.repeats+1, before.first
		if before.repeats == 0 {
			e.first = before.record.Started
		}
		h.entries[n-1] = e
		return before, e.bytes - before.bytes
	}
	if len(h.entries) >= limit {
		dropped = h.entries[0]
		grown -= dropped.bytes
		h.entries = slices.Delete(h.entries, 0, 1)
	}
	h.entries = append(h.entries, e)
	return dropped, grown + e.bytes
}

// objectAfter is what is known of the object after one more reconciliation. It is in that record, or, when that did not know it, a copy:
// a record goes with its entry.
func (h *history) objectAfter(r *framework.Record) *plan.Object {
	last := h.last.Load()
	if r.Event != "" || last == nil || last.object.Name == "" {
		return &r.Object
	}
	if last.object != &last.record.Object {
		return last.object
	}
	object := *last.object
	return &object
}

// failureAfter is how the object fails after one more reconciliation.
func (h *history) failureAfter(r *framework.Record) failure {
	if r.Outcome != framework.Failed {
		return failure{}
	}
	if last := h.last.Load(); last != nil && last.failure.count > 0 {
		return failure{last.failure.since, last.failure.count + 1}
	}
	return failure{r.Started, 1}
}

// move puts a history at the end of the list where it belongs.
func (m *memory) move(h *history) {
	to := &m.calm
	if h.last.Load().failure.count > 0 {
		to = &m.failing
	}
	if h.in != nil {
		h.in.remove(h)
	}
	to.push(h)
}

// isFull tells whether the limits are not kept.
func (m *memory) isFull() bool {
	return len(m.all) > m.maxObjects || m.bytes > m.maxBytes && len(m.all) > 1
}

// forgetOldest forgets an object.
func (m *memory) forgetOldest() {
	h := m.calm.front
	if h == nil {
		h = m.failing.front
	}
	h.in.remove(h)
	m.forget(h)
	m.bytes -= h.bytes
	m.reuse(h)
}

// canWait tells whether the changes of a record are all to be described when somebody wants to read them.
func canWait(r *framework.Record) bool {
	waits := false
	for i := range r.Resources {
		if len(r.Resources[i].Changes) > 0 {
			return false
		}
		waits = waits || r.Resources[i].Changed()
	}
	return waits
}

// isQuiet tells whether a reconciliation found everything as it should be.
func isQuiet(r *framework.Record) bool {
	if r.Outcome != framework.Succeeded || r.Event != plan.UpdateEvent || len(r.Signals) > 0 {
		return false
	}
	for i := range r.Resources {
		if of := &r.Resources[i]; of.Changed() || of.Skipped != "" || of.Error != "" {
			return false
		}
	}
	return true
}
