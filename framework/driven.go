package framework

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/informer"
)

// Reconciled is the result of ReconcileObject.
type Reconciled struct {
	// Outcome is Succeeded for a finished deletion, and Waiting or Canceled for an unfinished one.
	Outcome Outcome
	// Reason says in words why there was nothing to reconcile, when Outcome is Ignored, or why a
	// Policy has held something, when Outcome is Waiting or Canceled.
	Reason string
	// RequeueAfter is the time after which a resource requests a requeue; 0 is never.
	RequeueAfter time.Duration
}

// ReconcileObject reconciles one object now, for a caller with its own queue (Config.Driven). It
// updates the object or, if the object is marked for deletion, deletes what belongs to it. Metrics,
// the Observer and the shadows get the reconciliation as they get all others. Paused objects are
// ignored, and objects that are only planned are planned.
//
// ReconcileObject handles neither finalizers nor retries and does not log the error: that is up to
// the caller, which never calls it twice at once for one object. The error wraps that of the
// resource; then Outcome is Failed. The object stays the caller's.
func (f *Framework) ReconcileObject(ctx context.Context, obj any) (Reconciled, error) {
	s := subjectOf(obj)
	res := f.asConflict(s, f.reconcileDriven(ctx, s))
	res.err = advised(res.err)
	before, _ := f.failures.Get(s.key)
	d := decide(ending{outcome: res.outcome, err: res.err, conflicts: before.conflicts})
	f.failures.note(s.key, res.err, d)
	d.tell, d.count.retries = false, false // the caller logs and counts them
	f.observers.ended(ended{result: res, decision: d, key: s.key, next: res.requeueAfter})
	return Reconciled{Outcome: res.outcome, Reason: res.reason, RequeueAfter: res.requeueAfter}, res.err
}

func (f *Framework) reconcileDriven(ctx context.Context, s subject) result {
	switch {
	case reconciliationcanceledcontext.IsCanceled(ctx):
		return result{outcome: Canceled}
	case paused(s.obj):
		return result{outcome: Ignored, reason: reasonPaused}
	case f.onlyPlanned(s.obj):
		return f.planInstead(ctx, s, false)
	case f.begun.Load() && f.takeover.isBehind(s.key, s.obj, true):
		return result{outdated: true}
	}
	f.reportedPlans.Delete(s.key)
	s.obj = informer.Copy(s.obj)
	if s.event == deleteEvent {
		return f.delete(ctx, s)
	}
	return f.update(ctx, s)
}

// asConflict turns a result after which the reconciliation must restart into a conflict, for
// callers that retry by themselves.
func (f *Framework) asConflict(s subject, res result) result {
	if res.outdated {
		res.outcome, res.reason, res.outdated = Failed, "", false
		res.err = apierrors.NewConflict(schema.GroupResource{Resource: f.source.Name()}, keyString(s.key), ErrOutdated)
	}
	return res
}
