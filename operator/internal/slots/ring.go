package slots

import (
	"cmp"
	"maps"
	"slices"
)

// Slot is what the Lease of a slot says.
type Slot struct {
	// Holder is the replica that works in the slot. It is empty if there was none yet.
	Holder string
	// Next is the replica that is to hold it. Ready says that it has listed the objects.
	Next  string
	Ready bool
	// Written orders slots by when their Leases were written: of several slots, the one written first moves first.
	Written uint64
	// Barred is true of a slot whose Lease somebody has deleted: its holder may not know that yet, and nobody claims it.
	Barred bool
}

// Replica is what the Lease of a replica says.
type Replica struct {
	// Version is that of the program. The newest one is that of the replica that has joined last.
	Version string
	Joined  int64
	// Able says that it can work in what it gets: the sources of all its frameworks are synced.
	Able bool
	// Leaving says that it is about to end.
	Leaving bool
	// Used are the slots in which it knows objects.
	Used Set
}

// Ring is what a replica knows of all replicas and slots.
type Ring struct {
	Slots    [Count]Slot
	Replicas map[string]Replica
}

// Write is a new state of a slot.
type Write struct {
	Slot int
	To   Slot
}

// Owned returns the slots in which a replica may begin work.
func (r *Ring) Owned(replica string) (owned Set) {
	for i, s := range r.Slots {
		if s.Holder == replica && !s.Barred && !s.released() {
			owned.Add(i)
		}
	}
	return owned
}

// Releasing returns the slots that a replica holds, and in which it only finishes work.
func (r *Ring) Releasing(replica string) (releasing Set) {
	for i, s := range r.Slots {
		if s.Holder == replica && !s.Barred && s.released() {
			releasing.Add(i)
		}
	}
	return releasing
}

// released reports whether the holder begins nothing more in the slot.
func (s Slot) released() bool { return s.Next != "" && s.Ready }

// Held returns the slots of which a replica has to know the objects: those that it holds or is to hold.
func (r *Ring) Held(replica string) (held Set) {
	for i, s := range r.Slots {
		if !s.Barred && (s.Holder == replica || s.Next == replica) {
			held.Add(i)
		}
	}
	return held
}

// Complete reports whether there is a replica for each slot that may begin work in it.
func (r *Ring) Complete() bool {
	return !slices.ContainsFunc(r.Slots[:], func(s Slot) bool { return s.Barred || s.released() || !r.exists(s.Holder) })
}

// Writes returns what a replica has to write next. listed are the slots of which it has listed the objects, and pass
// reports whether a slot can be passed to the next holder; it is called only for slots that the replica does not own.
func (r *Ring) Writes(replica string, listed Set, pass func(slot int) bool) (writes []Write) {
	claims := r.claims()
	for i, s := range r.Slots {
		to := s
		switch {
		case s.Barred:
		case s.Holder == replica && s.Next != "" && !r.stays(s.Next):
			to = Slot{Holder: replica} // The next one has gone.
		case s.Holder == replica && s.released() && pass(i):
			to = Slot{Holder: s.Next}
		case s.Next == replica && !r.stays(replica):
		case s.Next == replica && !r.exists(s.Holder):
			to = Slot{Holder: replica}
		case s.Next == replica && listed.Has(i):
			to.Ready = true
		case claims[i] == replica && !r.exists(s.Holder):
			to = Slot{Holder: replica}
		case claims[i] == replica:
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

// owner is the replica that holds a slot, or is to hold it, and stays. It is empty if there is none.
func (r *Ring) owner(s Slot) string {
	switch {
	case r.stays(s.Next):
		return s.Next
	case r.stays(s.Holder):
		return s.Holder
	}
	return ""
}

// claims returns the replica that claims a slot, for each slot that is to move. Slots with objects and those without
// are distributed each by itself: with few namespaces, too, all replicas have as many.
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

// compareMoves orders slots by which of them moves first: the one that was written first. What runs once moves with
// slot 0, which moves last.
func (r *Ring) compareMoves(a, b int) int {
	if a == 0 || b == 0 {
		return cmp.Compare(b, a)
	}
	return cmp.Or(cmp.Compare(r.Slots[a].Written, r.Slots[b].Written), cmp.Compare(b, a))
}

// heirs returns the replicas that may claim something: those that are able to work, or all as long as none is, and of
// these those of the newest version. mixed is true while replicas of several versions run, as in a rolling update: no
// slot moves then unless its holder leaves.
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
