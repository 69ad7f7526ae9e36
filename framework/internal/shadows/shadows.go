// Package shadows is what a framework remembers of its shadow resource sets: which objects wait for being compared, and how
// those were that have been.
package shadows

import (
	"maps"
	"sync"
	"time"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// Comparisons are those of one framework. It is safe for concurrent use.
type Comparisons struct {
	mu      sync.Mutex
	added   sync.Cond
	queue   queue
	results []*results
	dropped uint64
	closed  bool
}

// Object is an object whose last comparison did not come out equal.
type Object struct {
	Key     informer.Key
	Verdict plan.Verdict
	// Comparison is nil when too many are kept already.
	Comparison *plan.Comparison
}

// New returns comparisons with the shadow sets of these names, for which limit objects may wait.
func New(sets []string, limit int) *Comparisons {
	s := &Comparisons{queue: newQueue(limit)}
	s.added.L = &s.mu
	for _, set := range sets {
		s.results = append(s.results, newResults(set))
	}
	return s
}

// Add has an object compared some time.
func (s *Comparisons) Add(key informer.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.drop(s.queue.add(key))
	s.added.Signal()
}

func (s *Comparisons) drop(dropped bool) {
	if dropped {
		s.dropped++
	}
}

// Wait returns when an object waits, and after how long it is due; or, with false, when there will be no more.
func (s *Comparisons) Wait() (due time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.closed && s.queue.order.Len() == 0 {
		s.added.Wait()
	}
	if s.closed {
		return 0, false
	}
	return s.queue.due(), true
}

// Next takes an object that is due, or nil.
func (s *Comparisons) Next() *Work {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.queue.order.Len() == 0 || s.queue.due() > 0 {
		return nil
	}
	return s.queue.next()
}

// Done ends the work on an object.
func (s *Comparisons) Done(work *Work) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(s.queue.done(work))
	s.added.Signal()
}

// Keep replaces what is known of an object, unless it was forgotten meanwhile. Sets without a comparison do not handle it.
// It returns the comparisons that failed, and did not fail for the same reason before.
func (s *Comparisons) Keep(work *Work, comparisons []*plan.Comparison) (failed []*plan.Comparison) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if work.forgotten {
		return nil
	}
	bySet := map[string]*plan.Comparison{}
	for _, c := range comparisons {
		bySet[c.Shadow] = c
	}
	for _, r := range s.results {
		c := bySet[r.set]
		if c == nil {
			r.forget(work.Key)
			continue
		}
		before := r.others[work.Key].comparison
		if c.Error != "" && (before == nil || before.Error != c.Error) {
			failed = append(failed, c)
		}
		r.keep(work.Key, c)
	}
	return failed
}

// Forget drops an object that is gone, or is not handled any more.
func (s *Comparisons) Forget(key informer.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.forget(key)
	for _, r := range s.results {
		r.forget(key)
	}
}

// ShutDown ends Wait for all workers. Nothing can be added afterwards.
func (s *Comparisons) ShutDown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.added.Broadcast()
}

// Counts returns what is known of each set, without the places where objects differ.
func (s *Comparisons) Counts() []plan.ShadowSummary {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts()
}

func (s *Comparisons) counts() []plan.ShadowSummary {
	counts := make([]plan.ShadowSummary, 0, len(s.results))
	for _, r := range s.results {
		counts = append(counts, plan.ShadowSummary{
			Shadow: r.set, Objects: len(r.agreeing) + len(r.others), Differing: r.differing(), Failed: r.failed,
			Waiting: s.queue.len(), Dropped: s.dropped,
		})
	}
	return counts
}

// Summaries returns what is known of each set. Nothing is sorted under the lock, which the workers that reconcile need.
func (s *Comparisons) Summaries() []plan.ShadowSummary {
	s.mu.Lock()
	summaries, places := s.counts(), make([]map[plan.Place]int, len(s.results))
	for i, r := range s.results {
		places[i] = maps.Clone(r.places)
	}
	s.mu.Unlock()
	for i := range summaries {
		summaries[i].Places, summaries[i].OtherPlaces = plan.RankPlaces(places[i])
	}
	return summaries
}

// Objects returns the objects of a set whose comparison did not come out equal, in no order.
func (s *Comparisons) Objects(set string) []Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.results {
		if r.set == set {
			return r.list()
		}
	}
	return nil
}

// Of returns the last comparisons of an object that did not come out equal, in the order of the sets.
func (s *Comparisons) Of(key informer.Key) []*plan.Comparison {
	s.mu.Lock()
	defer s.mu.Unlock()
	var comparisons []*plan.Comparison
	for _, r := range s.results {
		if c := r.others[key].comparison; c != nil {
			comparisons = append(comparisons, c)
		}
	}
	return comparisons
}
