package slots

import "sync"

// Part is the slots of a replica.
type Part struct {
	// Owned are the slots in which the replica may start work. Releasing are the slots that it is
	// about to pass to another replica. Held are all of these, and the slots that the replica is
	// about to get.
	Owned, Releasing, Held Set
}

// Holder records in which slots a replica may start work, and in which work is under way. It is
// safe for concurrent use.
type Holder struct {
	mu   sync.Mutex
	part Part
	// passed are the slots of part.Releasing in which no work may start.
	passed Set
	busy   [Count]int
	// idle is called when the last work has ended in a slot that is not owned.
	idle func()
}

// NewHolder returns a Holder that owns nothing. idle is called, without a lock, when the last work
// has ended in a slot that is not owned.
func NewHolder(idle func()) *Holder { return &Holder{idle: idle} }

// Have replaces the part.
func (h *Holder) Have(part Part) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.part, h.passed = part, h.passed.And(part.Releasing)
}

// Part returns the part.
func (h *Holder) Part() Part {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.part
}

// Begin starts work in a slot, until End, and reports whether that is allowed. Work that only
// finishes earlier work is also allowed in slots that are being released, until they are passed to
// the next holder. A slot can have several works at once.
func (h *Holder) Begin(slot int, finishing bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	allowed := h.part.Owned
	if finishing {
		allowed = allowed.With(h.part.Releasing.Without(h.passed))
	}
	if !allowed.Has(slot) {
		return false
	}
	h.busy[slot]++
	return true
}

// End ends work that Begin has started.
func (h *Holder) End(slot int) {
	h.mu.Lock()
	h.busy[slot]--
	ended := h.busy[slot] == 0 && !h.part.Owned.Has(slot)
	h.mu.Unlock()
	if ended {
		h.idle()
	}
}

// Pass reports whether a slot that is being released can be passed to the next holder, because no
// work is under way in it. If so, no work starts in the slot until this replica owns it again.
func (h *Holder) Pass(slot int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.busy[slot] > 0 {
		return false
	}
	h.passed.Add(slot)
	return true
}

// AllIdle reports whether no work is under way at all.
func (h *Holder) AllIdle() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.busy == [Count]int{}
}
