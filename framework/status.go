package framework

import (
	"time"

	"github.com/operatorkit/operatorkit/informer"
)

// Status is the current work of a framework.
type Status struct {
	// Fresh and Backlog are the numbers of objects that wait for a worker: because they changed,
	// and for other reasons.
	Fresh   int `json:"fresh"`
	Backlog int `json:"backlog"`
	// OldestWait is the longest time that an object has been waiting.
	OldestWait time.Duration `json:"oldestWaitNanoseconds"`
	// Active is the number of objects that are being reconciled.
	Active int `json:"active"`
	// Retrying is the number of objects that failed in their last reconciliation and are retried,
	// including conflicts. Asked is the number of objects with a requeue that a resource or a
	// caller of EnqueueAfter requested.
	Retrying int `json:"retrying"`
	Asked    int `json:"asked"`
	// Failing is the number of objects with a reported failure in their last reconciliation.
	// FailingSince is the time of the earliest such failure; zero without any. In contrast to
	// Retrying, Failing includes objects that wait for their next change, and excludes objects if
	// their next try is expected to succeed.
	Failing      int       `json:"failing"`
	FailingSince time.Time `json:"failingSince,omitzero"`
	// Unmatched is the number of objects that are ignored because no resource set handles them.
	// UnmatchedHeld is the number of these with a finalizer of the framework, so that their
	// deletion would wait.
	Unmatched     int `json:"unmatched"`
	UnmatchedHeld int `json:"unmatchedHeld"`
	// Fights is the number of changes that are undone again and again, see [Framework.Fights].
	Fights int `json:"fights"`
}

// Status returns the current work. It may be called at any time and is cheap.
func (f *Framework) Status() Status {
	waiting := f.queue.Stats()
	unmatched, held := f.unmatched.count()
	failing, since, retried := f.failures.count()
	return Status{
		Fresh:         waiting.Fresh,
		Backlog:       waiting.Backlog,
		OldestWait:    waiting.Age,
		Active:        waiting.Working,
		Retrying:      retried,
		Asked:         f.retries.Asked(),
		Failing:       failing,
		FailingSince:  since,
		Unmatched:     unmatched,
		UnmatchedHeld: held,
		Fights:        len(f.Fights()),
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
