package framework

import (
	"time"

	"github.com/operatorkit/operatorkit/informer"
)

// Status is what a framework has to do at the moment.
type Status struct {
	// Fresh and Backlog are how many objects wait for a worker: because they changed, and for other reasons.
	Fresh   int `json:"fresh"`
	Backlog int `json:"backlog"`
	// OldestWait is how long the one has been waiting that waits longest.
	OldestWait time.Duration `json:"oldestWaitNanoseconds"`
	// Active is how many are being reconciled.
	Active int `json:"active"`
	// Retrying is how many wait for the time of a retry or of a requested next look.
	Retrying int `json:"retrying"`
}

// Status tells what there is to do. It may be called at any time, and is cheap.
func (f *Framework) Status() Status {
	waiting := f.queue.Stats()
	return Status{
		Fresh: waiting.Fresh, Backlog: waiting.Backlog, OldestWait: waiting.Age, Active: waiting.Working,
		Retrying: f.retries.Len(),
	}
}

// Keys returns the keys of all primary objects, in no particular order. The slice is the caller's.
func (f *Framework) Keys() []informer.Key {
	if lister, ok := f.source.(informer.KeyLister); ok {
		return lister.Keys()
	}
	var keys []informer.Key
	for _, obj := range f.source.List() {
		if m, ok := metaOf(obj); ok {
			keys = append(keys, informer.Key{Namespace: m.GetNamespace(), Name: m.GetName()})
		}
	}
	return keys
}
