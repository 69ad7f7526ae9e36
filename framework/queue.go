package framework

import (
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"k8s.io/client-go/util/workqueue"

	"github.com/operatorkit/operatorkit/informer"
)

// queue holds the keys that wait for a worker, each once. A key that is being worked on waits until that is done. On
// top of client-go's work queue it has two lanes and, for each key, at most one timer that adds it again.
type queue struct {
	work workqueue.TypedInterface[informer.Key]

	// lanesMu guards lanes.adding between setting it and the push it is meant for, and with it all calls that can push.
	lanesMu sync.Mutex
	lanes   *lanes

	backOffFactory func() backoff.BackOff
	mu             sync.Mutex
	closed         bool
	again          map[informer.Key]*again
}

// again is the next look at a key that is not due to a change of its object.
type again struct {
	backOff backoff.BackOff
	timer   *time.Timer
	due     time.Time
}

func newQueue(backOffFactory func() backoff.BackOff) *queue {
	l := newLanes()
	return &queue{
		lanes:          l,
		work:           workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[informer.Key]{Queue: l}),
		backOffFactory: backOffFactory,
		again:          map[informer.Key]*again{},
	}
}

// add puts a key into a lane unless it waits already. A key in the backlog moves up when it is added as fresh.
func (q *queue) add(key informer.Key, to lane) {
	q.lanesMu.Lock()
	defer q.lanesMu.Unlock()
	q.lanes.adding = to
	q.work.Add(key)
}

// get waits for the next key. It returns false when the queue has been shut down.
func (q *queue) get() (informer.Key, bool) {
	key, shutdown := q.work.Get()
	return key, !shutdown && !q.work.ShuttingDown()
}

// done ends the work on a key. When the key was added meanwhile it waits again, as fresh.
func (q *queue) done(key informer.Key) {
	q.lanesMu.Lock()
	defer q.lanesMu.Unlock()
	q.lanes.adding = freshLane
	q.work.Done(key)
}

// retry adds a failed key again after the next duration of its backoff, which it returns.
func (q *queue) retry(key informer.Key) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.entry(key)
	if a.backOff == nil {
		a.backOff = q.backOffFactory()
	}
	d := a.backOff.NextBackOff()
	if d == backoff.Stop {
		d = maxRetryInterval
	}
	q.schedule(key, a, d)
	return d
}

// after adds a key again after d, and resets its backoff.
func (q *queue) after(key informer.Key, d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.entry(key)
	a.backOff = nil
	q.schedule(key, a, d)
}

// within adds a key again after d at the latest: an earlier time that was set already stays.
func (q *queue) within(key informer.Key, d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.entry(key)
	now := time.Now()
	pending := a.timer != nil && a.due.After(now)
	if !pending || now.Add(d).Before(a.due) {
		q.schedule(key, a, d)
	}
}

func (q *queue) entry(key informer.Key) *again {
	a := q.again[key]
	if a == nil {
		a = &again{}
		q.again[key] = a
	}
	return a
}

func (q *queue) schedule(key informer.Key, a *again, d time.Duration) {
	if a.timer != nil {
		a.timer.Stop()
	}
	if q.closed {
		return
	}
	a.due = time.Now().Add(d)
	a.timer = time.AfterFunc(d, func() { q.add(key, backlogLane) })
}

// forget resets the backoff of a key and drops its timer.
func (q *queue) forget(key informer.Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if a := q.again[key]; a != nil {
		if a.timer != nil {
			a.timer.Stop()
		}
		delete(q.again, key)
	}
}

// shutDown ends get for all workers. Nothing can be added afterwards.
func (q *queue) shutDown() {
	q.mu.Lock()
	q.closed = true
	for _, a := range q.again {
		if a.timer != nil {
			a.timer.Stop()
		}
	}
	q.mu.Unlock()
	q.work.ShutDown()
}

// retrying returns how many keys wait for a timer or are being tried again because of one.
func (q *queue) retrying() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.again)
}
