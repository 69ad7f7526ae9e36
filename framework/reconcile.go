package framework

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/panics"
)

// result is the result of reconciling a key.
type result struct {
	reconciliation *reconciliation
	outcome        Outcome
	// reason says why nothing was reconciled.
	reason string
	// outdated is true if the reconciliation must restart, because the object has changed since.
	outdated bool
	err      error
	// requeueAfter is the time after which the key is requeued; zero means at its next change.
	requeueAfter time.Duration
	// plan is the plan that replaced the reconciliation, if it was only planned.
	plan *plan.Plan
}

// pauseAfterPanic is the pause before a retry if the code that decides on the retry has panicked: a
// backoff, or the methods of an error.
const pauseAfterPanic = time.Minute

// reconcileEntry brings one object up to date, and decides when it is requeued.
func (f *Framework) reconcileEntry(ctx context.Context, e *waiting) {
	res := f.reconcile(ctx, e)
	if err := panics.Recovered(func() error { f.conclude(ctx, e.Key, res, e); return nil }); err != nil {
		f.panicked("conclude a reconciliation", err, "object", keyString(e.Key))
		f.retries.RetryAfter(e.Key, pauseAfterPanic, byRequest(CauseRetry, nil))
	}
}

// reconcile brings one object up to date. A panic of foreign code, wherever it is called, is an
// error.
func (f *Framework) reconcile(ctx context.Context, e *waiting) (res result) {
	defer func() {
		if v := recover(); v != nil {
			res = activityOf(ctx).broke(e.Key, panics.New(v))
		}
	}()
	if f.waitsForSource(e.Key) {
		return result{outcome: Ignored, reason: reasonBehind}
	}
	res = f.reconcileTombstones(ctx, e)
	if res.err != nil || res.outcome == Waiting {
		return res
	}
	f.followed(e, res)
	if f.shard != nil && !f.shard.Owns(e.Key) {
		return result{outcome: Ignored, reason: reasonElsewhere}
	}
	return f.reconcileStored(ctx, e.Key)
}

// followed reports the end of a reconciliation that another one of the same key follows at once.
func (f *Framework) followed(e *waiting, res result) {
	if res.reconciliation != nil {
		f.observers.ended(ended{result: res, key: e.Key, why: e})
	}
}

// reconcileStored reconciles the object that the source holds under the key, if any.
func (f *Framework) reconcileStored(ctx context.Context, key informer.Key) result {
	obj, exists, err := f.source.Get(key)
	if err != nil {
		err = fmt.Errorf("read %s from source %q: %w", keyString(key), f.source.Name(), Permanent(err))
		return result{outcome: Failed, err: err}
	}
	if !exists {
		f.reportedPlans.Delete(key)
		return result{outcome: Ignored, reason: reasonGone}
	}
	s := subjectOf(obj)
	s.key = key
	if s.event != deleteEvent && f.tombstones.isProcessed(key, obj) {
		return f.reconcileRevived(ctx, s)
	}
	return f.reconcileSubject(ctx, s)
}

// reconcileSubject reconciles an existing object.
func (f *Framework) reconcileSubject(ctx context.Context, s subject) result {
	planned := f.onlyPlanned(s.obj) && s.approval == nil
	if !planned || paused(s.obj) {
		f.reportedPlans.Delete(s.key)
	}
	switch {
	case paused(s.obj):
		return result{outcome: Ignored, reason: reasonPaused}
	case planned:
		return f.planInstead(ctx, s, false)
	case s.event == deleteEvent:
		return f.reconcileDeletion(ctx, s)
	}
	return f.update(ctx, s)
}

// update runs the resources for an object that is not being deleted.
func (f *Framework) update(ctx context.Context, s subject) result {
	r := f.newReconciliation(ctx, s)
	obj := s.obj
	set, err := f.resourceSet(r, obj)
	if err == nil && f.needsFinalizer(obj) {
		hadFinalizer := f.hasFinalizer(obj)
		obj, err = f.ensureFinalizer(r, s.key, obj)
		switch {
		case apierrors.IsNotFound(err):
			return result{reconciliation: r, outcome: Ignored, reason: reasonGoneEarly}
		case err != nil:
			// Also a conflict: the object need not have changed, and no event may follow.
			return result{reconciliation: r, outcome: Failed, err: r.errorf("add finalizer: %w", err)}
		}
		r.hasSeen(obj)
		r.first = !hadFinalizer
		if paused(obj) || beingDeleted(obj) || r.approval == nil && f.onlyPlanned(obj) {
			// Another client has requested that meanwhile. The finalizer stays: it may belong to
			// another process, which has made things for the object that the source does not show
			// yet.
			return result{reconciliation: r, outcome: Waiting, reason: reasonOutdated, outdated: true}
		}
		// The object may be newer than before. The set must match the object that it runs with.
		set, err = f.resourceSet(r, obj)
		if IsNoResourceSet(err) && !hadFinalizer {
			if err := f.removeOwnFinalizers(r, obj); err != nil {
				return result{reconciliation: r, outcome: Failed, err: r.errorf("remove finalizer: %w", err)}
			}
		}
	}
	switch {
	case IsNoResourceSet(err):
		return result{reconciliation: r, outcome: Ignored, reason: reasonNoResourceSet}
	case err != nil:
		return result{reconciliation: r, outcome: Failed, err: err}
	}
	_, res := f.runResourceSet(r, set, obj)
	return r.unlessOutdated(res)
}

// runResourceSet initialises the context and runs the resources of a set. It returns the
// initialised context, which has the signals from InitCtx. It takes ownership of the object.
func (f *Framework) runResourceSet(r *reconciliation, set *ResourceSet, obj any) (context.Context, result) {
	r.object = obj
	r.set = &set.setPlanner
	ctx, err := f.initCtx(r, &set.setPlanner, obj)
	if err != nil {
		return r, result{reconciliation: r, outcome: Failed, err: r.errorf("%w", err)}
	}
	err = runResources(ctx, r, obj, set.resources)
	// Signals that InitCtx carries itself count for the reconciliation, too.
	handOn(ctx, r)
	res := result{reconciliation: r, outcome: Succeeded}
	res.requeueAfter, _ = requeuecontext.After(r)
	held := r.unfinished.Load()
	if held != nil && err == nil {
		res.reason = *held
	}
	switch {
	case err != nil:
		res.outcome, res.err = Failed, err
	case reconciliationcanceledcontext.IsCanceled(r):
		res.outcome = Canceled
	case held != nil:
		res.outcome = Waiting
	}
	return ctx, res
}

// initCtx prepares the context of a reconciliation or a plan. A panic is an error.
func (f *Framework) initCtx(parent context.Context, set *setPlanner, obj any) (ctx context.Context, err error) {
	if f.config.InitCtx == nil && set.initCtx == nil {
		return parent, nil
	}
	err = recoveredIn(parent, func(parent context.Context) (err error) {
		ctx, err = callInitCtx(parent, obj, f.config.InitCtx)
		if err == nil {
			ctx, err = callInitCtx(ctx, obj, set.initCtx)
		}
		return err
	})
	return ctx, err
}

// resourceSet asks the router, and returns the set for the event of r. A panic in a Handles
// function is an error.
func (f *Framework) resourceSet(r *reconciliation, obj any) (set *ResourceSet, err error) {
	err = panics.Recovered(func() (err error) {
		set, err = f.config.ResourceRouter.ResourceSet(obj)
		return err
	})
	if err != nil {
		return nil, r.errorf("%w", err)
	}
	return set.of(r.event), nil
}

func (f *Framework) newReconciliation(ctx context.Context, s subject) *reconciliation {
	r := &reconciliation{
		event:     s.event,
		object:    s.obj,
		key:       s.key,
		framework: f,
		loop:      f.loops.Add(1),
		approval:  s.approval,
		activity:  activityOf(ctx),
	}
	r.started = f.metrics.now()
	r.live.seen, r.live.confirmed = seenOf(s.obj), s.confirmed
	f.observers.began(r)
	if f.tracer != nil {
		ctx = f.traced(ctx, r)
	}
	r.init(ctx)
	return r
}

// LeavesAlone implements access.Engine.
func (f engine) LeavesAlone(obj any) bool { return paused(obj) || f.onlyPlanned(obj) }

// paused reports whether an annotation pauses the object.
func paused(obj any) bool {
	m, ok := metaOf(obj)
	if !ok {
		return false
	}
	annotations := m.GetAnnotations()
	return annotations[PausedAnnotation] == "true" || annotations[ClusterPausedAnnotation] == "true"
}
