package framework

import (
	"time"

	"github.com/operatorkit/operatorkit/framework/internal/keyed"
	"github.com/operatorkit/operatorkit/informer"
)

// failures remembers the objects whose last reconciliation ended with an error, and of each what the next one needs.
type failures struct{ keyed.Map[failure] }

type failure struct {
	// since is when people were told first; zero is not yet.
	since time.Time
	// retried is true when the object is tried again without a change of it.
	retried bool
	// conflicts is how many reconciliations ended in a conflict, in a row.
	conflicts int
	// later is the error if it is a RetryAfterError.
	later error
}

// note takes note of the end of a reconciliation, and of what follows from it.
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

// count returns how many objects fail that people were told of, since when the first of them has, and how many wait for
// being tried again.
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

// FailingSince tells whether the last reconciliation of an object failed so that people were told, and since when it has been failing.
// It may be called at any time, and is cheap.
func (f *Framework) FailingSince(key informer.Key) (since time.Time, fails bool) {
	of, _ := f.failures.Get(key)
	return of.since, !of.since.IsZero()
}
