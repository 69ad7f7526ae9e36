package shadows

import (
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

const (
	// maxDetails is how many comparisons are kept of one shadow set.
	maxDetails = 1000
	// maxPlaces is how many places are counted of one shadow set.
	maxPlaces = 1000
)

// results are the last comparisons with one shadow set. They are not safe for concurrent use.
type results struct {
	set string
	// agreeing are the objects whose comparison came out equal. Nothing more is kept of them.
	agreeing map[informer.Key]struct{}
	// others are all other objects that have been compared.
	others map[informer.Key]result
	// failed is for how many of these there was nothing to compare.
	failed int
	// details is how many of these hold their comparison.
	details int
	// places counts the objects that differ in a place.
	places map[plan.Place]int
}

// result is the last comparison of an object that did not come out equal.
type result struct {
	verdict plan.Verdict
	// counted are the places that were counted for this object.
	counted []plan.Place
	// comparison is nil when there are enough of them.
	comparison *plan.Comparison
}

func newResults(set string) *results {
	return &results{
		set: set, agreeing: map[informer.Key]struct{}{}, others: map[informer.Key]result{}, places: map[plan.Place]int{},
	}
}

// keep replaces what is known of an object.
func (r *results) keep(key informer.Key, c *plan.Comparison) {
	r.forget(key)
	known := result{verdict: c.Verdict()}
	switch known.verdict {
	case plan.Agrees:
		r.agreeing[key] = struct{}{}
		return
	case plan.NotComparable:
		r.failed++
	}
	for _, p := range c.Places() {
		if r.places[p] > 0 || len(r.places) < maxPlaces {
			r.places[p]++
			known.counted = append(known.counted, p)
		}
	}
	if r.details < maxDetails {
		r.details++
		known.comparison = c
	}
	r.others[key] = known
}

// forget drops what is known of an object.
func (r *results) forget(key informer.Key) {
	delete(r.agreeing, key)
	known, ok := r.others[key]
	if !ok {
		return
	}
	delete(r.others, key)
	if known.verdict == plan.NotComparable {
		r.failed--
	}
	if known.comparison != nil {
		r.details--
	}
	for _, p := range known.counted {
		r.places[p]--
		if r.places[p] == 0 {
			delete(r.places, p)
		}
	}
}

// differing is how many objects differ.
func (r *results) differing() int { return len(r.others) - r.failed }

// list returns the objects whose comparison did not come out equal, in no order.
func (r *results) list() []Object {
	objects := make([]Object, 0, len(r.others))
	for key, known := range r.others {
		objects = append(objects, Object{Key: key, Verdict: known.verdict, Comparison: known.comparison})
	}
	return objects
}
