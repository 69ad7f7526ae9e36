package slots

import "sync"

// Holder knows in which slots a replica may begin work, and in which work is under way. It is safe for concurrent use.
type Holder struct {
	mu    sync.Mutex
	owned Set
	busy  [Count]int
	// idle is called when the last work has ended in a slot that is not owned any more.
	idle func()
}

// NewHolder returns a holder that owns nothing. idle is called, without a lock, when the last work has ended in a slot
// that is not owned any more.
func NewHolder(idle func()) *Holder { return &Holder{idle: idle} }

// Own replaces what is owned.
func (h *Holder) Own(owned Set) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.owned = owned
}

// Owned returns what is owned.
func (h *Holder) Owned() Set {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.owned
}

// Begin begins work in a slot, until End, and reports whether that is allowed. Slots may have several works at once.
func (h *Holder) Begin(slot int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.owned.Has(slot) {
		return false
	}
	h.busy[slot]++
	return true
}

// End ends what Begin has begun.
func (h *Holder) End(slot int) {
	h.mu.Lock()
	h.busy[slot]--
	ended := h.busy[slot] == 0 && !h.owned.Has(slot)
	h.mu.Unlock()
	if ended {
		h.idle()
	}
}

// Idle reports whether no work is under way in a slot.
func (h *Holder) Idle(slot int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.busy[slot] == 0
}

// AllIdle reports whether no work is under way at all.
func (h *Holder) AllIdle() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.busy == [Count]int{}
}
