// Package shadows holds a framework's state of its shadow resource sets: the objects that wait for
// a comparison, and the results of past comparisons.
package shadows

import (
	"maps"
	"sync"
	"time"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// Pause is the time between the reconciliation of an object and its comparison.
const Pause = time.Second

// Comparisons are the comparisons of one framework. It is safe for concurrent use.
type Comparisons struct {
	mu sync.Mutex
	// due is the earliest time of the comparison of each waiting object.
	due map[informer.Key]time.Time
	// working are the objects that are being compared. The value becomes true if the object is
	// forgotten meanwhile; then its result does not count.
	working map[informer.Key]*bool
	results []*results
}

// Object is an object with a last comparison that did not come out equal.
type Object struct {
	Key     informer.Key
	Verdict plan.Verdict
	// Comparison is nil if too many are kept already.
	Comparison *plan.Comparison
}

// New returns the comparisons with these shadow sets. It is empty.
func New(sets []string) *Comparisons {
	s := &Comparisons{due: map[informer.Key]time.Time{}, working: map[informer.Key]*bool{}}
	for _, set := range sets {
		s.results = append(s.results, newResults(set))
	}
	return s
}

// Add schedules the comparison of an object after the pause, unless it waits already.
func (s *Comparisons) Add(key informer.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, waits := s.due[key]; !waits {
		s.due[key] = time.Now().Add(Pause)
	}
}

// Due returns the objects to compare now. Keep must be called for each of them.
func (s *Comparisons) Due() (keys []informer.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, due := range s.due {
		if s.working[key] == nil && !time.Now().Before(due) {
			delete(s.due, key)
			s.working[key] = new(bool)
			keys = append(keys, key)
		}
	}
	return keys
}

// Keep stores the result of comparing an object, one comparison for each shadow that handles it. It
// returns the comparisons that failed with a new error. If ended is false, the previous results are
// kept.
func (s *Comparisons) Keep(key informer.Key, comparisons []*plan.Comparison, ended bool) (failed []*plan.Comparison) {
	s.mu.Lock()
	defer s.mu.Unlock()
	forgotten := s.working[key]
	delete(s.working, key)
	if !ended || forgotten == nil || *forgotten {
		return nil
	}
	bySet := map[string]*plan.Comparison{}
	for _, c := range comparisons {
		bySet[c.Shadow] = c
	}
	for _, r := range s.results {
		c := bySet[r.set]
		if c == nil {
			r.forget(key)
			continue
		}
		before := r.known[key].comparison
		if c.Error != "" && (before == nil || before.Error != c.Error) {
			failed = append(failed, c)
		}
		r.keep(key, c)
	}
	return failed
}

// Forget removes an object that is gone, or that no shadow handles any longer.
func (s *Comparisons) Forget(key informer.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.due, key)
	if forgotten := s.working[key]; forgotten != nil {
		*forgotten = true
	}
	for _, r := range s.results {
		r.forget(key)
	}
}

// Counts returns a summary of each set, without its places.
func (s *Comparisons) Counts() []plan.ShadowSummary {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := make([]plan.ShadowSummary, 0, len(s.results))
	for _, r := range s.results {
		counts = append(counts, plan.ShadowSummary{
			Shadow:    r.set,
			Objects:   len(r.known),
			Differing: r.counts[plan.Differs],
			Failed:    r.counts[plan.NotComparable],
			Waiting:   len(s.due) + len(s.working),
		})
	}
	return counts
}

// Summaries returns a summary of each set.
func (s *Comparisons) Summaries() []plan.ShadowSummary {
	summaries := s.Counts()
	for i, r := range s.results {
		s.mu.Lock()
		places := maps.Clone(r.places)
		s.mu.Unlock()
		summaries[i].Places, summaries[i].OtherPlaces = plan.RankPlaces(places)
	}
	return summaries
}

// Objects returns the objects with a last comparison with a set that did not come out equal, in no
// particular order.
func (s *Comparisons) Objects(set string) (objects []Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.results {
		if r.set != set {
			continue
		}
		for key, known := range r.known {
			if known.verdict != plan.Agrees {
				objects = append(objects, Object{Key: key, Verdict: known.verdict, Comparison: known.comparison})
			}
		}
	}
	return objects
}

// Of returns the comparisons of an object that did not come out equal, as far as they are kept.
func (s *Comparisons) Of(key informer.Key) []*plan.Comparison {
	s.mu.Lock()
	defer s.mu.Unlock()
	var comparisons []*plan.Comparison
	for _, r := range s.results {
		if c := r.known[key].comparison; c != nil {
			comparisons = append(comparisons, c)
		}
	}
	return comparisons
}
