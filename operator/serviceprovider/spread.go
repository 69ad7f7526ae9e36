package serviceprovider

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// listPause is after which time a list of all objects that failed is tried again.
const listPause = time.Second

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

// run works until ctx ends. keys lists all objects; an error of it is tried again.
func (s *spread) run(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request], keys func(context.Context) ([]reconcile.Request, error)) {
	var order []reconcile.Request
	waiting := map[reconcile.Request]bool{}
	// pause is what the next object waits for; nil is nothing.
	var pause clock.Timer
	defer func() { stopTimer(pause) }()
	for {
		if pause == nil && len(order) > 0 {
			queue.Add(order[0])
			delete(waiting, order[0])
			order = order[1:]
			if s.interval > 0 {
				pause = s.clock.NewTimer(s.interval)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-after(pause, len(order)):
			pause = nil
		case <-s.changed:
			listed, err := s.list(ctx, keys)
			if err != nil {
				return
			}
			for _, key := range listed {
				if !waiting[key] {
					waiting[key] = true
					order = append(order, key)
				}
			}
		}
	}
}

// after is ready when a pause is over: at once if there is none and something waits for it.
func after(pause clock.Timer, waiting int) <-chan time.Time {
	switch {
	case pause != nil:
		return pause.C()
	case waiting > 0:
		now := make(chan time.Time)
		close(now)
		return now
	}
	return nil
}

func stopTimer(timer clock.Timer) {
	if timer != nil {
		timer.Stop()
	}
}

// list calls keys until it succeeds or ctx ends.
func (s *spread) list(ctx context.Context, keys func(context.Context) ([]reconcile.Request, error)) ([]reconcile.Request, error) {
	for {
		listed, err := keys(ctx)
		if err == nil {
			return listed, nil
		}
		log.FromContext(ctx).Error(err, "list all objects, because of a change that concerns them; it is tried again", "after", listPause)
		timer := s.clock.NewTimer(listPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C():
		}
	}
}
