package natscontroller

import (
	"sync"
	"time"

	"github.com/operatorkit/operatorkit/informer"
)

// EnqueueKey has the primary with that key reconciled soon. For a key without an entry, the SyncHandler of a custom controller
// is called, and nothing else. It may be called at any time.
func (c *ControllerRuntime[T]) EnqueueKey(key string, _ Operation) {
	if c.custom != IController(c) {
		c.primary.announceAbsent(key)
	}
	c.framework.Load().Enqueue(informer.Key{Name: key})
}

// EnqueueKeyAfter is EnqueueKey once the delay has passed, whatever is done about the key until then. Of several calls for a
// key that are pending, the earliest counts.
func (c *ControllerRuntime[T]) EnqueueKeyAfter(key string, operation Operation, delay time.Duration) {
	c.delays.add(key, operation, delay)
}

// delays are the calls of EnqueueKeyAfter that are pending, one for each key.
type delays struct {
	enqueue func(key string, operation Operation)

	mu      sync.Mutex
	stopped bool
	pending map[string]*delay
}

type delay struct {
	timer *time.Timer
	due   time.Time
}

func newDelays(enqueue func(string, Operation)) *delays {
	return &delays{enqueue: enqueue, pending: map[string]*delay{}}
}

func (d *delays) add(key string, operation Operation, after time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	due := time.Now().Add(after)
	earlier := d.pending[key]
	switch {
	case d.stopped, earlier != nil && !due.Before(earlier.due):
		return
	case earlier != nil:
		earlier.timer.Stop()
	}
	next := &delay{due: due}
	next.timer = time.AfterFunc(after, func() {
		if d.take(key, next) {
			d.enqueue(key, operation)
		}
	})
	d.pending[key] = next
}

// take removes a delay that has passed, and tells whether it still counts.
func (d *delays) take(key string, passed *delay) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pending[key] != passed {
		return false
	}
	delete(d.pending, key)
	return true
}

// stop drops everything that is pending, and what is added afterwards.
func (d *delays) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	for _, pending := range d.pending {
		pending.timer.Stop()
	}
	clear(d.pending)
}
