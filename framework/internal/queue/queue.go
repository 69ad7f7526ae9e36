// Package queue holds the keys that wait for a worker: each once, fresh ones before the backlog,
// namespaces in turn, and failed ones after the pause of their backoff.
package queue

import (
	"container/list"
	"sync"
	"time"

	"github.com/operatorkit/operatorkit/informer"
)

// Queue holds the keys that wait for a worker, each once. A key in progress waits until the worker
// is done. It is safe for concurrent use.
//
// It is like client-go's work queue. There, an addition has only the key; the lane and the reason
// would need a second map with its own lock, and the two would disagree for moments.
//
// T is the reason why a key waits.
type Queue[T any] struct {
	mu sync.Mutex
	// added is signalled when there is a key to take, and drained when the queue is empty.
	added, drained sync.Cond
	// entries are the keys that wait or are in progress.
	entries map[informer.Key]*Entry[T]
	lanes   [Fresh + 1]lane[T]
	// row is the number of fresh keys that were taken since the last one of the backlog.
	row     int
	working int
	closed  bool
}

// Entry is a key that waits or is in progress. After Next has returned it, its exported fields do
// not change.
type Entry[T any] struct {
	Key informer.Key
	// Since is when the key was added. Why are the first few reasons. Count is the number of all
	// reasons.
	Since time.Time
	Why   []T
	Count int

	lane Lane
	// place is where it waits; nil while it is in progress. again is the entry for additions in
	// that time.
	place *list.Element
	again *Entry[T]
}

// New returns an empty queue.
func New[T any]() *Queue[T] {
	q := &Queue[T]{entries: map[informer.Key]*Entry[T]{}}
	q.added.L, q.drained.L = &q.mu, &q.mu
	return q
}

// Add puts a key into a lane unless it waits already. A key in the backlog moves up when it is
// added as fresh. After ShutDown it does nothing.
func (q *Queue[T]) Add(key informer.Key, to Lane, why T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	e := q.entries[key]
	switch {
	case e == nil:
		e = &Entry[T]{Key: key, Since: time.Now(), lane: to}
		q.push(e)
	case e.place == nil && e.again == nil:
		e.again = &Entry[T]{Key: key, Since: time.Now(), lane: to}
		e = e.again
	case e.place == nil:
		e = e.again
		e.lane = max(e.lane, to)
	case e.lane < to:
		q.lanes[e.lane].remove(e)
		e.lane = to
		q.push(e)
	}
	e.note(why)
}

// maxReasons is the number of reasons that an entry keeps. The others are only counted.
const maxReasons = 3

func (e *Entry[T]) note(why T) {
	if len(e.Why) < maxReasons {
		e.Why = append(e.Why, why)
	}
	e.Count++
}

func (q *Queue[T]) push(e *Entry[T]) {
	q.entries[e.Key] = e
	q.lanes[e.lane].push(e)
	q.added.Signal()
}

// Next waits for a key and takes it. It returns false when the queue has been shut down.
func (q *Queue[T]) Next() (*Entry[T], bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed && q.length() == 0 {
		q.added.Wait()
	}
	if q.closed {
		return nil, false
	}
	from := Fresh
	q.row++
	if q.lanes[Fresh].length == 0 || q.lanes[Backlog].length > 0 && q.row > freshInARow {
		from, q.row = Backlog, 0
	}
	e := q.lanes[from].pop()
	q.working++
	if q.length() == 0 {
		q.drained.Broadcast()
	}
	return e, true
}

// Done ends the work on an entry that Next returned. A key that was added meanwhile waits again.
func (q *Queue[T]) Done(e *Entry[T]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.working--
	delete(q.entries, e.Key)
	if e.again != nil {
		q.push(e.again)
	}
}

// ShutDown ends Next for all workers. Nothing can be added afterwards.
func (q *Queue[T]) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.added.Broadcast()
	q.drained.Broadcast()
}

// UntilIdle waits until no key waits for a worker. It returns false when the queue has been shut
// down.
func (q *Queue[T]) UntilIdle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed && q.length() > 0 {
		q.drained.Wait()
	}
	return !q.closed
}

func (q *Queue[T]) length() int { return q.lanes[Fresh].length + q.lanes[Backlog].length }

// Stats are the figures of a queue for metrics.
type Stats struct {
	// Fresh and Backlog are the numbers of waiting keys in each lane. Working is the number of keys
	// in progress.
	Fresh, Backlog, Working int
	// Age is the longest time that a key has been waiting.
	Age time.Duration
}

// Stats returns the current figures.
func (q *Queue[T]) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := Stats{Fresh: q.lanes[Fresh].length, Backlog: q.lanes[Backlog].length, Working: q.working}
	for _, e := range q.entries {
		if e.place != nil {
			s.Age = max(s.Age, time.Since(e.Since))
		}
	}
	return s
}
