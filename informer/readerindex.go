package informer

import "sigs.k8s.io/controller-runtime/pkg/client"

// namespaceIndex is the index that a Reader adds to its sources.
const namespaceIndex = "operatorkit.io/namespace"

// namespaceOf files objects under their namespaces. Kinds without namespaces are not filed.
func namespaceOf(obj any) []string {
	if o, ok := obj.(client.Object); ok && o.GetNamespace() != "" {
		return []string{o.GetNamespace()}
	}
	return nil
}

// addIndex adds an index, with the objects that there are, unless it is there already.
func (h *Hub) addIndex(name string, values IndexFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, exists := h.store.indexes[name]; exists {
		return
	}
	ix := &index{values: values, keys: map[string]keySet{}}
	for key, e := range h.store.entries {
		for _, value := range values(e.object) {
			ix.keys[value] = ix.keys[value].with(key)
		}
	}
	h.store.indexes[name] = ix
}

// itemsOf returns the stored objects of a namespace themselves, or all of them for "".
func (h *Hub) itemsOf(namespace string) []Item {
	if namespace == "" {
		return h.items()
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	items, _ := h.store.byIndex(namespaceIndex, namespace) // NewReader has added it
	return items
}

// stored returns a stored object itself.
func (h *Hub) stored(key Key) (client.Object, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	e, exists := h.store.entries[key]
	if !exists {
		return nil, false
	}
	return e.object.(client.Object), true
}
