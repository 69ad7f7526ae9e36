package serviceprovider

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/informer"
)

// spread queues all objects, one after the other, with a pause in between: after a change that concerns all. Changes that come
// while it is at work have it begin anew with those objects that it has queued already.
type spread struct {
	clock    clock.Clock
	interval time.Duration
	// changed holds a value when all objects are to be queued that are not waiting for it.
	changed chan struct{}
}

func newSpread(c clock.Clock, interval time.Duration) *spread {
	return &spread{clock: c, interval: interval, changed: make(chan struct{}, 1)}
}

// all has all objects queued. It never blocks, and may be called at any time.
func (s *spread) all() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// run works until ctx ends. keys lists all objects.
func (s *spread) run(ctx context.Context, queue queue, keys func() []informer.Key) {
	var order []informer.Key
	waiting := map[informer.Key]bool{}
	// pause is over when the next one may be queued.
	over := make(chan time.Time)
	close(over)
	var pause <-chan time.Time = over
	for {
		next := pause
		if len(order) == 0 {
			next = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-next:
			queue.Add(reconcile.Request{NamespacedName: order[0]})
			delete(waiting, order[0])
			order = order[1:]
			if s.interval > 0 {
				pause = s.clock.After(s.interval)
			}
		case <-s.changed:
			for _, key := range keys() {
				if !waiting[key] {
					waiting[key] = true
					order = append(order, key)
				}
			}
		}
	}
}
