package framework

import (
	"context"
	"time"

	"github.com/operatorkit/operatorkit/informer"
)

// Processed is what became of an object that was given to Process.
type Processed struct {
	// Outcome is how it ended. A deletion is finished when it Succeeded, and not when it is Waiting or Canceled.
	Outcome Outcome
	// Reason says in words why there was nothing to reconcile, when Outcome is Ignored.
	Reason string
	// RequeueAfter is after which time a resource asked for another look; 0 is never.
	RequeueAfter time.Duration
}

// Process reconciles one object now, for somebody who has a queue of their own (Config.Driven): it updates it, or deletes what
// belongs to it if the object is marked for deletion. Metrics, the Observer and the shadows learn of it as they do of all
// reconciliations. Objects that are paused are left alone, and those that are only planned for are planned.
//
// Neither finalizers nor retries are looked after, and an error is not logged: that is up to the caller, who never calls it twice
// at once for one object. The error wraps that of the resource, and goes with Failed. The object stays the caller's.
func (f *Framework) Process(ctx context.Context, obj any) (Processed, error) {
	s := subjectOf(obj)
	start := f.metrics.now()
	res := f.processSubject(ctx, s)
	f.metrics.reconciled(res, start)
	if stackOf(res.err) != "" {
		f.metrics.panicked()
	}
	f.follow(s.key, res)
	f.observe(s.key, res, nil, res.again)
	return Processed{Outcome: res.outcome, Reason: res.reason, RequeueAfter: res.again}, res.err
}

func (f *Framework) processSubject(ctx context.Context, s subject) result {
	switch {
	case paused(s.obj):
		return result{outcome: Ignored, reason: reasonPaused}
	case f.onlyPlanned(s.obj):
		return f.planInstead(ctx, s.key, s.obj, false)
	case s.event == deleteEvent:
		f.planned.forget(s.key)
		return f.delete(ctx, s.key, informer.Copy(s.obj))
	}
	f.planned.forget(s.key)
	return f.update(ctx, s.key, informer.Copy(s.obj))
}
