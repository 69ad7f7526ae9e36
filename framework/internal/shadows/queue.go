package shadows

import (
	"container/list"
	"time"

	"github.com/operatorkit/operatorkit/informer"
)

// pause is how long an object waits for its comparison at least. In this time an object whose reconciliations come in
// quick succession, because its secondaries change, waits on; stores see what was written; and an object that changes
// all the time costs no more than one comparison a second.
const pause = time.Second

// queue holds the keys of objects that wait for their comparison, each once, in the order in which they came. When it
// is full the one that has waited longest is dropped. It is not safe for concurrent use.
type queue struct {
	limit   int
	order   *list.List // of place
	waiting map[informer.Key]*list.Element
	working map[informer.Key]*Work
}

// place is the place of a key in the queue.
type place struct {
	key informer.Key
	// due is when it may be taken.
	due time.Time
}

// Work is an object that is being compared.
type Work struct {
	// Key names the object.
	Key informer.Key
	// again is set when the object was reconciled meanwhile.
	again bool
	// forgotten is set when the object was forgotten meanwhile: what is found out does not count any more.
	forgotten bool
}

func newQueue(limit int) queue {
	return queue{limit: limit, order: list.New(), waiting: map[informer.Key]*list.Element{}, working: map[informer.Key]*Work{}}
}

// add puts a key at the end unless it waits already, and tells whether another one was dropped for it. One that is being
// worked on waits until that is done.
func (q *queue) add(key informer.Key) (dropped bool) {
	if work := q.working[key]; work != nil {
		work.again = true
		return false
	}
	if q.waiting[key] != nil {
		return false
	}
	if q.order.Len() >= q.limit {
		q.take()
		dropped = true
	}
	q.waiting[key] = q.order.PushBack(place{key, time.Now().Add(pause)})
	return dropped
}

// due returns after how long the first key is due. There must be one.
func (q *queue) due() time.Duration { return time.Until(q.order.Front().Value.(place).due) }

// next takes the first key, in order to work on it until done is called.
func (q *queue) next() *Work {
	work := &Work{Key: q.take()}
	q.working[work.Key] = work
	return work
}

func (q *queue) take() informer.Key {
	key := q.order.Remove(q.order.Front()).(place).key
	delete(q.waiting, key)
	return key
}

// done ends the work on a key, and adds it again if that was asked for meanwhile.
func (q *queue) done(work *Work) (dropped bool) {
	delete(q.working, work.Key)
	return work.again && q.add(work.Key)
}

// forget takes a key out.
func (q *queue) forget(key informer.Key) {
	if waiting := q.waiting[key]; waiting != nil {
		q.order.Remove(waiting)
		delete(q.waiting, key)
	}
	if work := q.working[key]; work != nil {
		work.again, work.forgotten = false, true
	}
}

// len is how many keys wait or are being worked on.
func (q *queue) len() int { return q.order.Len() + len(q.working) }
