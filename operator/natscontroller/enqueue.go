package natscontroller

import (
	"time"

	"github.com/operatorkit/operatorkit/framework"
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
func (c *ControllerRuntime[T]) EnqueueKeyAfter(key string, _ Operation, delay time.Duration) {
	c.primary.ask(key, delay)
	c.framework.Load().EnqueueAfter(informer.Key{Name: key}, delay)
}

// handOver has the framework that is to run hold the calls of EnqueueKeyAfter that are pending.
func (c *ControllerRuntime[T]) handOver(f *framework.Framework) {
	for key, due := range c.primary.pending() {
		f.EnqueueAfter(informer.Key{Name: key}, time.Until(due))
	}
}
