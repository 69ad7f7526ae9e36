package framework

import (
	"sync"
	"time"

	"github.com/operatorkit/operatorkit/informer"
)

// queue holds the keys that wait for a worker, each once. A key that is being worked on waits until that is done.
//
// It is client-go's work queue with lanes, in one map and under one lock instead of three of each: the queue is what
// an operator with nothing to change spends its time in.
type queue struct {
	mu    sync.Mutex
	added sync.Cond
	// drained is signalled when no key waits any more.
	drained sync.Cond
	entries map[informer.Key]*entry
	lanes   lanes
	working int
	closed  bool
	// tells is set when somebody wants to know why and since when keys wait.
	tells bool
	// epoch is what times in the queue are relative to: reading the monotonic clock alone is cheaper.
	epoch time.Time
}

// entry is a key that waits or is being worked on.
type entry struct {
	key informer.Key
	// lane is where the entry waits; noLane while it is worked on.
	lane lane
	// next is where it waits once the current work on it is done; noLane when it was not added meanwhile.
	next    lane
	working bool
	// waited is kept when the queue tells.
	waited *waited
}

func newQueue() *queue {
	q := &queue{entries: map[informer.Key]*entry{}, epoch: time.Now()}
	q.added.L, q.drained.L = &q.mu, &q.mu
	return q
}

// add puts a key into a lane unless it waits already. A key in the backlog moves up when it is added as fresh. After
// shutDown it does nothing.
func (q *queue) add(key informer.Key, to lane, why trigger) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	e := q.entries[key]
	switch {
	case e == nil:
		e = &entry{key: key}
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

// note remembers why a key was added, if that is to be told.
func (q *queue) note(e *entry, why trigger) {
	if !q.tells {
		return
	}
	if e.waited == nil {
		e.waited = &waited{since: time.Since(q.epoch)}
	}
	e.waited.add(why)
}

// get waits for the next key, and returns why and since when it waited if the queue tells. It returns false when the
// queue has been shut down.
func (q *queue) get() (*entry, *waited, bool) {
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
			why := e.waited
			e.waited = nil
			return e, why, true
		}
		q.added.Wait()
	}
}

// done ends the work on what get returned. When its key was added meanwhile it waits again.
func (q *queue) done(e *entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.working--
	e.working = false
	if e.next == noLane {
		delete(q.entries, e.key)
		return
	}
	q.lanes.push(e, e.next, time.Since(q.epoch))
	e.next = noLane
	q.added.Signal()
}

// shutDown ends get for all workers. Nothing can be added afterwards.
func (q *queue) shutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.added.Broadcast()
	q.drained.Broadcast()
}

// untilIdle returns when no key waits for a worker, or, with false, when the queue has been shut down.
func (q *queue) untilIdle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed && !q.lanes.empty() {
		q.drained.Wait()
	}
	return !q.closed
}

// queueStats is what metrics say about a queue.
type queueStats struct {
	fresh, backlog, working int
	age                     time.Duration
}

func (q *queue) stats() queueStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := queueStats{fresh: q.lanes.length[freshLane], backlog: q.lanes.length[backlogLane], working: q.working}
	if since, ok := q.lanes.oldest(); ok {
		s.age = time.Since(q.epoch) - since
	}
	return s
}
