package framework

import (
	"time"

	"github.com/operatorkit/operatorkit/framework/internal/keyed"
	"github.com/operatorkit/operatorkit/informer"
)

// failures remembers the objects that failed in their last reconciliation, and the state that the
// next one needs.
type failures struct{ keyed.Map[failure] }

type failure struct {
	// since is when the failure was first reported; zero is not yet.
	since time.Time
	// retried is true if the object is retried without a change of it.
	retried bool
	// conflicts is the number of consecutive reconciliations that ended in a conflict.
	conflicts int
	// later is the error if it is a RetryAfterError.
	later error
}

// note records the end of a reconciliation, and the decision that follows from it.
func (f *failures) note(key informer.Key, err error, d decision) {
	if d.again == atNextStart {
		return
	}
	if err == nil {
		f.Delete(key)
		return
	}
	now := failure{retried: d.again != atNextChange, conflicts: d.conflicts}
	if d.again == afterPause {
		now.later = err
	}
	f.Update(key, func(before failure, _ bool) (failure, bool) {
		now.since = before.since
		if d.tell && now.since.IsZero() {
			now.since = time.Now()
		}
		return now, true
	})
}

// count returns the number of objects with reported failures, the time of the earliest such
// failure, and the number of objects that wait for a retry.
func (f *failures) count() (failing int, since time.Time, retried int) {
	for of := range f.Values {
		if of.retried {
			retried++
		}
		if of.since.IsZero() {
			continue
		}
		failing++
		if since.IsZero() || of.since.Before(since) {
			since = of.since
		}
	}
	return failing, since, retried
}

// FailingSince implements access.Engine.
func (f engine) FailingSince(key informer.Key) (since time.Time, fails bool) {
	of, _ := f.failures.Get(key)
	return of.since, !of.since.IsZero()
}
