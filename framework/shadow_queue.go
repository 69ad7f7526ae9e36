package framework

import (
	"container/list"
	"time"

	"github.com/operatorkit/operatorkit/informer"
)

// shadowPause is how long an object waits for its comparison at least. In this time an object whose reconciliations come in
// quick succession, because its secondaries change, waits on; stores see what was written; and an object that changes
// all the time costs no more than one comparison a second.
const shadowPause = time.Second

// shadowQueue holds the keys of objects that wait for their comparison, each once, in the order in which they came. When it
// is full the one that has waited longest is dropped. It is not safe for concurrent use.
type shadowQueue struct {
	limit   int
	order   *list.List // of shadowPlace
	waiting map[informer.Key]*list.Element
	working map[informer.Key]*shadowWork
}

// shadowPlace is the place of a key in the queue.
type shadowPlace struct {
	key informer.Key
	// due is when it may be taken.
	due time.Time
}

// shadowWork is an object that is being compared.
type shadowWork struct {
	key informer.Key
	// again is set when the object was reconciled meanwhile.
	again bool
	// forgotten is set when the object was forgotten meanwhile: what is found out does not count any more.
	forgotten bool
}

func newShadowQueue(limit int) shadowQueue {
	return shadowQueue{limit: limit, order: list.New(), waiting: map[informer.Key]*list.Element{}, working: map[informer.Key]*shadowWork{}}
}

// add puts a key at the end unless it waits already, and tells whether another one was dropped for it. One that is being
// worked on waits until that is done.
func (q *shadowQueue) add(key informer.Key) (dropped bool) {
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
	q.waiting[key] = q.order.PushBack(shadowPlace{key, time.Now().Add(shadowPause)})
	return dropped
}

// due returns after how long the first key is due. There must be one.
func (q *shadowQueue) due() time.Duration { return time.Until(q.order.Front().Value.(shadowPlace).due) }

// next takes the first key, in order to work on it until done is called.
func (q *shadowQueue) next() *shadowWork {
	work := &shadowWork{key: q.take()}
	q.working[work.key] = work
	return work
}

func (q *shadowQueue) take() informer.Key {
	key := q.order.Remove(q.order.Front()).(shadowPlace).key
	delete(q.waiting, key)
	return key
}

// done ends the work on a key, and adds it again if that was asked for meanwhile.
func (q *shadowQueue) done(work *shadowWork) (dropped bool) {
	delete(q.working, work.key)
	return work.again && q.add(work.key)
}

// forget takes a key out.
func (q *shadowQueue) forget(key informer.Key) {
	if place := q.waiting[key]; place != nil {
		q.order.Remove(place)
		delete(q.waiting, key)
	}
	if work := q.working[key]; work != nil {
		work.again, work.forgotten = false, true
	}
}

// len is how many keys wait or are being worked on.
func (q *shadowQueue) len() int { return q.order.Len() + len(q.working) }
