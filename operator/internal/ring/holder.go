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
	// Listed is what the replica is to get and knows the objects of, in order.
	Listed []Span `json:"listed,omitempty"`
	// Given is what the replica has given up.
	Given []Given `json:"given,omitempty"`
}

// Move is a span that its owner is to give up since a generation.
type Move struct {
	Span  `json:",inline"`
	Since int64 `json:"since"`
}

// Given is a span that its owner has given up. It works on nothing there unless a later table leaves the span to it.
type Given struct {
	Move `json:",inline"`
	// Done is what the owner has done of which the next one can't know.
	Done []string `json:"done,omitempty"`
}

// follows tells whether the replica follows the table of a generation, or a later one.
func (c Confirmation) follows(life string, generation int64) bool {
	return c.Life == life && c.Generation >= generation
}

// given tells whether the replica has given a span up that it was told to give up by the table of that generation, and what it has done.
func (c Confirmation) given(life string, generation int64, span Span) (done []string, given bool) {
	if c.Life != life || slices.ContainsFunc(c.Busy, span.Contains) {
		return nil, false
	}
	i := slices.IndexFunc(c.Given, func(g Given) bool { return g.Since == generation && Covers([]Span{g.Span}, []Span{span}) })
	if i < 0 {
		return nil, false
	}
	return c.Given[i].Done, true
}

// Holder is the side of one replica: what it may work on. It is safe for concurrent use.
type Holder struct {
	member string

	mu         sync.Mutex
	life       string
	generation int64
	table      Table
	owned      []Span
	busy       map[Hash]int
	closed     bool
	// given is what was given up by the table, and told is true of what is confirmed.
	given []gift
	// changed is called when the confirmation says more than before.
	changed func()
}

type gift struct {
	Given
	told bool
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
	leaving := t.Leaving(h.member)
	h.given = slices.DeleteFunc(h.given, func(g gift) bool {
		return h.life != life || !slices.ContainsFunc(leaving, func(m Move) bool { return m.Since == g.Since && m.Overlaps(g.Span) })
	})
	h.life, h.generation, h.table = life, t.Generation, t
	h.own()
}

// own finds what is owned: all that the table says but what was given up.
func (h *Holder) own() {
	if h.closed {
		h.owned = nil
		return
	}
	h.owned = h.table.spans(func(r Range, s Span) bool { return r.Owner == h.member && (!r.Known || !h.gave(Move{s, r.Since})) })
}

// gave tells whether something has been given up.
func (h *Holder) gave(m Move) bool {
	return slices.ContainsFunc(h.given, func(g gift) bool { return g.Since == m.Since && Covers([]Span{g.Span}, []Span{m.Span}) })
}

// Leaving returns what the replica is to give up, and has not.
func (h *Holder) Leaving() []Move {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(h.table.Leaving(h.member), h.gave)
}

// GiveUp gives something up: nothing more is begun in it.
func (h *Holder) GiveUp(m Move) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.given = append(h.given, gift{Given: Given{Move: m}})
	h.own()
}

// Give confirms that something was given up, with what was done in it, the first of which is told if there is no room for all. As long as work
// goes on there, it is not passed on all the same.
func (h *Holder) Give(m Move, done []string) {
	h.mu.Lock()
	room := maxGiven
	for _, g := range h.given {
		room -= size(g.Done)
	}
	for i := range h.given {
		if h.given[i].Move == m {
			h.given[i].Done, h.given[i].told = fitting(done, room), true
		}
	}
	h.mu.Unlock()
	h.changed()
}

// Close gives everything up for good.
func (h *Holder) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.own()
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
	return h.table.Held(h.member)
}

// Awaited returns what the replica is to get, in order, see [Table.Awaited].
func (h *Holder) Awaited() []Span {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.table.Awaited(h.member)
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

// Resume begins to work on a hash that has been given up and not confirmed to be, until End, and tells whether that may be: it is for what
// the next owner can't know of.
func (h *Holder) Resume(hash Hash) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	open := !h.closed && slices.ContainsFunc(h.given, func(g gift) bool { return !g.told && g.Contains(hash) })
	if open {
		h.busy[hash]++
	}
	return open
}

// Idle tells whether no work goes on.
func (h *Holder) Idle() bool { return h.IdleIn(Span{0, MaxHash}) }

// IdleIn tells whether no work goes on in a span.
func (h *Holder) IdleIn(span Span) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for hash := range h.busy {
		if span.Contains(hash) {
			return false
		}
	}
	return true
}

// Confirmation returns what the replica can confirm, without what it has listed.
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
	for _, g := range h.given {
		if g.told {
			c.Given = append(c.Given, g.Given)
		}
	}
	return c
}
