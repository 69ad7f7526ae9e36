package framework

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/informer"
)

// reportedConflicts is the number of consecutive conflicts from which on conflicts are logged. A
// shorter series is normal: the next try usually succeeds.
const reportedConflicts = 5

// lasting reports whether a series of consecutive conflicts is reported.
func lasting(conflicts int) bool { return conflicts >= reportedConflicts }

// ending is the end of a reconciliation, as far as it matters for the next one.
type ending struct {
	outcome Outcome
	err     error
	// interrupted is true when the workers are stopping.
	interrupted bool
	// ask is the time after which a resource requests a requeue; 0 is never.
	ask time.Duration
	// conflicts is the number of consecutive earlier reconciliations of the object that ended in a
	// conflict.
	conflicts int
}

// again is when an unfinished object is reconciled again.
type again string

const (
	// atNextStart: pending work stays pending. The next process starts over.
	atNextStart again = "at the next start"
	// atNextChange: not before the next change, or the requested requeue.
	atNextChange again = "at the next change"
	// afterBackoff: after the next pause of its backoff.
	afterBackoff again = "after its backoff"
	// afterPause: after decision.pause.
	afterPause again = "after a pause"
)

// decision is the consequence of an ending.
type decision struct {
	again again
	// pause is the pause of afterPause. With afterBackoff it is the minimum.
	pause time.Duration
	// ask is the time after which the object is requeued at the latest; 0 is never.
	ask time.Duration
	// tell is true if the error is logged and reported by an event.
	tell bool
	// conflicts is ending.conflicts of the next reconciliation.
	conflicts int
	count     counts
}

// counts selects the metrics that count an ending.
type counts struct{ errors, conflicts, retries, panics bool }

// decide returns the consequence of the end of a reconciliation.
func decide(e ending) decision {
	switch {
	case e.err == nil && e.outcome == Waiting && e.ask == 0:
		return decision{again: afterBackoff}
	case e.err == nil:
		return decision{again: atNextChange, ask: e.ask}
	case e.interrupted:
		return decision{again: atNextStart}
	}
	d := decision{
		again: afterBackoff,
		pause: suggestedPause(e.err),
		ask:   e.ask,
		tell:  true,
		count: counts{errors: true, retries: true, panics: stackOf(e.err) != ""},
	}
	var later *RetryAfterError
	switch {
	case IsPermanent(e.err):
		d.again, d.pause, d.count.retries = atNextChange, 0, false
	case IsConflict(e.err):
		d.conflicts = e.conflicts + 1
		d.tell = lasting(d.conflicts)
		d.count = counts{conflicts: true}
	case consistsOf(e.err, isTerminatingNamespace):
		d.again, d.pause, d.tell, d.count = afterPause, terminatingPause, false, counts{}
	case consistsOf(e.err, isRetryAfter) && errors.As(e.err, &later):
		d.again, d.pause, d.tell = afterPause, later.After, false
		d.count.errors = false
	}
	return d
}

// maxSuggestedPause is the longest pause that a server may request.
const maxSuggestedPause = time.Hour

// suggestedPause returns the pause that API servers requested by Retry-After; 0 is none.
func suggestedPause(err error) (pause time.Duration) {
	for status := range statusesOf(err) {
		if status.Details != nil {
			pause = max(pause, time.Duration(status.Details.RetryAfterSeconds)*time.Second)
		}
	}
	return min(pause, maxSuggestedPause)
}

// IsConflict reports whether an error of a reconciliation consists only of conflicts: one or
// several objects had changed since they were read. The reconciliation is then retried after its
// backoff, and only the fifth and later consecutive conflicts are logged. A field that another
// manager holds does not count as a conflict.
func IsConflict(err error) bool { return consistsOf(err, isConflict) }

// isConflict reports whether an error says that an object has changed meanwhile. A field that
// another manager holds does not count: the next try would fail as well. It does not look into
// wrapped errors; consistsOf does.
func isConflict(err error) bool {
	_, answer := err.(apierrors.APIStatus)
	return answer && apierrors.IsConflict(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}

// terminatingPause is the time between two tries to create something in a namespace that is being
// deleted. The objects in it get their own events when the namespace deletes them.
const terminatingPause = 30 * time.Second

// isTerminatingNamespace reports whether the API server refused to create an object because its
// namespace is being deleted. This is not a fault of the operator or of its rights.
func isTerminatingNamespace(err error) bool {
	_, answer := err.(apierrors.APIStatus)
	return answer && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

func isRetryAfter(err error) bool {
	_, ok := err.(*RetryAfterError) //nolint:errorlint // consistsOf looks into wrapped errors
	return ok
}

// conclude applies the consequences of the end of a reconciliation.
func (f *Framework) conclude(ctx context.Context, key informer.Key, res result, why *waiting) {
	res.err = advised(res.err)
	before, _ := f.failures.Get(key)
	d := decide(ending{res.outcome, res.err, ctx.Err() != nil, res.requeueAfter, before.conflicts})
	next := f.schedule(key, d, res.reconciliation)
	f.failures.note(key, res.err, d)
	f.observers.ended(ended{result: res, decision: d, key: key, why: why, next: next})
}

// schedule requeues a key as decided, because of the reconciliation r, if any, and returns the time
// until then; 0 is not before the next change.
func (f *Framework) schedule(key informer.Key, d decision, r *reconciliation) (next time.Duration) {
	retry := byRequest(CauseRetry, r)
	if d.ask > 0 {
		next = f.retries.Ask(key, d.ask, byRequest(CauseRequeue, r))
	}
	switch d.again {
	case atNextChange:
		next = f.retries.Settle(key)
	case afterBackoff:
		next = f.retries.Retry(key, d.pause, retry)
	case afterPause:
		next = f.retries.RetryAfter(key, d.pause, retry)
	case atNextStart:
	}
	return next
}
