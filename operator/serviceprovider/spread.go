package serviceprovider

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/informer"
)

// spread queues all objects, one after the other, with a pause in between: after a change that concerns all. A change that comes while it
// is at work has those queued once more that were queued already.
type spread struct {
	clock    clock.Clock
	interval time.Duration
	// waiting has each object once, in its order.
	waiting workqueue.TypedInterface[informer.Key]
	// keys lists all objects.
	keys func() []informer.Key
}

// all has all objects queued. It does not wait for that.
func (s *spread) all() {
	for _, key := range s.keys() {
		s.waiting.Add(key)
	}
}

// run works until ctx ends.
func (s *spread) run(ctx context.Context, queue queue) {
	context.AfterFunc(ctx, s.waiting.ShutDown)
	for {
		key, ended := s.waiting.Get()
		if ended {
			return
		}
		queue.Add(reconcile.Request{NamespacedName: key})
		s.waiting.Done(key)
		select {
		case <-ctx.Done():
			return
		case <-s.clock.After(s.interval):
		}
	}
}
