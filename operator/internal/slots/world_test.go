package slots_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/operatorkit/operatorkit/operator/internal/slots"
)

// The times of the model. A Lease expires when it was observed unchanged for duration. A fence
// closes when validity has passed since the start of the last renewal.
const (
	duration = 15
	validity = 12
)

// event is a write that the API server has performed. Its index in the log is its resource version.
type event struct {
	slot    int // -1 for a replica
	state   slots.Slot
	name    string
	replica slots.Replica
	gone    bool
}

// world is an API server and its replicas, whose watches lag.
type world struct {
	log []event
	// slots and replicas are the current versions.
	slots    [slots.Count]int
	replicas map[string]int
	nodes    map[string]*node
	now      int
	joined   int
	// late are requests that were sent but not performed yet.
	late []func()
}

func newWorld() *world {
	return &world{log: make([]event, 1), replicas: map[string]int{}, nodes: map[string]*node{}}
}

// node is a replica.
type node struct {
	*world
	name string
	self slots.Replica
	// seen is the last version in the log that the node has seen. answered are newer versions of
	// slots that it knows from answers.
	seen     int
	answered map[int]int
	view     [slots.Count]int
	others   map[string]sight
	holder   *slots.Holder
	works    []int
	listed   slots.Set
	// lease is the version of the node's own Lease. renewed is the start of its last renewal that
	// succeeded for all it knows.
	lease, renewed int
	lost           bool
}

type sight struct{ version, since int }

func (w *world) join(version string) *node {
	w.joined++
	n := &node{
		world: w, name: fmt.Sprintf("replica-%02d", w.joined), self: slots.Replica{Version: version, Joined: int64(w.joined), Able: true},
		answered: map[int]int{}, others: map[string]sight{}, holder: slots.NewHolder(func() {}), renewed: w.now,
	}
	n.lease = w.write(event{slot: -1, name: n.name, replica: n.self})
	n.hear(len(w.log))
	w.nodes[n.name] = n
	return n
}

func (w *world) write(e event) (version int) {
	version = len(w.log)
	w.log = append(w.log, e)
	switch {
	case e.slot >= 0:
		w.slots[e.slot] = version
	case e.gone:
		delete(w.replicas, e.name)
	default:
		w.replicas[e.name] = version
	}
	return version
}

// hear delivers this number of events from the watch.
func (n *node) hear(events int) {
	for ; events > 0 && n.seen < len(n.log)-1; events-- {
		n.seen++
		switch e := n.log[n.seen]; {
		case e.slot >= 0:
			n.view[e.slot] = max(n.view[e.slot], n.seen)
		case e.gone:
			delete(n.others, e.name)
		default:
			n.others[e.name] = sight{n.seen, n.now}
		}
	}
}

// ring returns what the node knows.
func (n *node) ring() *slots.Ring {
	r := &slots.Ring{Replicas: map[string]slots.Replica{}}
	for i, version := range n.view {
		r.Slots[i] = n.log[version].state
		r.Slots[i].Written = uint64(version)
	}
	for name, s := range n.others {
		r.Replicas[name] = n.log[s.version].replica
	}
	return r
}

// renew renews the Lease. If reply is false, the answer is lost.
func (n *node) renew(reply bool) {
	switch current, exists := n.replicas[n.name]; {
	case n.lost:
	case !exists:
		n.lost = true
		n.holder.Have(slots.Part{})
	case current != n.lease:
		n.lease = current // An answer was lost: it renews the current version next time.
	default:
		version := n.write(event{slot: -1, name: n.name, replica: n.self})
		if reply {
			n.lease, n.renewed = version, n.now
		}
	}
}

// expire deletes expired Leases.
func (n *node) expire() {
	for name, s := range n.others {
		if name != n.name && n.now-s.since >= duration && n.replicas[name] == s.version {
			n.write(event{slot: -1, name: name, gone: true})
		}
	}
}

// mayWrite reports whether the fence is open.
func (n *node) mayWrite() bool { return !n.lost && n.now-n.renewed < validity }

func (n *node) follow() *slots.Ring {
	r := n.ring()
	part := r.Part(n.name)
	n.listed = n.listed.And(part.Held)
	if !n.lost {
		part.Owned = part.Owned.And(n.listed)
		n.holder.Have(part)
	}
	return r
}

func (n *node) list() {
	n.listed = n.ring().Part(n.name).Held
	for _, slot := range []int{1, 7, 90, 91, 200} {
		if n.listed.Has(slot) {
			n.self.Used.Add(slot)
		}
	}
	n.self.Used = n.self.Used.And(n.listed)
}

// fate is the outcome of a request.
type fate int

const (
	answered fate = iota
	unanswered
	delayed
	dropped
)

// act writes what the node has to write now.
func (n *node) act(fateOf func() fate) (writes int) {
	r := n.follow()
	if n.lost {
		return 0
	}
	for _, w := range r.Writes(n.name, n.listed, n.holder.Pass) {
		writes++
		before := n.view[w.Slot]
		send := func() (version int, ok bool) {
			if n.slots[w.Slot] != before {
				return 0, false
			}
			return n.write(event{slot: w.Slot, state: w.To}), true
		}
		switch fateOf() {
		case answered:
			if version, ok := send(); ok {
				n.view[w.Slot] = version
			}
		case unanswered:
			send()
		case delayed:
			n.late = append(n.late, func() { send() })
		case dropped:
		}
	}
	return writes
}

func (n *node) begin(slot int, finishing bool) {
	if n.holder.Begin(slot, finishing) {
		n.works = append(n.works, slot)
	}
}

func (n *node) end() {
	n.holder.End(n.works[0])
	n.works = n.works[1:]
}

// working returns the slots in which a node may write.
func (n *node) working() slots.Set {
	working := n.holder.Part().Owned
	for _, slot := range n.works {
		working.Add(slot)
	}
	return working
}

// conflict describes a slot in which two replicas may write. It is empty if there is none.
func (w *world) conflict() string {
	var all slots.Set
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		n := w.nodes[name]
		if !n.mayWrite() {
			continue
		}
		working := n.working()
		if both := all.And(working); both != (slots.Set{}) {
			return fmt.Sprintf("%s may write in slots %v, and others too", name, slotsOf(both))
		}
		for slot := range slots.Count {
			if working.Has(slot) {
				all.Add(slot)
			}
		}
	}
	return ""
}

func slotsOf(s slots.Set) (list []int) {
	for slot := range slots.Count {
		if s.Has(slot) {
			list = append(list, slot)
		}
	}
	return list
}

// settle delivers everything, and lets time pass and all nodes act until nothing changes. It
// reports whether that state is reached.
func (w *world) settle() bool {
	for _, send := range w.late {
		send()
	}
	w.late = nil
	for quiet, round := 0, 0; round < 200; round++ {
		before := len(w.log)
		for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
			n := w.nodes[name]
			for len(n.works) > 0 {
				n.end()
			}
			n.hear(len(w.log))
			n.list()
			n.act(func() fate { return answered })
		}
		moved := len(w.log) - before
		for _, n := range w.nodes {
			n.renew(true)
			n.hear(len(w.log))
			n.expire()
		}
		w.now++
		if quiet++; moved > 0 {
			quiet = 0
		}
		if quiet > duration+2 {
			return true
		}
	}
	return false
}
