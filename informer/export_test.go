package informer

// Fed returns the writing side of a source, with which tests add objects that no API server has.
func (k *Kubernetes) Fed() *Feed { return k.feed }

// OpenWrites returns how many objects have writes that have not ended.
func (h *Hub) OpenWrites() int {
	h.delivery.Lock()
	defer h.delivery.Unlock()
	return len(h.open)
}
