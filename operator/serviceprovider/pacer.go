package serviceprovider

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/informer"
)

// pacer queues all objects, one after the other, with a pause in between: after a change that concerns all. A change that comes while it
// is at work has those queued once more that were queued already.
type pacer struct {
	clock    clock.Clock
	interval time.Duration
	// waiting has each object once, in its order.
	waiting workqueue.TypedInterface[informer.Key]
	// keys lists all objects.
	keys func() []informer.Key
}

// all has all objects queued. It does not wait for that.
func (p *pacer) all() {
	for _, key := range p.keys() {
		p.waiting.Add(key)
	}
}

// run works until ctx ends.
func (p *pacer) run(ctx context.Context, queue queue) {
	context.AfterFunc(ctx, p.waiting.ShutDown)
	for {
		key, ended := p.waiting.Get()
		if ended {
			return
		}
		queue.Add(reconcile.Request{NamespacedName: key})
		p.waiting.Done(key)
		select {
		case <-ctx.Done():
			return
		case <-p.clock.After(p.interval):
		}
	}
}
