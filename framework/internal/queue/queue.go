// Package queue holds the keys that wait for a worker: each once, fresh ones before the backlog, failed ones after the
// pause of their backoff, and with why they wait.
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
//
// T says why a key waits.
type Queue[T any] struct {
	// KeepTriggers makes Next return why and since when a key waited. It is set before the first Add.
	KeepTriggers bool

	mu    sync.Mutex
	added sync.Cond
	// drained is signalled when no key waits any more.
	drained sync.Cond
	entries map[informer.Key]*Entry[T]
	// spare are entries that were not used yet, and reasons the same for what is noted with KeepTriggers.
	spare   []Entry[T]
	reasons []Waiting[T]
	lanes   lanes[T]
	working int
	closed  bool
	// Epoch is what times in the queue are relative to: reading the monotonic clock alone is cheaper. It is not changed.
	Epoch time.Time
}

// Entry is a key that waits or is being worked on.
type Entry[T any] struct {
	// Key is the key, and Due since when it had been waiting when Next returned it.
	Key informer.Key
	Due time.Duration
	// due is since when it is waiting now.
	due time.Duration
	// lane is where the entry waits; noLane while it is worked on.
	lane Lane
	// next is where it waits once the current work on it is done; noLane when it was not added meanwhile.
	next    Lane
	working bool
	// waiting is kept with KeepTriggers.
	waiting *Waiting[T]
}

// New returns an empty queue.
func New[T any]() *Queue[T] {
	q := &Queue[T]{entries: map[informer.Key]*Entry[T]{}, Epoch: time.Now()}
	q.added.L, q.drained.L = &q.mu, &q.mu
	return q
}

// Add puts a key into a lane unless it waits already. A key in the backlog moves up when it is added as fresh. After
// ShutDown it does nothing.
func (q *Queue[T]) Add(key informer.Key, to Lane, why T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	e := q.entries[key]
	switch {
	case e == nil:
		e = q.newEntry()
		e.Key, e.due = key, time.Since(q.Epoch)
		q.entries[key] = e
	case e.working:
		if e.next == noLane {
			e.due = time.Since(q.Epoch)
		}
		e.next = max(e.next, to)
		q.note(e, why)
		return
	case e.lane >= to:
		q.note(e, why)
		return
	}
	q.note(e, why)
	since := e.due
	if e.lane != noLane {
		since = time.Since(q.Epoch) // in its new lane
	}
	q.lanes.push(e, to, since)
	q.added.Signal()
}

// entriesAtOnce is how many entries are made at once. They go together too, so that there must not be too many.
const entriesAtOnce = 32

func (q *Queue[T]) newEntry() *Entry[T] {
	if len(q.spare) == 0 {
		q.spare = make([]Entry[T], entriesAtOnce)
	}
	e := &q.spare[0]
	q.spare = q.spare[1:]
	return e
}

// note remembers why a key was added, with KeepTriggers.
func (q *Queue[T]) note(e *Entry[T], why T) {
	if !q.KeepTriggers {
		return
	}
	if e.waiting == nil {
		if len(q.reasons) == 0 {
			q.reasons = make([]Waiting[T], entriesAtOnce)
		}
		e.waiting, q.reasons = &q.reasons[0], q.reasons[1:]
		e.waiting.since = e.due
	}
	e.waiting.add(why)
}

// Next ends the work on the key before, if that is not nil, and waits for the next one. It returns why and since when that waited, which
// is not to be kept for long: with it go others; nil without KeepTriggers. It returns false when the queue has been shut down.
func (q *Queue[T]) Next(before *Entry[T]) (*Entry[T], *Waiting[T], bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if before != nil {
		q.done(before)
	}
	for {
		if q.closed {
			return nil, nil, false
		}
		if e := q.lanes.pop(); e != nil {
			e.working, e.Due = true, e.due
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

// Done ends the work on what Next returned, of who does not come back for another key.
func (q *Queue[T]) Done(e *Entry[T]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.done(e)
}

// done ends the work on a key. When it was added meanwhile it waits again.
func (q *Queue[T]) done(e *Entry[T]) {
	q.working--
	e.working = false
	if e.next == noLane {
		delete(q.entries, e.Key)
		return
	}
	q.lanes.push(e, e.next, time.Since(q.Epoch))
	e.next = noLane
	q.added.Signal()
}

// ShutDown ends Next for all workers. Nothing can be added afterwards.
func (q *Queue[T]) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.added.Broadcast()
	q.drained.Broadcast()
}

// UntilIdle returns when no key waits for a worker, or, with false, when the queue has been shut down.
func (q *Queue[T]) UntilIdle() bool {
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
func (q *Queue[T]) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := Stats{Fresh: q.lanes.length[Fresh], Backlog: q.lanes.length[Backlog], Working: q.working}
	if since, ok := q.lanes.oldest(); ok {
		s.Age = time.Since(q.Epoch) - since
	}
	return s
}
