package inspector

import (
	"container/list"
	"slices"
	"sync"
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

	mu      sync.Mutex
	objects map[objectID]*history
	// calm and failing hold the histories, the one that was added to longest ago at the front.
	calm, failing list.List
	bytes         int
	version       uint64
}

// objectID names an object among those of all frameworks.
type objectID struct {
	framework string
	key       informer.Key
}

// history is what is known of one object.
type history struct {
	id      objectID
	object  plan.Object
	version uint64
	// entries are the last reconciliations, the newest at the end.
	entries []entry
	// failure is nil while all is well.
	failure *failure

	list    *list.List
	element *list.Element
	bytes   int
}

// entry is a reconciliation, and those like it right before in which nothing happened either.
type entry struct {
	record *framework.Record
	bytes  int
	// described tells whether the changes of the record are complete. Nobody but the memory has seen it before.
	described bool
	// quiet tells that nothing happened: all was as it should be.
	quiet bool
	// repeats is how many reconciliations before this one it stands for, the first of which began at first.
	repeats int
	first   time.Time
}

// failure says since when an object fails.
type failure struct {
	since time.Time
	count int
}

func newMemory(c Config) *memory {
	return &memory{maxRecords: c.RecordsPerObject, maxObjects: c.Objects, maxBytes: c.Memory, objects: map[objectID]*history{}}
}

// add keeps a record.
func (m *memory) add(r *framework.Record) {
	e := entry{record: r, quiet: isQuiet(r), described: !canWait(r)}
	if e.described {
		r.Describe()
	}
	e.bytes = trim(r)

	m.mu.Lock()
	defer m.mu.Unlock()
	m.version++
	h := m.history(objectID{r.Framework, r.Key})
	h.version = m.version
	if r.Event != "" || h.object.Name == "" {
		h.object = r.Object
	}
	m.grow(h, h.append(e, m.maxRecords))
	h.judge(r)
	m.move(h)
	m.evict()
}

// history returns the history of an object, a new one if there is none.
func (m *memory) history(id objectID) *history {
	h := m.objects[id]
	if h == nil {
		h = &history{id: id}
		m.objects[id] = h
		m.grow(h, historyBytes)
	}
	return h
}

// describe puts into words what was changed in a reconciliation. Nobody else has its record yet.
func (m *memory) describe(h *history, e *entry) {
	if e.described {
		return
	}
	e.record.Describe()
	size := trim(e.record)
	m.grow(h, size-e.bytes)
	e.bytes, e.described = size, true
}

func (m *memory) grow(h *history, bytes int) {
	h.bytes += bytes
	m.bytes += bytes
}

// append adds an entry and returns by how many bytes that made the history larger.
func (h *history) append(e entry, limit int) (grown int) {
	if n := len(h.entries); e.quiet && n > 0 && h.entries[n-1].quiet {
		before := h.entries[n-1]
		e.repeats, e.first = before.repeats+1, before.first
		if before.repeats == 0 {
			e.first = before.record.Started
		}
		h.entries[n-1] = e
		return e.bytes - before.bytes
	}
	if len(h.entries) >= limit {
		grown -= h.entries[0].bytes
		h.entries = slices.Delete(h.entries, 0, 1)
	}
	h.entries = append(h.entries, e)
	return grown + e.bytes
}

// judge tells whether the object fails.
func (h *history) judge(r *framework.Record) {
	switch {
	case r.Outcome != framework.Failed:
		h.failure = nil
	case h.failure == nil:
		h.failure = &failure{since: r.Started, count: 1}
	default:
		h.failure.count++
	}
}

// move puts a history at the end of the list where it belongs.
func (m *memory) move(h *history) {
	to := &m.calm
	if h.failure != nil {
		to = &m.failing
	}
	if h.list == to {
		to.MoveToBack(h.element)
		return
	}
	if h.list != nil {
		h.list.Remove(h.element)
	}
	h.list, h.element = to, to.PushBack(h)
}

// evict forgets objects until the limits are kept.
func (m *memory) evict() {
	for len(m.objects) > m.maxObjects || m.bytes > m.maxBytes && len(m.objects) > 1 {
		oldest := m.calm.Front()
		if oldest == nil {
			oldest = m.failing.Front()
		}
		h := oldest.Value.(*history)
		h.list.Remove(oldest)
		delete(m.objects, h.id)
		m.bytes -= h.bytes
	}
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
