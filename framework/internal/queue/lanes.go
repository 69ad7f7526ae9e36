package queue

import "time"

// Lane is where a key waits. Fresh keys go before the backlog.
type Lane uint8

const (
	noLane Lane = iota
	// Backlog is for what is looked at again, or was there already.
	Backlog
	// Fresh is for what has just changed.
	Fresh
)

// freshInARow is how many fresh keys are taken before one of the backlog gets its turn, so that a constant stream of
// changes does not starve it.
const freshInARow = 16

// place is an entry's place in a lane, and since when it has been there. An entry that has moved to another lane leaves
// its old place behind, which is skipped when its turn comes.
type place[T any] struct {
	entry *Entry[T]
	since time.Duration
}

// lanes are two first-in-first-out queues. They are not safe for concurrent use.
type lanes[T any] struct {
	lane   [Fresh + 1]fifo[T]
	length [Fresh + 1]int
	row    int
}

// push puts an entry into a lane, also when it waits in another one.
func (l *lanes[T]) push(e *Entry[T], to Lane, now time.Duration) {
	if e.lane != noLane {
		l.length[e.lane]--
	}
	e.lane = to
	l.length[to]++
	l.lane[to].push(place[T]{e, now})
}

// pop takes the next entry, or nil.
func (l *lanes[T]) pop() *Entry[T] {
	from := Fresh
	if l.length[Fresh] == 0 || l.length[Backlog] > 0 && l.row >= freshInARow {
		from = Backlog
	}
	if l.length[from] == 0 {
		return nil
	}
	l.row++
	if from == Backlog {
		l.row = 0
	}
	l.skipMoved(from)
	e := l.lane[from].pop().entry
	l.length[from]--
	e.lane = noLane
	return e
}

// empty tells whether no entry waits.
func (l *lanes[T]) empty() bool { return l.length[Fresh]+l.length[Backlog] == 0 }

// skipMoved drops the places at the front of a lane whose entries have moved to another one or were taken already.
func (l *lanes[T]) skipMoved(from Lane) {
	for !l.lane[from].empty() && l.lane[from].front().entry.lane != from {
		l.lane[from].pop()
	}
}

// oldest returns since when the entry that has waited longest is waiting.
func (l *lanes[T]) oldest() (since time.Duration, ok bool) {
	for _, from := range []Lane{Backlog, Fresh} {
		l.skipMoved(from)
		if l.lane[from].empty() {
			continue
		}
		if first := l.lane[from].front().since; !ok || first < since {
			since, ok = first, true
		}
	}
	return since, ok
}

// kept is for how many places a fifo keeps the memory when it has drained.
const kept = 1024

// fifo is a queue on a slice that gives memory back as it drains.
type fifo[T any] struct {
	items []place[T]
	head  int
}

func (f *fifo[T]) push(p place[T]) {
	if f.head > len(f.items)/2 && f.head > kept {
		f.items = append(f.items[:0:0], f.items[f.head:]...)
		f.head = 0
	}
	f.items = append(f.items, p)
}

func (f *fifo[T]) pop() place[T] {
	p := f.items[f.head]
	f.items[f.head] = place[T]{}
	f.head++
	if f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
		if cap(f.items) > kept {
			f.items = nil
		}
	}
	return p
}

func (f *fifo[T]) front() place[T] { return f.items[f.head] }

func (f *fifo[T]) empty() bool { return f.head == len(f.items) }
