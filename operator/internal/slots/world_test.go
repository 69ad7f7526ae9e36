package slots_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/operatorkit/operatorkit/operator/internal/slots"
)

// The times of the model: an expired Lease is one that was seen unchanged for duration, and a fence closes validity
// after the last renewal was begun.
const (
	duration = 15
	validity = 12
)

// event is a write that the API server has carried out. Its place in the log is its resource version.
type event struct {
	slot    int // -1 for a replica
	state   slots.Slot
	name    string
	replica slots.Replica
	gone    bool
}

// world is an API server, and the replicas that know it by a watch, which lags.
type world struct {
	log []event
	// slots and replicas are the versions that are there now.
	slots    [slots.Count]int
	replicas map[string]int
	nodes    map[string]*node
	now      int
	joined   int
	// late are requests that were sent and not carried out yet.
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
	// seen is up to where it knows the log. answered are versions of slots that it knows beyond.
	seen     int
	answered map[int]int
	view     [slots.Count]int
	others   map[string]sight
	holder   *slots.Holder
	works    []int
	listed   slots.Set
	// lease is the version of its own Lease, renewed is when the renewal was begun that it knows to have succeeded.
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

// hear has the watch show so many events more.
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

// ring is what the node knows.
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

// renew renews the Lease. reply is false if the answer is lost.
func (n *node) renew(reply bool) {
	switch current, exists := n.replicas[n.name]; {
	case n.lost:
	case !exists:
		n.lost = true
		n.holder.Have(slots.Part{})
	case current != n.lease:
		n.lease = current // An answer was lost: it renews what is there next time.
	default:
		version := n.write(event{slot: -1, name: n.name, replica: n.self})
		if reply {
			n.lease, n.renewed = version, n.now
		}
	}
}

// expire deletes Leases that have expired.
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
	n.listed = n.listed.And(r.Held(n.name))
	if !n.lost {
		n.holder.Have(slots.Part{Owned: r.Owned(n.name).And(n.listed), Releasing: r.Releasing(n.name)})
	}
	return r
}

func (n *node) list() {
	n.listed = n.ring().Held(n.name)
	for _, slot := range []int{1, 7, 90, 91, 200} {
		if n.listed.Has(slot) {
			n.self.Used.Add(slot)
		}
	}
	n.self.Used = n.self.Used.And(n.listed)
}

// fate is what becomes of a request.
type fate int

const (
	answered fate = iota
	unanswered
	delayed
	dropped
)

// act writes what is to be written next.
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

// working are the slots in which a node may write.
func (n *node) working() slots.Set {
	working := n.holder.Part().Owned
	for _, slot := range n.works {
		working.Add(slot)
	}
	return working
}

// conflict describes a slot in which two replicas may write, and is empty if there is none.
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

// settle has everything arrive, time pass and everybody act until nothing changes, and reports whether that comes.
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
