package inspector

import "github.com/operatorkit/operatorkit/informer"

// Replica is one of those that share the objects of an operator, or nobody, without a name, for what has no owner at the moment.
type Replica struct {
	Name string `json:"name"`
	// This tells that it is the one whose page this is.
	This bool `json:"this,omitempty"`
	// Ranges are how many ranges of hashes it has, and Moving how many of them it gives up as soon as its work in them has ended.
	Ranges int `json:"ranges"`
	Moving int `json:"moving"`
	// Objects are how many objects lie in these, of all frameworks.
	Objects int `json:"objects"`
}

// Ring tells who has which objects. Its methods are safe for concurrent use.
type Ring interface {
	// Replicas are all of them, by name.
	Replicas() []Replica
	// Owner is the name of the replica that has an object, and empty if none has.
	Owner(key informer.Key) string
}

// ShareBy shows on the page who has which objects. It is called before the page is served.
func (i *Inspector) ShareBy(r Ring) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ring = r
}

// sharedBy returns what ShareBy was given, or nil.
func (i *Inspector) sharedBy() Ring {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.ring
}
