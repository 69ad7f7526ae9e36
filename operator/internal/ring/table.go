package ring

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
)

// Table says who owns which part of the space. Tables are values: what makes a new one leaves the old one as it is.
type Table struct {
	// Generation counts the tables of one life of the object that holds them.
	Generation int64 `json:"generation"`
	// Barrier are the members that may work by a table of an earlier life, and which have not said yet that they don't any more. As long
	// as there are any, nobody is given anything.
	Barrier []string `json:"barrier,omitempty"`
	// Ranges cut the whole space, in order. A table without any is new.
	Ranges []Range `json:"ranges"`
	// Weights are what is known of where the objects are, in order and without overlaps.
	Weights []Bucket `json:"weights,omitempty"`
	// Notes are what former owners have left for the next ones, until these follow a table with them.
	Notes []Note `json:"notes,omitempty"`
}

// Note is what the former owner of a span has left for the next one.
type Note struct {
	Span `json:",inline"`
	To   string `json:"to"`
	// Since is the generation in which the span has passed on.
	Since int64 `json:"since"`
	// Done is what the former owner has done of which the next one could not know.
	Done []string `json:"done"`
}

// How many bytes may tell of what was done, as JSON: in what a replica confirms, and in the notes of a table. The annotations of a Lease have
// room for 256 KiB, and hold more than that. What does not fit is left out: it is done twice.
const (
	maxGiven = 32 << 10
	maxNotes = 64 << 10
)

// fitting returns what there is room for of what was done, in bytes, the first of it.
func fitting(done []string, room int) []string {
	for i := range done {
		if room -= size(done[i]) + 1; room < 0 {
			return done[:i]
		}
	}
	return done
}

// size is how many bytes a value takes as JSON.
func size(value any) int {
	encoded, _ := json.Marshal(value) // texts and numbers
	return len(encoded)
}

// Range is a part of the space, up to the next range.
type Range struct {
	First Hash `json:"first"`
	// Owner is the member that owns it, the only one that may work in it. It is empty when nobody does.
	Owner string `json:"owner,omitempty"`
	// Next is who gets it once Owner has given it up.
	Next string `json:"next,omitempty"`
	// Known is set once Next knows the objects in it. From then on Owner is to give it up.
	Known bool `json:"known,omitempty"`
	// Epoch counts the owners.
	Epoch int64 `json:"epoch"`
	// Since is the generation from which on it has been like this.
	Since int64 `json:"since"`
}

// heir is who has the range, or is to have it.
func (r Range) heir() string {
	if r.Next != "" {
		return r.Next
	}
	return r.Owner
}

// stay leaves the range to its owner.
func (r *Range) stay() { r.Next, r.Known = "", false }

// Validate returns an error if the ranges of a table are not those of the whole space, in order.
func (t Table) Validate() error {
	for i, r := range t.Ranges {
		if i == 0 && r.First != 0 || i > 0 && r.First <= t.Ranges[i-1].First {
			return fmt.Errorf("range %d of the table begins at %s, which is not where it can", i, r.First)
		}
	}
	return nil
}

// Span returns the span of a range of the table.
func (t Table) Span(i int) Span {
	last := MaxHash
	if i+1 < len(t.Ranges) {
		last = t.Ranges[i+1].First - 1
	}
	return Span{t.Ranges[i].First, last}
}

// Find returns the range in which a hash lies. The table is not new.
func (t Table) Find(h Hash) Range {
	return t.Ranges[sort.Search(len(t.Ranges), func(i int) bool { return t.Ranges[i].First > h })-1]
}

// Held returns what a member has to know the objects of: what it owns, also while it gives it up, and what it is to get.
func (t Table) Held(member string) []Span {
	return t.spans(func(r Range, _ Span) bool { return r.Owner == member || r.Next == member })
}

// Awaited returns what a member is to get.
func (t Table) Awaited(member string) []Span {
	return t.spans(func(r Range, _ Span) bool { return r.Next == member })
}

// Leaving returns what a member is to give up now.
func (t Table) Leaving(member string) (moves []Move) {
	for i, r := range t.Ranges {
		if r.Owner == member && r.Known {
			moves = append(moves, Move{t.Span(i), r.Since})
		}
	}
	return moves
}

// NotesTo returns what was left for a member.
func (t Table) NotesTo(member string) (notes []Note) {
	for _, n := range t.Notes {
		if n.To == member {
			notes = append(notes, n)
		}
	}
	return notes
}

// spans joins the ranges of which holds is true.
func (t Table) spans(holds func(Range, Span) bool) []Span {
	var spans []Span
	for i, r := range t.Ranges {
		s := t.Span(i)
		if !holds(r, s) {
			continue
		}
		if last := len(spans) - 1; last >= 0 && spans[last].Last+1 == s.First {
			spans[last].Last = s.Last
			continue
		}
		spans = append(spans, s)
	}
	return spans
}

// Objects is how many objects lie in a range of the table, as far as is known.
func (t Table) Objects(i int) (objects int) {
	for _, b := range within(t.Weights, t.Span(i)) {
		objects += b.Objects
	}
	return objects
}

// Moving is how many ranges wait for their former owner.
func (t Table) Moving() int {
	moving := 0
	for _, r := range t.Ranges {
		if r.Next != "" {
			moving++
		}
	}
	return moving
}

// Part is what a member has of the space, or nobody, without a name.
type Part struct {
	Member string
	// Ranges are how many it owns, and Moving how many of these others are to get.
	Ranges, Moving int
}

// Parts returns who has how much, by name.
func (t Table) Parts() []Part {
	parts := map[string]Part{}
	for _, r := range t.Ranges {
		p := parts[r.Owner]
		p.Member = r.Owner
		p.Ranges++
		if r.Next != "" {
			p.Moving++
		}
		parts[r.Owner] = p
	}
	return slices.SortedFunc(maps.Values(parts), func(a, b Part) int { return strings.Compare(a.Member, b.Member) })
}

// merged joins neighbours that are owned by the same member, or that move from and to the same ones since the same generation.
func merged(ranges []Range) []Range {
	var out []Range
	for _, r := range ranges {
		last := len(out) - 1
		if last >= 0 && out[last].Owner == r.Owner && out[last].Next == r.Next && (r.Next == "" || out[last].Since == r.Since && out[last].Known == r.Known) {
			out[last].Epoch = max(out[last].Epoch, r.Epoch)
			out[last].Since = max(out[last].Since, r.Since)
			continue
		}
		out = append(out, r)
	}
	return out
}

// equal tells whether two tables say the same of who owns what, whatever their generations, weights and notes are.
func (t Table) equal(other Table) bool {
	return slices.Equal(t.Ranges, other.Ranges) && slices.Equal(t.Barrier, other.Barrier)
}
