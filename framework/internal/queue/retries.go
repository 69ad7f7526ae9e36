package queue

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/operatorkit/operatorkit/informer"
)

// MaxRetryInterval is the longest pause between two tries of a failing object, and the pause when a BackOff says stop:
// nothing is dropped as long as its object exists.
const MaxRetryInterval = 5 * time.Minute

// Retries holds, for each key that is to be looked at again without a change, its backoff and at most one timer, which
// adds it to the backlog of the queue. It is safe for concurrent use.
type Retries struct {
	queue          *Queue
	backOffFactory func() backoff.BackOff

	mu      sync.Mutex
	closed  bool
	pending map[informer.Key]*pending
	// count is len(pending), for those who only ask whether there is anything.
	count atomic.Int64
}

// pending is the next look at one key.
type pending struct {
	backOff backoff.BackOff
	timer   *time.Timer
	due     time.Time
}

// NewRetries returns retries that add to a queue.
func NewRetries(queue *Queue, backOffFactory func() backoff.BackOff) *Retries {
	return &Retries{queue: queue, backOffFactory: backOffFactory, pending: map[informer.Key]*pending{}}
}

// Len is how many keys have a backoff or a timer.
func (r *Retries) Len() int { return int(r.count.Load()) }

// Retry adds a failed key again after the next duration of its backoff, which it returns.
func (r *Retries) Retry(key informer.Key) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.entry(key)
	if p.backOff == nil {
		p.backOff = r.backOffFactory()
	}
	d := p.backOff.NextBackOff()
	if d == backoff.Stop {
		d = MaxRetryInterval
	}
	r.schedule(key, p, d, CauseRetry)
	return d
}

// After adds a key again after d, and resets its backoff.
func (r *Retries) After(key informer.Key, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.entry(key)
	p.backOff = nil
	r.schedule(key, p, d, CauseRequeue)
}

// Within adds a key again after d at the latest: an earlier time that was set already stays.
func (r *Retries) Within(key informer.Key, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.entry(key)
	now := time.Now()
	waits := p.timer != nil && p.due.After(now)
	if !waits || now.Add(d).Before(p.due) {
		r.schedule(key, p, d, CauseRequeue)
	}
}

func (r *Retries) entry(key informer.Key) *pending {
	p := r.pending[key]
	if p == nil {
		p = &pending{}
		r.pending[key] = p
		r.count.Add(1)
	}
	return p
}

func (r *Retries) schedule(key informer.Key, p *pending, d time.Duration, why Cause) {
	if p.timer != nil {
		p.timer.Stop()
	}
	if r.closed {
		return
	}
	p.due = time.Now().Add(d)
	p.timer = time.AfterFunc(d, func() { r.queue.Add(key, Backlog, Trigger{Cause: why}) })
}

// Forget resets the backoff of a key and drops its timer.
func (r *Retries) Forget(key informer.Key) {
	if r.count.Load() == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pending[key]; p != nil {
		if p.timer != nil {
			p.timer.Stop()
		}
		delete(r.pending, key)
		r.count.Add(-1)
	}
}

// Stop stops all timers. None is started afterwards.
func (r *Retries) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, p := range r.pending {
		if p.timer != nil {
			p.timer.Stop()
		}
	}
}
