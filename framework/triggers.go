package framework

import (
	"time"

	"github.com/operatorkit/operatorkit/informer"
)

// maxTriggers is how many causes of one reconciliation are told apart; the rest is counted.
const maxTriggers = 3

// trigger is a Trigger as it goes into the queue.
type trigger struct {
	cause  Cause
	event  informer.EventType
	source string
	// key is that of a watched object, and empty for the primary.
	key informer.Key
}

// triggerOf is the trigger of an event of a source. key is empty for the primary source.
func triggerOf(source string, e informer.Event, key informer.Key) trigger {
	t := trigger{cause: CauseChange, event: e.Type, source: source, key: key}
	switch {
	case e.Backlog && e.Type == informer.Updated:
		t.cause = CauseResync
	case e.Backlog:
		t.cause = CauseBacklog
	}
	return t
}

func (t trigger) exported() Trigger {
	exported := Trigger{Cause: t.cause, Source: t.source, Namespace: t.key.Namespace, Name: t.key.Name}
	if t.event != 0 {
		exported.Event = t.event.String()
	}
	return exported
}

// waited is why and since when a key has been waiting. It is kept only for an Observer.
type waited struct {
	since time.Duration
	first trigger
	more  []trigger
	count int
}

func (w *waited) add(t trigger) {
	switch {
	case w.count == 0:
		w.first = t
	case w.count < maxTriggers:
		w.more = append(w.more, t)
	}
	w.count++
}

// describe writes what is known into a record. epoch is that of since.
func (w *waited) describe(r *Record, epoch time.Time) {
	if w == nil {
		return
	}
	r.Queued = epoch.Add(w.since)
	r.TriggerCount = w.count
	r.Triggers = append(make([]Trigger, 0, 1+len(w.more)), w.first.exported())
	for _, t := range w.more {
		r.Triggers = append(r.Triggers, t.exported())
	}
}
