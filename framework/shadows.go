package framework

import (
	"sync"
	"time"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// shadows is what a framework knows of its shadow resource sets: which objects wait for being compared, and how those were
// that have been.
type shadows struct {
	metrics *shadowMetrics

	mu      sync.Mutex
	added   sync.Cond
	queue   shadowQueue
	records []*shadowRecords
	dropped uint64
	closed  bool
}

// newShadows returns nil for a router without shadows.
func newShadows(config Config) *shadows {
	if len(config.ResourceRouter.shadows) == 0 {
		return nil
	}
	s := &shadows{queue: newShadowQueue(config.ShadowQueue)}
	s.added.L = &s.mu
	for _, set := range config.ResourceRouter.shadows {
		s.records = append(s.records, newShadowRecords(set.name))
	}
	return s
}

// add has an object compared some time.
func (s *shadows) add(key informer.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.drop(s.queue.add(key))
	s.added.Signal()
}

func (s *shadows) drop(dropped bool) {
	if dropped {
		s.dropped++
	}
}

// wait returns when an object waits, and after how long it is due; or, with false, when there will be no more.
func (s *shadows) wait() (due time.Duration, ok bool) {
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

// next takes an object that is due, or nil.
func (s *shadows) next() *shadowWork {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.queue.order.Len() == 0 || s.queue.due() > 0 {
		return nil
	}
	return s.queue.next()
}

// done ends the work on an object.
func (s *shadows) done(work *shadowWork) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(s.queue.done(work))
	s.added.Signal()
}

// keep replaces what is known of an object, unless it was forgotten meanwhile. Sets without a comparison do not handle it.
// It returns the comparisons that failed, and did not fail for the same reason before.
func (s *shadows) keep(work *shadowWork, comparisons []*plan.Comparison) (failed []*plan.Comparison) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if work.forgotten {
		return nil
	}
	bySet := map[string]*plan.Comparison{}
	for _, c := range comparisons {
		bySet[c.Shadow] = c
	}
	for _, r := range s.records {
		c := bySet[r.set]
		if c == nil {
			r.forget(work.key)
			continue
		}
		before := r.others[work.key].comparison
		if c.Error != "" && (before == nil || before.Error != c.Error) {
			failed = append(failed, c)
		}
		r.keep(work.key, c)
	}
	return failed
}

// forget drops an object that is gone, or is not handled any more.
func (s *shadows) forget(key informer.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.forget(key)
	for _, r := range s.records {
		r.forget(key)
	}
}

// shutDown ends wait for all workers. Nothing can be added afterwards.
func (s *shadows) shutDown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.added.Broadcast()
}

// summary returns what is known of one set. Nothing is sorted under the lock, which the workers that reconcile need.
func (s *shadows) summary(r *shadowRecords) plan.ShadowSummary {
	s.mu.Lock()
	summary, places := r.summary()
	summary.Waiting, summary.Dropped = s.queue.len(), s.dropped
	s.mu.Unlock()
	summary.Places, summary.OtherPlaces = plan.RankPlaces(places)
	return summary
}

// objects returns the objects of a set whose comparison did not come out equal, in no order.
func (s *shadows) objects(set string) []ShadowObject {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records {
		if r.set == set {
			return r.list()
		}
	}
	return nil
}

func (s *shadows) of(key informer.Key) []*plan.Comparison {
	s.mu.Lock()
	defer s.mu.Unlock()
	var comparisons []*plan.Comparison
	for _, r := range s.records {
		if c := r.others[key].comparison; c != nil {
			comparisons = append(comparisons, c)
		}
	}
	return comparisons
}
