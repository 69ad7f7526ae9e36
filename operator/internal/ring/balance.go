package ring

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// tolerance is by which part of its due a member may have more or less before anything moves for that.
const tolerance = 0.1

// cuts is in how many parts, for each member, a space without objects is cut to be shared out.
const cuts = 8

// piece is a part of the space that goes to one member as a whole.
type piece struct {
	Span
	// of is the place of its range in the table.
	of     int
	owner  string
	weight float64
	// moving pieces have been told to move before, and stay with who is to get them.
	moving bool
}

// balance is the work of sharing out.
type balance struct {
	pieces []piece
	// names are those of the members, in order.
	names []string
	// load and due are what each member has and is to have.
	load, due map[string]float64
	// heirs are the members that may get something.
	heirs map[string]bool
	// leaving is set while there are others that are about to end.
	leaving bool
}

// balanced returns the pieces of the space with who is to own them. There are members; leaving tells of others that are about to end.
func balanced(t Table, members map[string]Member, leaving bool) []piece {
	b := &balance{
		pieces: t.pieces(len(members)), names: slices.Sorted(maps.Keys(members)),
		load: map[string]float64{}, due: map[string]float64{}, heirs: newest(members), leaving: leaving,
	}
	total, capacity := 0.0, 0
	for i := range b.pieces {
		p := &b.pieces[i]
		total += p.weight
		if _, alive := members[p.owner]; !alive {
			p.owner = ""
			continue
		}
		b.load[p.owner] += p.weight
	}
	for _, m := range members {
		capacity += max(m.Capacity, 1)
	}
	for name, m := range members {
		b.due[name] = total * float64(max(m.Capacity, 1)) / float64(capacity)
	}
	b.shareOut()
	b.even()
	return b.pieces
}

// newest are the members of the newest version: that of the one which came last.
func newest(members map[string]Member) map[string]bool {
	last := slices.MaxFunc(slices.Sorted(maps.Keys(members)), func(a, b string) int { return cmp.Compare(members[a].Joined, members[b].Joined) })
	heirs := map[string]bool{}
	for name, m := range members {
		heirs[name] = m.Version == members[last].Version
	}
	return heirs
}

// pieces cuts the ranges at the buckets, and what holds no objects at even places. The whole space weighs as much as one object, so
// that also an empty one is shared out.
func (t Table) pieces(members int) []piece {
	width := Hash(math.MaxUint64/uint64(members*cuts) + 1) //nolint:gosec // members are counted
	var pieces []piece
	for i, r := range t.Ranges {
		span := t.Span(i)
		add := func(s Span, objects int) {
			pieces = append(pieces, piece{Span: s, of: i, owner: r.heir(), weight: float64(max(objects, 0)) + s.share(), moving: r.Next != ""})
		}
		addEmpty := func(s Span) {
			for s.Last-s.First >= width {
				edge := (s.First/width+1)*width - 1
				add(Span{s.First, edge}, 0)
				s.First = edge + 1
			}
			add(s, 0)
		}
		next, covered := span.First, false
		for _, bucket := range within(t.Weights, span) {
			if covered || bucket.First < next || bucket.Last < bucket.First || bucket.Last > span.Last {
				continue // A replica has told nonsense: ranges must not overlap for that.
			}
			if bucket.First > next {
				addEmpty(Span{next, bucket.First - 1})
			}
			if bucket.Objects == 0 {
				addEmpty(bucket.Span)
			} else {
				add(bucket.Span, bucket.Objects)
			}
			next, covered = bucket.Last+1, bucket.Last == span.Last
		}
		if !covered {
			addEmpty(Span{next, span.Last})
		}
	}
	return pieces
}

// shareOut gives every piece without an owner away: to who has what lies before it, or behind the whole gap, as long as that has less
// than its due, and otherwise to the heir that lacks most.
func (b *balance) shareOut() {
	for i := range b.pieces {
		p := &b.pieces[i]
		if p.owner != "" {
			continue
		}
		heir := ""
		if i > 0 {
			heir = b.pieces[i-1].owner
		}
		if !b.canTake(heir, p) {
			heir = b.behind(i)
		}
		if !b.canTake(heir, p) {
			heir = b.most(b.lack, b.heirs)
		}
		b.give(p, heir)
	}
}

// canTake tells whether a member may get a piece and has its due no more than before.
func (b *balance) canTake(member string, p *piece) bool {
	return b.heirs[member] && b.load[member]+p.weight/2 <= b.due[member]
}

// behind is who has what lies behind the gap of a piece.
func (b *balance) behind(i int) string {
	for _, p := range b.pieces[i:] {
		if p.owner != "" {
			return p.owner
		}
	}
	return ""
}

// even takes from members that have too much and gives to heirs that have too little, until nobody is off by more than the tolerance or
// nothing fits.
func (b *balance) even() {
	donors := map[string]bool{}
	for _, name := range b.names {
		donors[name] = true
	}
	if b.leaving || len(b.names) > count(b.heirs) {
		// What the newest ones have has moved before: it stays.
		for name, heir := range b.heirs {
			donors[name] = !heir
		}
	}
	for range 2 * len(b.names) {
		donor := b.most(func(name string) float64 { return -b.lack(name) }, donors)
		heir := b.most(b.lack, b.heirs)
		if donor == "" || donor == heir || b.load[donor] <= b.due[donor] ||
			b.load[donor] <= (1+tolerance)*b.due[donor] && b.load[heir] >= (1-tolerance)*b.due[heir] {
			return
		}
		// A donor gives a little more than it has too much of: fewer of them give, and ranges stay few.
		if !b.move(donor, heir, min(b.load[donor]-(1-tolerance/2)*b.due[donor], b.due[heir]-b.load[heir])) {
			donors[donor] = false
		}
	}
}

// move moves about as much as amount, by as few pieces that lie apart as it can, and tells whether anything was moved.
func (b *balance) move(donor, heir string, amount float64) bool {
	runs := b.runs(donor)
	// Whole runs first, the largest that fits: ranges become fewer so. Then a part of one, best beside what the heir has.
	slices.SortStableFunc(runs, func(x, y run) int {
		switch near := b.beside(x, heir); {
		case near == b.beside(y, heir):
			return cmp.Compare(y.weight, x.weight)
		case near:
			return -1
		}
		return 1
	})
	moved := false
	for _, r := range runs {
		if r.weight <= amount && b.fits(donor, heir, r.weight) {
			for i := r.from; i < r.to; i++ {
				b.give(&b.pieces[i], heir)
			}
			amount -= r.weight
			moved = true
		}
	}
	for _, r := range runs {
		fromEnd := r.to < len(b.pieces) && b.pieces[r.to].owner == heir
		for n := range r.to - r.from {
			i := r.from + n
			if fromEnd {
				i = r.to - 1 - n
			}
			p := &b.pieces[i]
			// A first piece may be more than amount: what has one hash can't be cut.
			if p.owner != donor || moved && p.weight/2 > amount || !b.fits(donor, heir, p.weight) {
				break
			}
			b.give(p, heir)
			amount -= p.weight
			moved = true
		}
	}
	return moved
}

// fits tells whether moving a weight makes the larger of two loads smaller.
func (b *balance) fits(donor, heir string, weight float64) bool {
	return (b.load[heir]+weight)/b.due[heir] < b.load[donor]/b.due[donor]
}

// run is a row of pieces of one member, up to and without to.
type run struct {
	from, to int
	weight   float64
}

// runs returns the rows of pieces of a member that can be moved.
func (b *balance) runs(member string) []run {
	var runs []run
	for i, p := range b.pieces {
		if p.owner != member || p.moving {
			continue
		}
		if last := len(runs) - 1; last >= 0 && runs[last].to == i {
			runs[last].to++
			runs[last].weight += p.weight
			continue
		}
		runs = append(runs, run{i, i + 1, p.weight})
	}
	return runs
}

// beside tells whether a row lies beside what a member has.
func (b *balance) beside(r run, member string) bool {
	return r.from > 0 && b.pieces[r.from-1].owner == member || r.to < len(b.pieces) && b.pieces[r.to].owner == member
}

// lack is which part of its due a member lacks, below 0 when it has more.
func (b *balance) lack(name string) float64 { return 1 - b.load[name]/b.due[name] }

// most returns the member of those for which f is largest.
func (b *balance) most(f func(name string) float64, among map[string]bool) string {
	best, found := "", math.Inf(-1)
	for _, name := range b.names {
		if v := f(name); among[name] && v > found {
			best, found = name, v
		}
	}
	return best
}

func (b *balance) give(p *piece, member string) {
	if p.owner != "" {
		b.load[p.owner] -= p.weight
	}
	p.owner = member
	b.load[member] += p.weight
}

func count(set map[string]bool) int {
	n := 0
	for _, in := range set {
		if in {
			n++
		}
	}
	return n
}
