package framework

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/operatorkit/operatorkit/informer"
)

// retries holds, for each key that is to be looked at again without a change, its backoff and at most one timer, which
// adds it to the backlog of the queue.
type retries struct {
	queue          *queue
	backOffFactory func() backoff.BackOff

	mu     sync.Mutex
	closed bool
	again  map[informer.Key]*again
	// count is len(again), for those who only ask whether there is anything.
	count atomic.Int64
}

// again is the next look at one key.
type again struct {
	backOff backoff.BackOff
	timer   *time.Timer
	due     time.Time
}

func newRetries(queue *queue, backOffFactory func() backoff.BackOff) *retries {
	return &retries{queue: queue, backOffFactory: backOffFactory, again: map[informer.Key]*again{}}
}

// retry adds a failed key again after the next duration of its backoff, which it returns.
func (r *retries) retry(key informer.Key) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.entry(key)
	if a.backOff == nil {
		a.backOff = r.backOffFactory()
	}
	d := a.backOff.NextBackOff()
	if d == backoff.Stop {
		d = maxRetryInterval
	}
	r.schedule(key, a, d, CauseRetry)
	return d
}

// after adds a key again after d, and resets its backoff.
func (r *retries) after(key informer.Key, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.entry(key)
	a.backOff = nil
	r.schedule(key, a, d, CauseRequeue)
}

// within adds a key again after d at the latest: an earlier time that was set already stays.
func (r *retries) within(key informer.Key, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.entry(key)
	now := time.Now()
	pending := a.timer != nil && a.due.After(now)
	if !pending || now.Add(d).Before(a.due) {
		r.schedule(key, a, d, CauseRequeue)
	}
}

func (r *retries) entry(key informer.Key) *again {
	a := r.again[key]
	if a == nil {
		a = &again{}
		r.again[key] = a
		r.count.Add(1)
	}
	return a
}

func (r *retries) schedule(key informer.Key, a *again, d time.Duration, why Cause) {
	if a.timer != nil {
		a.timer.Stop()
	}
	if r.closed {
		return
	}
	a.due = time.Now().Add(d)
	a.timer = time.AfterFunc(d, func() { r.queue.add(key, backlogLane, trigger{cause: why}) })
}

// forget resets the backoff of a key and drops its timer.
func (r *retries) forget(key informer.Key) {
	if r.count.Load() == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.again[key]; a != nil {
		if a.timer != nil {
			a.timer.Stop()
		}
		delete(r.again, key)
		r.count.Add(-1)
	}
}

// stop stops all timers. None is started afterwards.
func (r *retries) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, a := range r.again {
		if a.timer != nil {
			a.timer.Stop()
		}
	}
}
