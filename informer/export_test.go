package informer

// Fed returns the writing side of a source, with which tests put objects into it that no API server has.
func (k *Kubernetes) Fed() *Feed { return k.feed }

// Accounts returns how many objects the ledger of writes holds.
func (h *Hub) Accounts() int {
	h.delivery.Lock()
	defer h.delivery.Unlock()
	return len(h.ledger)
}
