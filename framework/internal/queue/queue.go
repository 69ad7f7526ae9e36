// Package queue holds the keys that wait for a worker: each once, fresh ones before the backlog, failed ones after the
// pause of their backoff, and with the causes for which they wait.
package queue

import (
	"sync"
	"time"

	"github.com/operatorkit/operatorkit/informer"
)

// Queue holds the keys that wait for a worker, each once. A key that is being worked on waits until that is done. It is safe
// for concurrent use.
//
// It is client-go's work queue with lanes, in one map and under one lock instead of three of each: the queue is what
// an operator with nothing to change spends its time in.
type Queue struct {
	// KeepTriggers makes Get return why and since when a key waited. It is set before the first Add.
	KeepTriggers bool

	mu    sync.Mutex
	added sync.Cond
	// drained is signalled when no key waits any more.
	drained sync.Cond
	entries map[informer.Key]*Entry
	lanes   lanes
	working int
	closed  bool
	// epoch is what times in the queue are relative to: reading the monotonic clock alone is cheaper.
	epoch time.Time
}

// Entry is a key that waits or is being worked on.
type Entry struct {
	// Key is the key.
	Key informer.Key
	// lane is where the entry waits; noLane while it is worked on.
	lane Lane
	// next is where it waits once the current work on it is done; noLane when it was not added meanwhile.
	next    Lane
	working bool
	// waiting is kept with KeepTriggers.
	waiting *Waiting
}

// New returns an empty queue.
func New() *Queue {
	q := &Queue{entries: map[informer.Key]*Entry{}, epoch: time.Now()}
	q.added.L, q.drained.L = &q.mu, &q.mu
	return q
}

// Add puts a key into a lane unless it waits already. A key in the backlog moves up when it is added as fresh. After
// ShutDown it does nothing.
func (q *Queue) Add(key informer.Key, to Lane, why Trigger) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	e := q.entries[key]
	switch {
	case e == nil:
		e = &Entry{Key: key}
		q.entries[key] = e
	case e.working:
		e.next = max(e.next, to)
		q.note(e, why)
		return
	case e.lane >= to:
		q.note(e, why)
		return
	}
	q.note(e, why)
	q.lanes.push(e, to, time.Since(q.epoch))
	q.added.Signal()
}

// note remembers why a key was added, with KeepTriggers.
func (q *Queue) note(e *Entry, why Trigger) {
	if !q.KeepTriggers {
		return
	}
	if e.waiting == nil {
		e.waiting = &Waiting{since: time.Since(q.epoch)}
	}
	e.waiting.add(why)
}

// Get waits for the next key, and returns why and since when it waited; nil without KeepTriggers. It returns false when the
// queue has been shut down.
func (q *Queue) Get() (*Entry, *Waiting, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if q.closed {
			return nil, nil, false
		}
		if e := q.lanes.pop(); e != nil {
			e.working = true
			q.working++
			if q.lanes.empty() {
				q.drained.Broadcast()
			}
			why := e.waiting
			e.waiting = nil
			return e, why, true
		}
		q.added.Wait()
	}
}

// Done ends the work on what Get returned. When its key was added meanwhile it waits again.
func (q *Queue) Done(e *Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.working--
	e.working = false
	if e.next == noLane {
		delete(q.entries, e.Key)
		return
	}
	q.lanes.push(e, e.next, time.Since(q.epoch))
	e.next = noLane
	q.added.Signal()
}

// ShutDown ends Get for all workers. Nothing can be added afterwards.
func (q *Queue) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.added.Broadcast()
	q.drained.Broadcast()
}

// UntilIdle returns when no key waits for a worker, or, with false, when the queue has been shut down.
func (q *Queue) UntilIdle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed && !q.lanes.empty() {
		q.drained.Wait()
	}
	return !q.closed
}

// Stats is what metrics say about a queue.
type Stats struct {
	// Fresh and Backlog are how many keys wait in each lane, and Working how many are being worked on.
	Fresh, Backlog, Working int
	// Age is how long the key has been waiting that waits longest.
	Age time.Duration
}

// Stats returns what there is to do at the moment.
func (q *Queue) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := Stats{Fresh: q.lanes.length[Fresh], Backlog: q.lanes.length[Backlog], Working: q.working}
	if since, ok := q.lanes.oldest(); ok {
		s.Age = time.Since(q.epoch) - since
	}
	return s
}
