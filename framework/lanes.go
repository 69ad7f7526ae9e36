package framework

import "time"

// lane is where a key waits. Fresh keys go before the backlog.
type lane uint8

const (
	noLane lane = iota
	backlogLane
	freshLane
)

// freshInARow is how many fresh keys are taken before one of the backlog gets its turn, so that a constant stream of
// changes does not starve it.
const freshInARow = 16

// place is an entry's place in a lane, and since when it has been there. An entry that has moved to another lane leaves
// its old place behind, which is skipped when its turn comes.
type place struct {
	entry *entry
	since time.Duration
}

// lanes are two first-in-first-out queues. They are not safe for concurrent use.
type lanes struct {
	lane   [freshLane + 1]fifo
	length [freshLane + 1]int
	row    int
}

// push puts an entry into a lane, also when it waits in another one.
func (l *lanes) push(e *entry, to lane, now time.Duration) {
	if e.lane != noLane {
		l.length[e.lane]--
	}
	e.lane = to
	l.length[to]++
	l.lane[to].push(place{e, now})
}

// pop takes the next entry, or nil.
func (l *lanes) pop() *entry {
	from := freshLane
	if l.length[freshLane] == 0 || l.length[backlogLane] > 0 && l.row >= freshInARow {
		from = backlogLane
	}
	if l.length[from] == 0 {
		return nil
	}
	l.row++
	if from == backlogLane {
		l.row = 0
	}
	l.skipMoved(from)
	e := l.lane[from].pop().entry
	l.length[from]--
	e.lane = noLane
	return e
}

// empty tells whether no entry waits.
func (l *lanes) empty() bool { return l.length[freshLane]+l.length[backlogLane] == 0 }

// skipMoved drops the places at the front of a lane whose entries have moved to another one or were taken already.
func (l *lanes) skipMoved(from lane) {
	for !l.lane[from].empty() && l.lane[from].front().entry.lane != from {
		l.lane[from].pop()
	}
}

// oldest returns since when the entry that has waited longest is waiting.
func (l *lanes) oldest() (since time.Duration, ok bool) {
	for _, from := range []lane{backlogLane, freshLane} {
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

// fifo is a queue on a slice that gives memory back as it drains.
type fifo struct {
	items []place
	head  int
}

func (f *fifo) push(p place) {
	if f.head > len(f.items)/2 && f.head > 1024 {
		f.items = append(f.items[:0:0], f.items[f.head:]...)
		f.head = 0
	}
	f.items = append(f.items, p)
}

func (f *fifo) pop() place {
	p := f.items[f.head]
	f.items[f.head] = place{}
	f.head++
	if f.head == len(f.items) {
		f.items, f.head = nil, 0
	}
	return p
}

func (f *fifo) front() place { return f.items[f.head] }

func (f *fifo) empty() bool { return f.head == len(f.items) }
