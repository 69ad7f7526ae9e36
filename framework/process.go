package framework

import (
	"context"
	"fmt"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/context/signal"
	"github.com/operatorkit/operatorkit/informer"
)

// ProcessUpdate runs the resources for an object that was created or changed. It is a drop-in for an informer's
// handlers; a Framework does the same for the keys of its queue.
//
//	handler := cache.ResourceEventHandlerFuncs{
//		AddFunc:    func(obj any) { err = framework.ProcessUpdate(ctx, obj, resources) },
//		UpdateFunc: func(_, obj any) { err = framework.ProcessUpdate(ctx, obj, resources) },
//		DeleteFunc: func(obj any) { err = framework.ProcessDelete(ctx, obj, resources) },
//	}
//
// The resources run in the order given, each with a copy of obj. The first error ends the run; it names the object, the
// resource and the step. Without resources it is an error for which IsExecutionFailed holds. Each call has signals of
// its own; one that the caller's context carries is set too when a resource sets it.
func ProcessUpdate(ctx context.Context, obj any, resources []Resource) error {
	return processAlone(ctx, updateEvent, obj, resources)
}

// ProcessDelete runs the resources for an object that is being deleted; obj is its last known state. All that is said
// of ProcessUpdate holds here too. When a resource cancelled the reconciliation the result is nil although the deletion
// is not complete: a caller that has to know puts reconciliationcanceledcontext.NewContext into ctx and looks at it.
func ProcessDelete(ctx context.Context, obj any, resources []Resource) error {
	return processAlone(ctx, deleteEvent, obj, resources)
}

// processAlone runs resources for somebody who is not a Framework, and hands the signals on to the caller's context.
func processAlone(ctx context.Context, e event, obj any, resources []Resource) error {
	r := &reconciliation{event: e, object: obj}
	r.init(ctx)
	err := process(r, r, informer.Copy(obj), resources)
	if reconciliationcanceledcontext.IsCanceled(r) {
		reconciliationcanceledcontext.SetCanceled(ctx)
	}
	if finalizerskeptcontext.IsKept(r) {
		finalizerskeptcontext.SetKept(ctx)
	}
	if after, ok := signal.Requeue(r); ok {
		signal.SetRequeue(ctx, after)
	}
	return err
}

// process runs the resources in order. ctx is r or a child of it. The object is given away: the last resource gets it,
// the others get copies.
func process(ctx context.Context, r *reconciliation, obj any, resources []Resource) error {
	if len(resources) == 0 {
		return r.errorf("%w: there are no resources", ErrExecutionFailed)
	}
	for i, resource := range resources {
		if reconciliationcanceledcontext.IsCanceled(ctx) {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return r.errorf("stopped before resource %q: %w", resource.Name(), err)
		}
		own := obj
		if i < len(resources)-1 {
			own = informer.Copy(obj)
		}
		if err := r.run(ctx, i, resource, own); err != nil {
			return r.errorf("%w", err)
		}
	}
	return nil
}

// run runs one resource, which has that place in its set, in a scope of its own.
func (r *reconciliation) run(ctx context.Context, place int, resource Resource, obj any) error {
	s := &scope{reconciliation: r, resource: resource.Name(), place: place}
	s.Init(ctx, signal.ResourceCanceled)

	ensure, step := resource.EnsureCreated, StepEnsureCreated
	if r.event == deleteEvent {
		ensure, step = resource.EnsureDeleted, StepEnsureDeleted
	}
	if r.approval != nil {
		ensure = r.approval.guarded(s, resource, ensure)
	}
	r.recording.reached(place)
	err := observed(s, StepInfo{s.resource, step}, nil, func(ctx context.Context) error { return ensure(ctx, obj) })
	r.recording.left(s)
	return err
}

func (r *reconciliation) errorf(format string, args ...any) error {
	return fmt.Errorf("%s of %s: %w", r.event, describe(r.object, r.key), fmt.Errorf(format, args...))
}
