package informer

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Interface is the older way to follow objects: channels instead of a store. [Kubernetes] implements it; new code should
// use [Source].
type Interface interface {
	// Watch follows the objects until ctx ends, and then closes the channels. Deletions, with the last known state, come
	// on deleteChan; objects that are new, changed or announced again on updateChan; and each new error of an outage, and
	// the first of each sort of what can't be used, on
	// errChan, which is dropped when the last one was not taken: it is for information, the watch goes on. Objects
	// belong to the receiver. Both event channels must be read: events wait for each other, but several updates of one
	// object that wait become one.
	Watch(ctx context.Context) (deleteChan, updateChan chan watch.Event, errChan chan error)
}

// Watch implements [Interface]. It runs the source for as long as ctx lasts.
func (k *Kubernetes) Watch(ctx context.Context) (deleteChan, updateChan chan watch.Event, errChan chan error) {
	deleteChan, updateChan, errChan = make(chan watch.Event), make(chan watch.Event), make(chan error, 1)
	queue := newEventQueue()
	unsubscribe := k.Subscribe(queue.push)
	forget := k.freshness.onFailure(func(err error) {
		select {
		case errChan <- err:
		default:
		}
	})

	var wg sync.WaitGroup
	wg.Go(func() { _ = k.Run(ctx) })
	wg.Go(func() { queue.drain(ctx, deleteChan, updateChan) })
	go func() {
		wg.Wait()
		unsubscribe()
		forget()
		close(deleteChan)
		close(updateChan)
		close(errChan)
	}()
	return deleteChan, updateChan, errChan
}

// eventQueue keeps the events that a slow reader has not taken. It grows with the number of objects, not of events.
type eventQueue struct {
	mu      sync.Mutex
	waiting []*Event
	// updates are the waiting events of objects that exist, which a later event of the same object replaces.
	updates map[Key]*Event
	wake    chan struct{}
}

func newEventQueue() *eventQueue {
	return &eventQueue{updates: map[Key]*Event{}, wake: make(chan struct{}, 1)}
}

func (q *eventQueue) push(e Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if last, ok := q.updates[e.Key]; ok {
		if e.Type == Deleted {
			last.Type = Deleted
			delete(q.updates, e.Key)
		}
		last.Object = e.Object
		return
	}
	if e.Type != Deleted {
		q.updates[e.Key] = &e
	}
	q.waiting = append(q.waiting, &e)
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *eventQueue) pop() (Event, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return Event{}, false
	}
	e := q.waiting[0]
	q.waiting[0] = nil
	q.waiting = q.waiting[1:]
	if q.updates[e.Key] == e {
		delete(q.updates, e.Key)
	}
	return *e, true
}

func (q *eventQueue) drain(ctx context.Context, deleteChan, updateChan chan<- watch.Event) {
	for {
		e, ok := q.pop()
		if !ok {
			select {
			case <-q.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		object, ok := Copy(e.Object).(runtime.Object)
		if !ok {
			continue
		}
		out, event := updateChan, watch.Event{Type: watch.Modified, Object: object}
		switch e.Type {
		case Added:
			event.Type = watch.Added
		case Deleted:
			out, event.Type = deleteChan, watch.Deleted
		}
		select {
		case out <- event:
		case <-ctx.Done():
			return
		}
	}
}
