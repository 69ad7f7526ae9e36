package informer

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Interface is the older way to follow objects: channels instead of a store. [Kubernetes]
// implements it; new code should use [Source].
type Interface interface {
	// Watch follows the objects until ctx ends, and then closes the channels. deleteChan receives
	// deletions with the last known state. updateChan receives objects that are new, changed or
	// announced again. errChan receives each new error of an outage and the first unusable input of
	// each sort. An error is dropped if the last one was not taken: errors are for information, and
	// the watch continues. Objects belong to the receiver. Both event channels must be read: each
	// event waits for the one before it, but several waiting updates of one object become one.
	Watch(ctx context.Context) (deleteChan, updateChan chan watch.Event, errChan chan error)
}

// Watch implements [Interface]. It runs the source until ctx ends.
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

// eventQueue keeps events until a slow reader takes them. Its size depends on the number of
// objects, not of events.
type eventQueue struct {
	mu      sync.Mutex
	waiting []*Event
	// updates are the waiting events of existing objects. A later event of the same object replaces
	// them.
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
