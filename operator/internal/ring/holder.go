package ring

import (
	"slices"
	"sync"
)

// Confirmation is up to where a replica follows the table: it works on nothing that this one does not give it, but on what is busy, and
// will not unless a later one does.
type Confirmation struct {
	// Life is that of the object that holds the table, its UID.
	Life string `json:"life,omitempty"`
	// Generation is that of the table.
	Generation int64 `json:"generation"`
	// Busy are the hashes in which work goes on that was begun before, in order.
	Busy []Hash `json:"busy,omitempty"`
}

// released tells whether the replica has ended its work in a span that it was told to give up by the table of that generation.
func (c Confirmation) released(life string, generation int64, span Span) bool {
	return c.Life == life && c.Generation >= generation && !slices.ContainsFunc(c.Busy, span.Contains)
}

// Holder is the side of one replica: what it may work on. It is safe for concurrent use.
type Holder struct {
	member string

	mu         sync.Mutex
	life       string
	generation int64
	owned      []Span
	held       []Span
	busy       map[Hash]int
	closed     bool
	// changed is called when the confirmation says more than before.
	changed func()
}

// NewHolder returns the holder of a member, which owns nothing. changed is called, without a lock, when work has ended on which a
// confirmation waits; it may be nil.
func NewHolder(member string, changed func()) *Holder {
	if changed == nil {
		changed = func() {}
	}
	return &Holder{member: member, busy: map[Hash]int{}, changed: changed}
}

// Apply follows a table, which is not older than the one before. life is that of the object that holds it.
func (h *Holder) Apply(life string, t Table) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.life, h.generation, h.held = life, t.Generation, t.Held(h.member)
	if !h.closed {
		h.owned = t.Owned(h.member)
	}
}

// Close gives everything up for good.
func (h *Holder) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed, h.owned = true, nil
}

// Owned returns what the replica may begin to work in, in order.
func (h *Holder) Owned() []Span {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.owned)
}

// Held returns what the replica has to know the objects of, in order, see [Table.Held].
func (h *Holder) Held() []Span {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.held)
}

// Owns tells whether the replica may begin to work on a hash.
func (h *Holder) Owns(hash Hash) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.owns(hash)
}

func (h *Holder) owns(hash Hash) bool {
	return slices.ContainsFunc(h.owned, func(s Span) bool { return s.Contains(hash) })
}

// Begin begins to work on a hash, until End, and tells whether that may be. Several may work on one hash.
func (h *Holder) Begin(hash Hash) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.owns(hash) {
		return false
	}
	h.busy[hash]++
	return true
}

// End ends what Begin has begun.
func (h *Holder) End(hash Hash) {
	h.mu.Lock()
	h.busy[hash]--
	awaited := h.busy[hash] == 0 && !h.owns(hash)
	if h.busy[hash] == 0 {
		delete(h.busy, hash)
	}
	h.mu.Unlock()
	if awaited {
		h.changed()
	}
}

// Idle tells whether no work goes on.
func (h *Holder) Idle() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.busy) == 0
}

// Confirmation returns what the replica can confirm.
func (h *Holder) Confirmation() Confirmation {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := Confirmation{Life: h.life, Generation: h.generation}
	for hash := range h.busy {
		if !h.owns(hash) {
			c.Busy = append(c.Busy, hash)
		}
	}
	slices.Sort(c.Busy)
	return c
}
