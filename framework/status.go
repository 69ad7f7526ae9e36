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
	// Retrying is how many failed when they were reconciled last and are tried again, conflicts included, and Asked how many wait for
	// the time of a look that a resource or a caller of EnqueueAfter asked for.
	Retrying int `json:"retrying"`
	Asked    int `json:"asked"`
	// Failing is how many failed when they were reconciled last so that people were told, and FailingSince is since when the first of
	// them has; zero without any. In difference to Retrying, those that wait for their next change count, and those whose next try is
	// expected to succeed don't.
	Failing      int       `json:"failing"`
	FailingSince time.Time `json:"failingSince,omitzero"`
	// Unmatched is how many are left alone because no resource set handles them, and UnmatchedHeld how many of these hold a
	// finalizer of the framework, so that their deletion would wait.
	Unmatched     int `json:"unmatched"`
	UnmatchedHeld int `json:"unmatchedHeld"`
}

// Status tells what there is to do. It may be called at any time, and is cheap.
func (f *Framework) Status() Status {
	waiting := f.queue.Stats()
	unmatched, held := f.unmatched.count()
	failing, since, retried := f.failures.count()
	return Status{
		Fresh: waiting.Fresh, Backlog: waiting.Backlog, OldestWait: waiting.Age, Active: waiting.Working, Retrying: retried,
		Asked: f.retries.Asked(), Failing: failing, FailingSince: since, Unmatched: unmatched, UnmatchedHeld: held,
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
