package inspector

import (
	"container/list"
	"maps"
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

	// mu guards what follows. Readers hold it only while they copy pointers, because workers wait for it.
	mu      sync.Mutex
	objects map[objectID]*history
	// calm and failing hold the histories, the one that was added to longest ago at the front.
	calm, failing list.List
	bytes         int
}

// objectID names an object among those of all frameworks.
type objectID struct {
	framework string
	key       informer.Key
}

// history is what is known of one object.
type history struct {
	id objectID
	// entries are the last reconciliations, the newest at the end.
	entries []*entry
	// last is the newest one, for those who do not hold the lock.
	last atomic.Pointer[entry]
	// in is the list that it is in, at place.
	in    *list.List
	place *list.Element
	bytes int
}

// entry is a reconciliation, and those like it right before in which nothing happened either. It
// does not change.
type entry struct {
	record *framework.Record
	// object is the object as the last record knew it that did.
	object plan.Object
	// failure says since when it fails.
	failure failure
	bytes   int
	// quiet tells that nothing happened: all was as it should be.
	quiet bool
	// repeats is how many reconciliations before this one it stands for, the first of which began at first.
	repeats int
	first   time.Time
}

// failure says since when an object fails, and how often in a row. The zero value is one that does not.
type failure struct {
	since time.Time
	count int
}

func newMemory(c Config) *memory {
	return &memory{maxRecords: c.RecordsPerObject, maxObjects: c.Objects, maxBytes: c.Memory, objects: map[objectID]*history{}}
}

// add keeps a record.
func (m *memory) add(r *framework.Record) {
	e := &entry{record: r, quiet: isQuiet(r), bytes: trim(r)}

	m.mu.Lock()
	defer m.mu.Unlock()
	id := objectID{r.Framework, r.Key}
	h := m.objects[id]
	if h == nil {
		h = &history{id: id}
		m.objects[id] = h
		m.grow(h, historyBytes+len(id.key.Namespace)+len(id.key.Name))
	}
	e.object, e.failure = h.objectAfter(r), h.failureAfter(r)
	m.grow(h, h.append(e, m.maxRecords))
	h.last.Store(e)
	m.move(h)
	for len(m.objects) > m.maxObjects || m.bytes > m.maxBytes && len(m.objects) > 1 {
		m.forgetOldest()
	}
}

// history returns the history of an object, or nil.
func (m *memory) history(id objectID) *history {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.objects[id]
}

// histories returns those of all objects, in no order.
func (m *memory) histories() []*history {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.objects))
}

// show returns the last reconciliations of an object.
func (m *memory) show(h *history) []*entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(h.entries)
}

func (m *memory) grow(h *history, bytes int) {
	h.bytes += bytes
	m.bytes += bytes
}

// append adds an entry, and returns by how many bytes the history is larger.
func (h *history) append(e *entry, limit int) (grown int) {
	grown = e.bytes
	if n := len(h.entries); e.quiet && n > 0 && h.entries[n-1].quiet {
		before := h.entries[n-1]
		e.repeats, e.first = before.repeats+1, before.first
		if before.repeats == 0 {
			e.first = before.record.Started
		}
		h.entries[n-1] = e
		return grown - before.bytes
	}
	if len(h.entries) >= limit {
		grown -= h.entries[0].bytes
		h.entries = slices.Delete(h.entries, 0, 1)
	}
	h.entries = append(h.entries, e)
	return grown
}

// objectAfter is what is known of the object after one more reconciliation, whose record may not know it.
func (h *history) objectAfter(r *framework.Record) plan.Object {
	if last := h.last.Load(); r.Event == "" && last != nil && last.object.Name != "" {
		return last.object
	}
	return r.Object
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
	if h.in != nil {
		h.in.Remove(h.place)
	}
	h.in = &m.calm
	if h.last.Load().failure.count > 0 {
		h.in = &m.failing
	}
	h.place = h.in.PushBack(h)
}

// forgetOldest forgets an object.
func (m *memory) forgetOldest() {
	from := &m.calm
	if from.Len() == 0 {
		from = &m.failing
	}
	h := from.Remove(from.Front()).(*history)
	delete(m.objects, h.id)
	m.bytes -= h.bytes
}

// isQuiet tells whether a reconciliation found everything as it should be.
func isQuiet(r *framework.Record) bool {
	if r.Outcome != framework.Succeeded || r.Event != plan.UpdateEvent || len(r.Signals) > 0 {
		return false
	}
	for i := range r.Resources {
		if of := &r.Resources[i]; len(of.Changes) > 0 || of.Skipped != "" || of.Error != "" {
			return false
		}
	}
	return true
}
