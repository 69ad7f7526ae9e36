package framework

import (
	"maps"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

const (
	// maxShadowDetails is how many comparisons are kept of one shadow set.
	maxShadowDetails = 1000
	// maxShadowPlaces is how many places are counted of one shadow set.
	maxShadowPlaces = 1000
)

// shadowRecords are the last comparisons with one shadow set. They are not safe for concurrent use.
type shadowRecords struct {
	set string
	// agreeing are the objects whose comparison came out equal. Nothing more is kept of them.
	agreeing map[informer.Key]struct{}
	// others are all other objects that have been compared.
	others map[informer.Key]shadowRecord
	// failed is for how many of these there was nothing to compare.
	failed int
	// details is how many of these hold their comparison.
	details int
	// places counts the objects that differ in a place.
	places map[plan.Place]int
}

// shadowRecord is the last comparison of an object that did not come out equal.
type shadowRecord struct {
	verdict plan.Verdict
	// counted are the places that were counted for this object.
	counted []plan.Place
	// comparison is nil when there are enough of them.
	comparison *plan.Comparison
}

func newShadowRecords(set string) *shadowRecords {
	return &shadowRecords{
		set: set, agreeing: map[informer.Key]struct{}{}, others: map[informer.Key]shadowRecord{}, places: map[plan.Place]int{},
	}
}

// keep replaces what is known of an object.
func (r *shadowRecords) keep(key informer.Key, c *plan.Comparison) {
	r.forget(key)
	record := shadowRecord{verdict: c.Verdict()}
	switch record.verdict {
	case plan.Agrees:
		r.agreeing[key] = struct{}{}
		return
	case plan.NotComparable:
		r.failed++
	}
	for _, p := range c.Places() {
		if r.places[p] > 0 || len(r.places) < maxShadowPlaces {
			r.places[p]++
			record.counted = append(record.counted, p)
		}
	}
	if r.details < maxShadowDetails {
		r.details++
		record.comparison = c
	}
	r.others[key] = record
}

// forget drops what is known of an object.
func (r *shadowRecords) forget(key informer.Key) {
	delete(r.agreeing, key)
	record, ok := r.others[key]
	if !ok {
		return
	}
	delete(r.others, key)
	if record.verdict == plan.NotComparable {
		r.failed--
	}
	if record.comparison != nil {
		r.details--
	}
	for _, p := range record.counted {
		r.places[p]--
		if r.places[p] == 0 {
			delete(r.places, p)
		}
	}
}

// differing is how many objects differ.
func (r *shadowRecords) differing() int { return len(r.others) - r.failed }

// summary counts what is known. The places are those of RankPlaces.
func (r *shadowRecords) summary() (s plan.ShadowSummary, places map[plan.Place]int) {
	return plan.ShadowSummary{
		Shadow: r.set, Objects: len(r.agreeing) + len(r.others), Differing: r.differing(), Failed: r.failed,
	}, maps.Clone(r.places)
}

// list returns the objects whose comparison did not come out equal, in no order.
func (r *shadowRecords) list() []ShadowObject {
	objects := make([]ShadowObject, 0, len(r.others))
	for key, record := range r.others {
		objects = append(objects, ShadowObject{Key: key, Verdict: record.verdict, Comparison: record.comparison})
	}
	return objects
}
