package queue

import (
	"time"

	"github.com/operatorkit/operatorkit/informer"
)

// Cause is a kind of reason why a key waits.
type Cause string

// The causes. People read them in records.
const (
	CauseChange  Cause = "change"
	CauseBacklog Cause = "backlog"
	CauseResync  Cause = "resync"
	CauseRetry   Cause = "retry"
	CauseRequeue Cause = "requeue"
	CauseEnqueue Cause = "enqueue"
)

// Trigger is why a key was added.
type Trigger struct {
	Cause Cause
	// Event is what happened in Source, if the cause is an event.
	Event  informer.EventType
	Source string
	// Key is that of a watched object, and empty for the primary.
	Key informer.Key
}

// ByEvent returns where the key goes that an event of a source concerns, and why. watched is the key of the event if it is
// one of a watched object, and empty for the primary.
func ByEvent(source string, e informer.Event, watched informer.Key) (Lane, Trigger) {
	t := Trigger{Cause: CauseChange, Event: e.Type, Source: source, Key: watched}
	switch {
	case !e.Backlog:
		return Fresh, t
	case e.Type == informer.Updated:
		t.Cause = CauseResync
	default:
		t.Cause = CauseBacklog
	}
	return Backlog, t
}

// maxTriggers is how many causes for one wait are told apart; the rest is counted.
const maxTriggers = 3

// Waiting is why and since when a key has been waiting.
type Waiting struct {
	// First and More are the first few triggers, and Count is how many there were.
	First Trigger
	More  []Trigger
	Count int

	since time.Duration
}

func (w *Waiting) add(t Trigger) {
	switch {
	case w.Count == 0:
		w.First = t
	case w.Count < maxTriggers:
		w.More = append(w.More, t)
	}
	w.Count++
}

// Since is when a wait began.
func (q *Queue) Since(w *Waiting) time.Time { return q.epoch.Add(w.since) }
