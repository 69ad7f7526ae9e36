package framework

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework/internal/queue"
	"github.com/operatorkit/operatorkit/informer"
)

// result is what became of a key.
type result struct {
	reconciliation *reconciliation
	outcome        Outcome
	// reason says why there was nothing to reconcile.
	reason string
	err    error
	// requeueAfter is when to look at the key again; zero means at its next change.
	requeueAfter time.Duration
}

// reconcileEntry brings one object up to date and decides when to look at it again.
func (f *Framework) reconcileEntry(ctx context.Context, e *queue.Entry, why *queue.Waiting) {
	defer f.queue.Done(e)
	res := f.reconcile(ctx, e.Key, why)
	f.noteMatch(e.Key, res)
	next := f.scheduleNext(ctx, e.Key, res)
	f.compareShadowsLater(e.Key, res)
	f.observe(e.Key, res, why, next)
}

// reconcile brings one object up to date. A panic of code that is not ours, wherever it is called, is an error.
func (f *Framework) reconcile(ctx context.Context, key informer.Key, why *queue.Waiting) (res result) {
	defer func() {
		if v := recover(); v != nil {
			res = result{outcome: Failed, err: fmt.Errorf("reconcile %s: %w", keyString(key), newPanicError(v))}
			f.metrics.errors.Inc()
		}
	}()
	res, start := f.reconcileTombstones(ctx, key, why, f.metrics.now())
	if res.err == nil && res.outcome != Waiting {
		if res.reconciliation != nil {
			f.observe(key, res, why, 0)
		}
		res = f.reconcileStored(ctx, key)
		f.metrics.reconciled(res, start)
	}
	return res
}

// scheduleNext decides when to look at a key again, which it returns, and reports errors. 0 is not before the next change.
func (f *Framework) scheduleNext(ctx context.Context, key informer.Key, res result) (next time.Duration) {
	switch {
	case res.err != nil && ctx.Err() != nil:
		// Interrupted by the end of Run: whoever runs next starts over.
	case res.err != nil:
		next = f.retryFailed(key, res)
		if res.requeueAfter > 0 && (next == 0 || res.requeueAfter < next) {
			next = res.requeueAfter
			f.retries.Within(key, next)
		}
	case res.outcome == Waiting && res.requeueAfter == 0:
		next = f.retries.Retry(key)
	case res.requeueAfter > 0:
		next = res.requeueAfter
		f.retries.After(key, next)
	default:
		f.retries.Forget(key)
	}
	if res.err == nil {
		f.reporter.recovered(key)
	}
	return next
}

// retryFailed reports the error of a reconciliation, and returns when it is tried again; 0 is at the next change.
func (f *Framework) retryFailed(key informer.Key, res result) (next time.Duration) {
	if apierrors.IsConflict(res.err) {
		f.metrics.conflicts.Inc()
		return f.retries.Retry(key)
	}
	fields := []any{"error", res.err.Error()}
	if res.reconciliation != nil {
		fields = append(fields, res.reconciliation.logFields()[:4]...)
		fields = append(fields, "loop", res.reconciliation.loop)
	} else {
		fields = append(fields, "object", keyString(key))
	}
	var step *StepError
	if errors.As(res.err, &step) {
		fields = append(fields, "resource", step.Resource, "step", string(step.Step))
	}
	if stack := stackOf(res.err); stack != "" {
		f.metrics.panicked()
		fields = append(fields, "stack", stack)
	}
	if IsPermanent(res.err) {
		f.retries.Forget(key)
		fields = append(fields, "retry", "at the next change")
	} else {
		f.metrics.retries.Inc()
		next = f.retries.Retry(key)
		fields = append(fields, "retry", next.Round(time.Millisecond).String())
	}
	f.log("error", "reconciliation failed", fields...)
	if res.reconciliation != nil {
		f.reporter.failed(key, res.reconciliation.object, res.err)
	}
	return next
}

// reconcileStored reconciles the object that the source holds under the key, if any.
func (f *Framework) reconcileStored(ctx context.Context, key informer.Key) result {
	obj, exists, err := f.source.Get(key)
	if err != nil {
		return result{outcome: Failed, err: fmt.Errorf("read %s from source %q: %w", keyString(key), f.source.Name(), Permanent(err))}
	}
	if !exists || paused(obj) {
		f.reportedPlans.Delete(key)
	}
	if !exists {
		return result{outcome: Ignored, reason: reasonGone}
	}
	if paused(obj) {
		return result{outcome: Ignored, reason: reasonPaused}
	}
	if f.onlyPlanned(obj) {
		return f.planInstead(ctx, key, obj, false)
	}
	f.reportedPlans.Delete(key)
	if m, ok := metaOf(obj); ok && m.GetDeletionTimestamp() != nil {
		return f.reconcileDeletion(ctx, key, obj)
	}
	return f.update(ctx, key, obj)
}

// update runs the resources for an object that is to stay.
func (f *Framework) update(ctx context.Context, key informer.Key, obj any) result {
	r := f.newReconciliation(ctx, updateEvent, key, obj)
	set, err := f.resourceSet(r, obj)
	if IsNoResourceSet(err) {
		return result{reconciliation: r, outcome: Ignored, reason: reasonNoResourceSet}
	}
	if err != nil {
		return result{reconciliation: r, outcome: Failed, err: err}
	}
	obj, err = f.ensureFinalizer(ctx, key, obj)
	switch {
	case err == nil:
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return result{reconciliation: r, outcome: Ignored, reason: "it changed before it got its finalizer"}
	default:
		return result{reconciliation: r, outcome: Failed, err: r.errorf("add finalizer: %w", err)}
	}
	_, res := f.runResourceSet(r, set, obj)
	return res
}

// runResourceSet initialises the context and runs the resources of a set. It returns the initialised context, which knows
// the signals that InitCtx put there. The object is given away.
func (f *Framework) runResourceSet(r *reconciliation, set *ResourceSet, obj any) (context.Context, result) {
	r.object = obj
	r.recording.begin(set)
	r.scopes = f.scopes[&set.setPlanner]
	ctx, err := f.initCtx(r, &set.setPlanner, obj)
	if err != nil {
		return r, result{reconciliation: r, outcome: Failed, err: r.errorf("%w", err)}
	}
	err = runResources(ctx, r, obj, set.resources)
	res := result{reconciliation: r, outcome: Succeeded}
	res.requeueAfter, _ = requeuecontext.After(r)
	switch {
	case err != nil:
		res.outcome, res.err = Failed, err
	case reconciliationcanceledcontext.IsCanceled(r):
		res.outcome = Canceled
	}
	return ctx, res
}

// initCtx prepares the context of a reconciliation or a plan. A panic is an error.
func (f *Framework) initCtx(parent context.Context, set *setPlanner, obj any) (ctx context.Context, err error) {
	err = Recovered(func() (err error) {
		ctx, err = callInitCtx(parent, obj, f.config.InitCtx)
		if err == nil {
			ctx, err = callInitCtx(ctx, obj, set.initCtx)
		}
		return err
	})
	return ctx, err
}

// resourceSet asks the router. A panic in a Handles function is an error.
func (f *Framework) resourceSet(r *reconciliation, obj any) (set *ResourceSet, err error) {
	err = Recovered(func() (err error) {
		set, err = f.config.ResourceRouter.ResourceSet(obj)
		return err
	})
	if err != nil {
		return nil, r.errorf("%w", err)
	}
	return set, nil
}

func (f *Framework) newReconciliation(ctx context.Context, e event, key informer.Key, obj any) *reconciliation {
	r := &reconciliation{event: e, object: obj, key: key, framework: f.Name(), loop: f.loops.Add(1), metrics: f.metrics, identity: &f.scope}
	r.approval, r.activity = approvalOf(ctx), activityOf(ctx)
	if f.config.Observer != nil {
		r.recording = &recording{}
	}
	r.init(ctx)
	return r
}

// paused tells whether an annotation asks to leave the object alone.
func paused(obj any) bool {
	m, ok := metaOf(obj)
	if !ok {
		return false
	}
	annotations := m.GetAnnotations()
	return annotations[PausedAnnotation] == "true" || annotations[ClusterPausedAnnotation] == "true"
}
