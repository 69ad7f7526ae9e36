package natscontroller

import (
	"time"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
)

// EnqueueKey has the primary with that key reconciled soon. For a key without an entry, the SyncHandler of a custom controller
// is called, and nothing else. What can't be a key (natsinformer.IsKey) is dropped with a message. It may be called at any time.
func (c *ControllerRuntime[T]) EnqueueKey(key string, operation Operation) {
	if !c.isKey(key, operation) {
		return
	}
	if c.custom != IController(c) {
		c.primary.announceAbsent(key)
	}
	c.framework.Load().Enqueue(informer.Key{Name: key})
}

// EnqueueKeyAfter is EnqueueKey once the delay has passed, whatever is done about the key until then. Of several calls for a
// key that are pending, the earliest counts.
func (c *ControllerRuntime[T]) EnqueueKeyAfter(key string, operation Operation, delay time.Duration) {
	if !c.isKey(key, operation) {
		return
	}
	c.primary.ask(key, delay)
	c.framework.Load().EnqueueAfter(informer.Key{Name: key}, delay)
}

// isKey tells whether there may be a primary with that key, and logs if there can't be one.
func (c *ControllerRuntime[T]) isKey(key string, operation Operation) bool {
	if natsinformer.IsKey(key) {
		return true
	}
	c.log("error", "enqueued key dropped: no entry can have it", "key", key, "operation", operation.String())
	return false
}

// handOver has the framework that is to run hold the calls of EnqueueKeyAfter that are pending.
func (c *ControllerRuntime[T]) handOver(f *framework.Framework) {
	for key, due := range c.primary.pending() {
		f.EnqueueAfter(informer.Key{Name: key}, time.Until(due))
	}
}
