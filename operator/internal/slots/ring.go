package slots

import (
	"cmp"
	"maps"
	"slices"
)

// Slot is the content of the Lease of a slot.
type Slot struct {
	// Holder is the replica that works in the slot. It is empty before the first one.
	Holder string
	// Next is the replica that is to hold the slot. Ready is true once Next has listed the objects.
	Next  string
	Ready bool
	// Written orders slots by when their Leases were written. The slot written first moves first.
	Written uint64
	// Barred is true if the Lease of the slot was deleted. No replica claims the slot, because its
	// holder may not know of the deletion yet.
	Barred bool
}

// Replica is the content of the Lease of a replica.
type Replica struct {
	// Version is the version of the program. The newest version is the one of the replica that
	// joined last.
	Version string
	Joined  int64
	// Able is true if the replica can work: the sources of all its frameworks are synced.
	Able bool
	// Leaving is true if the replica is about to end.
	Leaving bool
	// Used are the slots in which the replica knows objects.
	Used Set
}

// Ring is a replica's view of all replicas and slots.
type Ring struct {
	Slots    [Count]Slot
	Replicas map[string]Replica
}

// Write is a new state of a slot.
type Write struct {
	Slot int
	To   Slot
}

// Part returns the part of a replica, whether it has listed the objects or not.
func (r *Ring) Part(replica string) (part Part) {
	for i, s := range r.Slots {
		switch {
		case s.Barred || s.Holder != replica && s.Next != replica:
			continue
		case s.Holder == replica && s.released():
			part.Releasing.Add(i)
		case s.Holder == replica:
			part.Owned.Add(i)
		}
		part.Held.Add(i)
	}
	return part
}

// released reports whether the holder may start no more work in the slot.
func (s Slot) released() bool { return s.Next != "" && s.Ready }

// Complete reports whether each slot has a replica that may start work in it.
func (r *Ring) Complete() bool {
	return !slices.ContainsFunc(r.Slots[:], func(s Slot) bool { return s.Barred || s.released() || !r.exists(s.Holder) })
}

// Writes returns the slots that a replica has to write now. listed are the slots that it has listed
// the objects of. pass reports whether a slot can be passed to the next holder, and is called only
// for slots that the replica does not own.
func (r *Ring) Writes(replica string, listed Set, pass func(slot int) bool) (writes []Write) {
	claims := r.claims()
	// A source that lists more misses objects that come and go meanwhile. That must not happen while
	// another replica, which has seen them, passes a slot on.
	waits := slices.ContainsFunc(r.Slots[:], func(s Slot) bool { return s.Next == replica && r.exists(s.Holder) })
	for i, s := range r.Slots {
		to := s
		switch {
		case s.Barred:
		case s.Holder == replica && s.Next != "" && !r.stays(s.Next):
			to = Slot{Holder: replica} // The next holder has gone.
		case s.Holder == replica && s.released() && pass(i):
			to = Slot{Holder: s.Next}
		case s.Next == replica && !r.stays(replica):
		case s.Next == replica && !r.exists(s.Holder):
			to = Slot{Holder: replica}
		case s.Next == replica && listed.Has(i):
			to.Ready = true
		case claims[i] == replica && !r.exists(s.Holder):
			to = Slot{Holder: replica}
		case claims[i] == replica && !waits:
			to = Slot{Holder: s.Holder, Next: replica}
		}
		if to.Written = s.Written; to != s {
			writes = append(writes, Write{i, to})
		}
	}
	return writes
}

func (r *Ring) exists(replica string) bool {
	_, exists := r.Replicas[replica]
	return exists
}

// stays reports whether a replica exists and is not about to end.
func (r *Ring) stays(replica string) bool {
	known, exists := r.Replicas[replica]
	return exists && !known.Leaving
}

// owner returns the replica that holds a slot, or is to hold it, and stays. It is empty if there is
// none.
func (r *Ring) owner(s Slot) string {
	switch {
	case r.stays(s.Next):
		return s.Next
	case r.stays(s.Holder):
		return s.Holder
	}
	return ""
}

// claims returns the replica that claims a slot, for each slot that is to move. Slots with objects
// and slots without are distributed separately, so that all replicas have the same number of slots
// with objects even with few namespaces.
func (r *Ring) claims() (claims [Count]string) {
	staying := slices.DeleteFunc(slices.Sorted(maps.Keys(r.Replicas)), func(name string) bool { return !r.stays(name) })
	heirs, mixed := r.heirs(staying)
	if len(heirs) == 0 {
		return claims
	}
	var used Set
	for _, known := range r.Replicas {
		for i := range used {
			used[i] |= known.Used[i]
		}
	}
	for _, class := range []bool{true, false} {
		shares, movable := map[string]int{}, map[string][]int{}
		var free []int
		for i, s := range r.Slots {
			owner := r.owner(s)
			switch {
			case used.Has(i) != class || s.Barred:
				continue
			case owner == "":
				free = append(free, i)
				continue
			case s.Next == "":
				movable[owner] = append(movable[owner], i)
			}
			shares[owner]++
		}
		give := func(slot int) {
			to := slices.MinFunc(heirs, func(a, b string) int { return cmp.Compare(shares[a], shares[b]) })
			claims[slot] = to
			shares[to]++
		}
		for _, slot := range free {
			give(slot)
		}
		for _, of := range movable {
			slices.SortFunc(of, r.compareMoves)
		}
		for !mixed {
			most := slices.MaxFunc(staying, func(a, b string) int { return cmp.Compare(shares[a], shares[b]) })
			least := slices.MinFunc(heirs, func(a, b string) int { return cmp.Compare(shares[a], shares[b]) })
			if shares[most]-shares[least] < 2 || len(movable[most]) == 0 {
				break
			}
			give(movable[most][0])
			movable[most] = movable[most][1:]
			shares[most]--
		}
	}
	return claims
}

// compareMoves orders slots by which of them moves first: the one written first. Slot 0 moves last,
// because what runs only once moves with it.
func (r *Ring) compareMoves(a, b int) int {
	if a == 0 || b == 0 {
		return cmp.Compare(b, a)
	}
	return cmp.Or(cmp.Compare(r.Slots[a].Written, r.Slots[b].Written), cmp.Compare(b, a))
}

// heirs returns the replicas that may claim slots: those of the newest version, among the replicas
// that are able to work, or among all if none is able. mixed is true while replicas of several
// versions run, as in a rolling update. While mixed, a slot moves only if its holder leaves.
func (r *Ring) heirs(staying []string) (heirs []string, mixed bool) {
	for _, able := range []bool{true, false} {
		if heirs = slices.DeleteFunc(slices.Clone(staying), func(name string) bool { return r.Replicas[name].Able != able }); len(heirs) > 0 {
			break
		}
	}
	if len(heirs) == 0 {
		return nil, false
	}
	last := slices.MaxFunc(heirs, func(a, b string) int { return cmp.Compare(r.Replicas[a].Joined, r.Replicas[b].Joined) })
	older := func(name string) bool { return r.Replicas[name].Version != r.Replicas[last].Version }
	return slices.DeleteFunc(heirs, older), slices.ContainsFunc(staying, older)
}
