package framework

import (
	"strings"

	"github.com/operatorkit/operatorkit/framework/internal/queue"
	"github.com/operatorkit/operatorkit/informer"
)

// Cause is the kind of cause of a reconciliation.
type Cause string

// The causes.
const (
	// CauseChange is an object that changed: the primary, or a watched one.
	CauseChange Cause = "change"
	// CauseBacklog is an object that existed when the framework started.
	CauseBacklog Cause = "backlog"
	// CauseResync is an object that is reconciled from time to time although it did not change.
	CauseResync Cause = "resync"
	// CauseRetry is an earlier reconciliation that failed, or is not finished: a deletion that
	// waits, a change that a Policy holds, or an object that had changed meanwhile.
	CauseRetry Cause = "retry"
	// CauseRequeue is a resource, or a caller of EnqueueAfter, that requested a requeue.
	CauseRequeue Cause = "requeue"
	// CauseEnqueue is a call of Enqueue.
	CauseEnqueue Cause = "enqueue"
)

// Trigger is the cause of a reconciliation.
type Trigger struct {
	// Cause is the kind of cause.
	Cause Cause `json:"cause"`
	// Resource is the resource that requested the requeue, if one did.
	Resource string `json:"resource,omitempty"`
	// Source is the source of the event, if there was one. Event is the event: added, updated or
	// deleted.
	Source string `json:"source,omitempty"`
	Event  string `json:"event,omitempty"`
	// Namespace and Name are the key of a watched object that changed. They are empty for the
	// primary itself.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// String describes the trigger for people.
func (t Trigger) String() string {
	text := string(t.Cause)
	if t.Resource != "" {
		text += " by " + t.Resource
	}
	if t.Source != "" {
		text += " from " + t.Source
	}
	if t.Name != "" {
		text += " of " + strings.TrimPrefix(t.Namespace+"/"+t.Name, "/")
	}
	if t.Event != "" {
		text += " (" + t.Event + ")"
	}
	return text
}

// wakeup is why a key is queued, and the reconciliation that caused it.
type wakeup struct {
	Trigger

	by *informer.Cause
}

// waiting is the key of an object with the time since when it waits, and why.
type waiting = queue.Entry[wakeup]

// byEvent returns the lane and the wakeup for a key that an event of a source concerns. watched is
// the key of the event of a watched object, and empty for the primary.
func byEvent(source string, e informer.Event, watched informer.Key) (queue.Lane, wakeup) {
	t := Trigger{
		Cause:     CauseChange,
		Source:    source,
		Event:     e.Type.String(),
		Namespace: watched.Namespace,
		Name:      watched.Name,
	}
	switch {
	case !e.Backlog:
		return queue.Fresh, wakeup{t, e.Cause()}
	case e.Type == informer.Updated:
		t.Cause = CauseResync
	default:
		t.Cause = CauseBacklog
	}
	return queue.Backlog, wakeup{Trigger: t}
}

// byTakeover returns the wakeup for a key that is gained from another process.
func byTakeover(source string) wakeup {
	return wakeup{Trigger: Trigger{Cause: CauseBacklog, Source: source}}
}

// byRequest returns the wakeup for a key that is queued without an event. r is the reconciliation
// that caused it, or nil.
func byRequest(cause Cause, r *reconciliation) wakeup {
	w := wakeup{Trigger{Cause: cause}, informer.CausedBy(r.span())}
	if cause == CauseRequeue && r != nil {
		w.Resource = r.requeuedBy
	}
	return w
}
