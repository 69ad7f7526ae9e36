package queue

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/operatorkit/operatorkit/informer"
)

// MaxRetryInterval is the longest pause between two tries of a failing object, and the pause after
// a BackOff has stopped: nothing is dropped while its object exists.
const MaxRetryInterval = 5 * time.Minute

// Retries holds the next time for each key that is requeued without a change. A key has two such
// times: the requested requeue, and the next retry of unfinished work. The earlier one counts. Each
// is cleared when the key is added to the backlog of the queue because of it. It is safe for
// concurrent use.
type Retries[T any] struct {
	queue          *Queue[T]
	backOffFactory func() backoff.BackOff

	mu      sync.Mutex
	closed  bool
	pending map[informer.Key]*pending[T]
}

// pending are the next times of one key.
type pending[T any] struct {
	backOff backoff.BackOff
	// asked and retry are the two times; zero is never. The timer is for the earlier one, which is
	// due.
	asked, retry, due time.Time
	// whyAsked and whyRetry are why the key is queued at these times.
	whyAsked, whyRetry T
	timer              *time.Timer
}

// NewRetries returns retries that add to a queue.
func NewRetries[T any](queue *Queue[T], backOffFactory func() backoff.BackOff) *Retries[T] {
	return &Retries[T]{queue: queue, backOffFactory: backOffFactory, pending: map[informer.Key]*pending[T]{}}
}

// Retry requeues a key after the next pause of its backoff, but not before atLeast has passed. Like
// the other methods, it returns the time until the key is requeued; 0 is never.
func (r *Retries[T]) Retry(key informer.Key, atLeast time.Duration, why T) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.entry(key)
	if p.backOff == nil {
		p.backOff = r.backOffFactory()
	}
	pause := p.backOff.NextBackOff()
	if pause == backoff.Stop {
		pause = MaxRetryInterval
	}
	p.retry, p.whyRetry = time.Now().Add(max(pause, atLeast)), why
	return r.schedule(key, p)
}

// RetryAfter requeues a key after d, and leaves its backoff unchanged.
func (r *Retries[T]) RetryAfter(key informer.Key, d time.Duration, why T) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.entry(key)
	p.retry, p.whyRetry = time.Now().Add(d), why
	return r.schedule(key, p)
}

// Ask requeues a key after d at the latest, whatever happens to it until then.
func (r *Retries[T]) Ask(key informer.Key, d time.Duration, why T) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.entry(key)
	if at := time.Now().Add(d); p.asked.IsZero() || at.Before(p.asked) {
		p.asked, p.whyAsked = at, why
	}
	return r.schedule(key, p)
}

// Settle resets the backoff of a key and drops its next retry. A requested requeue stays.
func (r *Retries[T]) Settle(key informer.Key) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pending[key]
	if p == nil {
		return 0
	}
	p.backOff, p.retry, p.whyRetry = nil, time.Time{}, *new(T)
	return r.schedule(key, p)
}

// Forget drops both times of a key, and its backoff.
func (r *Retries[T]) Forget(key informer.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pending[key]; p != nil {
		*p = pending[T]{timer: p.timer, due: p.due}
		r.schedule(key, p)
	}
}

// Keys returns the keys that have a time or a backoff, in no particular order.
func (r *Retries[T]) Keys() []informer.Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.pending))
}

// Asked returns the number of keys with a requested requeue.
func (r *Retries[T]) Asked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := 0
	for _, p := range r.pending {
		if !p.asked.IsZero() {
			asked++
		}
	}
	return asked
}

func (r *Retries[T]) entry(key informer.Key) *pending[T] {
	p := r.pending[key]
	if p == nil {
		p = &pending[T]{}
		r.pending[key] = p
	}
	return p
}

// schedule sets the timer for the earlier time and returns the time until then. It removes a key
// without a time and a backoff.
func (r *Retries[T]) schedule(key informer.Key, p *pending[T]) time.Duration {
	due := p.asked
	if due.IsZero() || !p.retry.IsZero() && p.retry.Before(due) {
		due = p.retry
	}
	if due != p.due && p.timer != nil {
		p.timer.Stop()
	}
	if due.IsZero() {
		p.due = due
		if p.backOff == nil {
			delete(r.pending, key)
		}
		return 0
	}
	next := max(time.Until(due), 1)
	if due != p.due && !r.closed {
		p.timer = time.AfterFunc(next, func() { r.enqueue(key, p) })
	}
	p.due = due
	return next
}

// enqueue adds a key for each of its times that is due.
func (r *Retries[T]) enqueue(key informer.Key, p *pending[T]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending[key] != p || r.closed {
		return
	}
	now := time.Now()
	take := func(at *time.Time, why *T) {
		if !at.IsZero() && !at.After(now) {
			r.queue.Add(key, Backlog, *why)
			*at, *why = time.Time{}, *new(T)
		}
	}
	take(&p.retry, &p.whyRetry)
	take(&p.asked, &p.whyAsked)
	r.schedule(key, p)
}

// Stop stops all timers. None is started afterwards.
func (r *Retries[T]) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, p := range r.pending {
		if p.timer != nil {
			p.timer.Stop()
		}
	}
}
