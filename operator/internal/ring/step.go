package ring

import (
	"maps"
	"slices"
)

// Member is what a replica says of itself.
type Member struct {
	// Capacity is how much it can carry, next to others: 1 is usual.
	Capacity int `json:"capacity"`
	// Version is that of its program, and Joined when it came, by which the newest version is found.
	Version string `json:"version,omitempty"`
	Joined  int64  `json:"joined"`
	// Leaving is set when it is about to end: it gets nothing, and others get what it has, if there are any.
	Leaving bool `json:"leaving,omitempty"`
	// Confirmed is up to where it follows the table.
	Confirmed Confirmation `json:"confirmed"`
	// Weights are where its objects are, in the spans that it owns and has listed, in order.
	Weights []Bucket `json:"weights,omitempty"`
}

// Step returns the table that follows from this one and from the members there are, and whether it says anything else. It has to take
// the place of exactly this one. life is that of the object that holds it. gone are members of which it is known for certain that they
// don't work any more, as they were last; of those that are named in the table and are not members it is assumed.
func (t Table) Step(life string, members, gone map[string]Member) (Table, bool) {
	next := Table{Generation: t.Generation + 1, Weights: t.weights(members, gone)}
	if len(t.Ranges) == 0 {
		next.Ranges = []Range{{Since: next.Generation}}
		next.Barrier = slices.Sorted(maps.Keys(members))
		return next, true
	}
	for _, name := range t.Barrier {
		m, exists := members[name]
		if exists && (m.Confirmed.Life != life || len(m.Confirmed.Busy) > 0) {
			next.Barrier = append(next.Barrier, name)
		}
	}
	next.settle(t, life, members, gone)
	next.Ranges = next.shared(staying(members), len(staying(members)) < len(members))
	next.Weights = coarse(next.Weights, maxBuckets)
	if next.equal(t) {
		return t, false
	}
	return next, true
}

// weights are what is known of where the objects are, of all members that tell of what they own.
func (t Table) weights(members, gone map[string]Member) []Bucket {
	known := t.Weights
	for _, of := range []map[string]Member{gone, members} {
		var told []Bucket
		for i, r := range t.Ranges {
			if m, ok := of[r.Owner]; ok {
				told = append(told, within(m.Weights, t.Span(i))...)
			}
		}
		known = overlay(known, told)
	}
	return known
}

// Weighed returns the table with what the members say of where the objects are in what they own. One that was written before they said
// anything is as good as any while nothing has to move.
func (t Table) Weighed(members map[string]Member) Table {
	t.Weights = t.weights(members, nil)
	return t
}

// Idle returns those of the members, in order, that own no object as far as is known, although there are some. Fewer different values of
// the field than members leave some idle.
func (t Table) Idle(members map[string]Member) []string {
	objects, total := map[string]int{}, 0
	weights := t.weights(members, nil)
	members = staying(members)
	for i, r := range t.Ranges {
		for _, b := range within(weights, t.Span(i)) {
			objects[r.heir()] += b.Objects
			total += b.Objects
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(members)), func(m string) bool { return total == 0 || objects[m] > 0 })
}

// staying are the members that are not about to end.
func staying(members map[string]Member) map[string]Member {
	stay := maps.Clone(members)
	maps.DeleteFunc(stay, func(_ string, m Member) bool { return m.Leaving })
	return stay
}

// settle has the table follow from a former one by what has come true: owners that are gone own nothing, and what was given up goes on. Who
// was to get something and is gone, or about to go, leaves it to its owner, the only one that may have worked in it.
func (t *Table) settle(former Table, life string, members, gone map[string]Member) {
	t.Ranges = slices.Clone(former.Ranges)
	for _, n := range former.Notes {
		if m, alive := members[n.To]; alive && !m.Confirmed.follows(life, n.Since) {
			t.Notes = append(t.Notes, n)
		}
	}
	for i := range t.Ranges {
		r, span := &t.Ranges[i], former.Span(i)
		next, alive := members[r.Next]
		if !alive || next.Leaving {
			r.stay()
		}
		owner, alive := members[r.Owner]
		switch {
		case r.Owner == "":
		case !alive:
			done, _ := gone[r.Owner].Confirmed.given(life, r.Since, span)
			t.passOn(i, span, done)
		case r.Known:
			if done, given := owner.Confirmed.given(life, r.Since, span); given {
				t.passOn(i, span, done)
			}
		case r.Next != "" && next.Confirmed.follows(life, r.Since) && Covers(next.Confirmed.Listed, []Span{span}):
			r.Known, r.Since = true, t.Generation
		}
	}
}

// passOn gives a range, of which the span is that, to who is next, or to nobody, with what its owner has done.
func (t *Table) passOn(i int, span Span, done []string) {
	r := &t.Ranges[i]
	note := Note{Span: span, To: r.Next, Since: t.Generation}
	note.Done = fitting(done, maxNotes-size(t.Notes)-size(note))
	if r.Next != "" && len(note.Done) > 0 {
		t.Notes = append(t.Notes, note)
	}
	r.pass(r.Next, t.Generation)
}

// pass gives a range in which nobody works to a new owner, or to nobody.
func (r *Range) pass(owner string, generation int64) {
	r.Owner, r.Since = owner, generation
	r.stay()
	if owner != "" {
		r.Epoch++
	}
}

// shared gives the ranges of a table to members. leaving tells of others that are about to end.
func (t Table) shared(members map[string]Member, leaving bool) []Range {
	if len(t.Barrier) > 0 || len(members) == 0 {
		return t.Ranges
	}
	var ranges []Range
	for _, p := range balanced(t, members, leaving) {
		r := t.Ranges[p.of]
		r.First = p.First
		switch {
		case p.owner == r.heir():
		case r.Owner == "":
			r.pass(p.owner, t.Generation)
		case p.owner == r.Owner:
			r.stay()
		default:
			r.Next, r.Known, r.Since = p.owner, false, t.Generation
		}
		ranges = append(ranges, r)
	}
	return merged(ranges)
}
