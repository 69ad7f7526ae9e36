package inspector

import (
	"container/list"
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

	// objects are the histories by their IDs, and all are the same in a row. They are changed with both mu and index held, so that either
	// is enough to read them.
	objects map[objectID]*history
	all     []*history

	// mu is what recording needs: whoever reads holds it for no longer than it takes to look at one object.
	mu sync.Mutex
	// index is held by whoever looks objects up, for no longer than it takes to copy all. It goes after mu.
	index sync.RWMutex
	// calm and failing hold them, the one that was added to longest ago at the front.
	calm, failing list.List
	bytes         int
	version       uint64

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
	id      objectID
	object  plan.Object
	version atomic.Uint64
	// entries are the last reconciliations, the newest at the end.
	entries []*entry
	// one is where they are while there is one.
	one [1]*entry
	// last is the newest one, for those who do not hold the lock.
	last atomic.Pointer[entry]

	list    *list.List
	element *list.Element
	bytes   int
	// place is that among all histories.
	place int
}

// entry is a reconciliation, and those like it right before in which nothing happened either. Only what describing a record
// completes is changed once it is in a history.
type entry struct {
	record *framework.Record
	// kind is that of the object, and failure says since when it fails.
	kind    string
	failure failure
	bytes   int
	// described tells whether the changes of the record are complete. Nobody reads them before.
	described bool
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
	e := &entry{record: r, quiet: isQuiet(r), described: !canWait(r)}
	if e.described {
		r.Describe()
	}
	e.bytes = trim(r)

	m.mu.Lock()
	defer m.mu.Unlock()
	m.version++
	id := objectID{r.Framework, r.Key}
	h := m.objects[id]
	isNew := h == nil
	if isNew {
		h = &history{id: id}
		h.entries = h.one[:0]
		m.grow(h, historyBytes+len(id.key.Namespace)+len(id.key.Name))
	}
	h.version.Store(m.version)
	if r.Event != "" || h.object.Name == "" {
		h.object = r.Object
	}
	e.kind, e.failure = h.object.Kind, h.failureAfter(r)
	m.grow(h, h.append(e, m.maxRecords))
	h.last.Store(e)
	if isNew {
		m.remember(h)
	}
	m.move(h)
	m.evict()
}

// history returns the history of an object, or nil.
func (m *memory) history(id objectID) *history {
	m.index.RLock()
	defer m.index.RUnlock()
	return m.objects[id]
}

// histories returns those of all objects.
func (m *memory) histories() []*history {
	m.index.RLock()
	defer m.index.RUnlock()
	return slices.Clone(m.all)
}

// remember adds a history.
func (m *memory) remember(h *history) {
	m.index.Lock()
	defer m.index.Unlock()
	h.place = len(m.all)
	m.objects[h.id], m.all = h, append(m.all, h)
}

// forget drops a history. The last one takes its place.
func (m *memory) forget(h *history) {
	m.index.Lock()
	defer m.index.Unlock()
	delete(m.objects, h.id)
	last := len(m.all) - 1
	m.all[h.place], m.all[last].place = m.all[last], h.place
	m.all[last] = nil
	m.all = m.all[:last]
}

// entries returns the last reconciliations of an object, and the object as the last of them knew it.
func (m *memory) entries(h *history) ([]*entry, plan.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(h.entries), h.object
}

// versionOf returns a number that changes when something is added to what is remembered of an object.
func (m *memory) versionOf(id objectID) uint64 {
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
	if slices.Contains(h.entries, e) && m.objects[h.id] == h {
		m.grow(h, size-e.bytes)
	}
	e.bytes = size
}

func (m *memory) grow(h *history, bytes int) {
	h.bytes += bytes
	m.bytes += bytes
}

// append adds an entry and returns by how many bytes that made the history larger.
func (h *history) append(e *entry, limit int) (grown int) {
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
	for len(m.all) > m.maxObjects || m.bytes > m.maxBytes && len(m.all) > 1 {
		oldest := m.calm.Front()
		if oldest == nil {
			oldest = m.failing.Front()
		}
		h := oldest.Value.(*history)
		h.list.Remove(oldest)
		m.forget(h)
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
