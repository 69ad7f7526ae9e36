package ring_test

import (
	"fmt"
	"slices"
	"sort"

	"github.com/operatorkit/operatorkit/operator/internal/ring"
)

// replica is one of a world without delays.
type replica struct {
	holder  *ring.Holder
	version string
	size    int
	leaving bool
	joined  int64
}

// world is a ring in which everything arrives at once.
type world struct {
	hashes  []ring.Hash
	table   ring.Table
	members map[string]*replica
	joins   int64
}

// newWorld has objects by UID.
func newWorld(objects int) *world {
	w := &world{members: map[string]*replica{}}
	for i := range objects {
		w.hashes = append(w.hashes, ring.HashOf(fmt.Sprintf("%08x-5b2a-4c7e-9d1f-%012x", i*2654435761%(1<<32), i)))
	}
	slices.Sort(w.hashes)
	return w
}

func (w *world) join(name, version string, capacity int) *replica {
	w.joins++
	r := &replica{holder: ring.NewHolder(name, nil), version: version, size: capacity, joined: w.joins}
	w.members[name] = r
	return r
}

func (w *world) leave(name string) { delete(w.members, name) }

// settle goes on until nothing changes any more.
func (w *world) settle() {
	for range 1000 {
		if !w.step() {
			return
		}
	}
	panic("the table changes for ever")
}

// step has everybody hear of the table, and the leader write the next one, and tells whether that says anything else.
func (w *world) step() bool {
	for _, r := range w.members {
		r.hear("life", w.table)
	}
	next, changed := w.table.Step("life", w.told(), nil)
	if changed {
		w.table = next
	}
	return changed
}

func (w *world) told() map[string]ring.Member {
	told := map[string]ring.Member{}
	for name, r := range w.members {
		told[name] = r.member(w.hashes)
	}
	return told
}

// hear follows a table, and gives up at once what that says.
func (r *replica) hear(life string, t ring.Table) {
	r.holder.Apply(life, t)
	giveUp(r.holder)
}

func giveUp(h *ring.Holder) {
	for _, m := range h.Leaving() {
		h.GiveUp(m)
		h.Give(m, nil)
	}
}

// confirmation is that of a replica that has listed what it is to get.
func confirmation(h *ring.Holder) ring.Confirmation {
	c := h.Confirmation()
	c.Listed = h.Awaited()
	return c
}

// member is what the replica says of itself.
func (r *replica) member(hashes []ring.Hash) ring.Member {
	return ring.Member{
		Capacity: r.size, Version: r.version, Joined: r.joined, Leaving: r.leaving, Confirmed: confirmation(r.holder), Weights: weights(hashes, r.holder.Owned()),
	}
}

func weights(hashes []ring.Hash, owned []ring.Span) []ring.Bucket {
	var buckets []ring.Bucket
	for _, s := range owned {
		buckets = append(buckets, ring.Weigh(s, in(hashes, s), 32)...)
	}
	return buckets
}

// in returns the hashes in a span.
func in(hashes []ring.Hash, s ring.Span) []ring.Hash {
	from := sort.Search(len(hashes), func(i int) bool { return hashes[i] >= s.First })
	to := sort.Search(len(hashes), func(i int) bool { return hashes[i] > s.Last })
	return hashes[from:to]
}

// share is which part of the objects a member owns.
func (w *world) share(name string) float64 {
	owned := 0
	for i, r := range w.table.Ranges {
		if r.Owner == name {
			owned += len(in(w.hashes, w.table.Span(i)))
		}
	}
	return float64(owned) / float64(len(w.hashes))
}

func (w *world) owners() map[ring.Hash]string {
	owners := map[ring.Hash]string{}
	if len(w.table.Ranges) == 0 {
		return owners
	}
	for _, h := range w.hashes {
		owners[h] = w.table.Find(h).Owner
	}
	return owners
}

// moved is how many objects have other owners than before.
func (w *world) moved(before map[ring.Hash]string) int {
	moved := 0
	for _, h := range w.hashes {
		if w.table.Find(h).Owner != before[h] {
			moved++
		}
	}
	return moved
}
