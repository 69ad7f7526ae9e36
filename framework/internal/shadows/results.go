package shadows

import (
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

const (
	// maxDetails is the number of comparisons that are kept for one shadow set.
	maxDetails = 1000
	// maxPlaces is the number of places that are counted for one shadow set.
	maxPlaces = 1000
)

// results are the results of the comparisons with one shadow set.
type results struct {
	set    string
	known  map[informer.Key]result
	counts map[plan.Verdict]int
	// details is the number of results that hold their comparison.
	details int
	// places counts the objects that differ in a place.
	places map[plan.Place]int
}

type result struct {
	verdict plan.Verdict
	// counted are the places that were counted for this object.
	counted []plan.Place
	// comparison is nil if it came out equal, and if enough are kept already.
	comparison *plan.Comparison
}

func newResults(set string) *results {
	return &results{
		set:    set,
		known:  map[informer.Key]result{},
		counts: map[plan.Verdict]int{},
		places: map[plan.Place]int{},
	}
}

func (r *results) keep(key informer.Key, c *plan.Comparison) {
	r.forget(key)
	known := result{verdict: c.Verdict()}
	if known.verdict != plan.Agrees {
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
	}
	r.counts[known.verdict]++
	r.known[key] = known
}

func (r *results) forget(key informer.Key) {
	known, ok := r.known[key]
	if !ok {
		return
	}
	delete(r.known, key)
	r.counts[known.verdict]--
	if known.comparison != nil {
		r.details--
	}
	for _, p := range known.counted {
		if r.places[p]--; r.places[p] == 0 {
			delete(r.places, p)
		}
	}
}
