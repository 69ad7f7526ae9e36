package framework

import (
	"sync"
	"time"

	"github.com/operatorkit/operatorkit/informer"
)

// lane is where a key waits. Fresh keys go before the backlog.
type lane uint8

const (
	backlogLane lane = iota + 1
	freshLane
)

// freshInARow is how many fresh keys are taken before one of the backlog gets its turn, so that a constant stream of
// changes does not starve it.
const freshInARow = 16

// place is a key in a lane, since when it has been there.
type place struct {
	key   informer.Key
	since time.Time
}

// lanes is the storage of the work queue: two first-in-first-out lanes. A key that waits in the backlog moves to the
// fresh lane when it is added as fresh; its old place is skipped when its turn comes.
//
// It implements workqueue.Queue.
type lanes struct {
	// adding is the lane for the next Push or Touch. It is guarded by the queue's lanesMu, the rest by mu.
	adding lane
	mu     sync.Mutex
	in     map[informer.Key]lane
	lane   [freshLane + 1]fifo
	length [freshLane + 1]int
	row    int
	now    func() time.Time
}

func newLanes() *lanes {
	return &lanes{in: map[informer.Key]lane{}, adding: freshLane, now: time.Now}
}

// Touch implements workqueue.Queue: a key that waits is added again.
func (l *lanes) Touch(key informer.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.adding == freshLane && l.in[key] == backlogLane {
		l.length[backlogLane]--
		l.push(key)
	}
}

// Push implements workqueue.Queue.
func (l *lanes) Push(key informer.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.push(key)
}

func (l *lanes) push(key informer.Key) {
	l.in[key] = l.adding
	l.length[l.adding]++
	l.lane[l.adding].push(place{key, l.now()})
}

// Len implements workqueue.Queue.
func (l *lanes) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.length[freshLane] + l.length[backlogLane]
}

// Pop implements workqueue.Queue.
func (l *lanes) Pop() informer.Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := freshLane
	if l.length[freshLane] == 0 || l.length[backlogLane] > 0 && l.row >= freshInARow {
		from = backlogLane
	}
	l.row++
	if from == backlogLane {
		l.row = 0
	}
	l.skipMoved(from)
	key := l.lane[from].pop().key
	l.length[from]--
	delete(l.in, key)
	return key
}

// skipMoved drops the places at the front of a lane whose keys have moved to another one or were taken already.
func (l *lanes) skipMoved(from lane) {
	for !l.lane[from].empty() && l.in[l.lane[from].front().key] != from {
		l.lane[from].pop()
	}
}

// laneStats is how many keys wait in each lane, and how long the first of them has been waiting.
type laneStats struct {
	fresh, backlog int
	age            time.Duration
}

func (l *lanes) stats() laneStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := laneStats{fresh: l.length[freshLane], backlog: l.length[backlogLane]}
	for _, from := range []lane{backlogLane, freshLane} {
		l.skipMoved(from)
		if !l.lane[from].empty() {
			s.age = max(s.age, l.now().Sub(l.lane[from].front().since))
		}
	}
	return s
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
	f.head++
	if f.head == len(f.items) {
		f.items, f.head = nil, 0
	}
	return p
}

func (f *fifo) front() place { return f.items[f.head] }

func (f *fifo) empty() bool { return f.head == len(f.items) }
