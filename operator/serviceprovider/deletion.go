package serviceprovider

import (
	"context"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/operatorkit/operatorkit/operator/serviceprovider/internal/discreet"
)

// delete is the way of an object that is to go. The finalizer for the work goes when Delete has succeeded: from then on it is
// not called any more. The one for the access goes when that is taken away.
func (r *APIReconciler[T, C]) delete(ctx context.Context, o *object[T]) (ctrl.Result, error) {
	working := hasAny(o.raw, r.finalizers.work)
	if !working && !hasAny(o.raw, r.finalizers.access) { // removed by a user, or by the end of this deletion
		o.gone = true
		return r.withdrawUnheld(ctx, o.request)
	}
	gone, err := r.letGo(ctx, o)
	// Without work nothing is to be cleaned up, whatever is lost, and a cluster whose access is being taken away counts as lost next time.
	if err != nil && working {
		return ctrl.Result{}, r.failed(o, err, ClusterContext{})
	}
	if w := r.left(gone); working && w != nil {
		return r.tellWait(ctx, o, w, StatusTerminatingWithReason), nil
	}
	if err := r.abandon(ctx, gone); err != nil {
		return ctrl.Result{}, r.failed(o, err, ClusterContext{})
	}
	if working {
		result, err := r.cleanUp(ctx, o, gone)
		if err != nil || waits(result) {
			return result, err
		}
	}
	return r.withdraw(ctx, o)
}

// cleanUp has the author's Delete done.
func (r *APIReconciler[T, C]) cleanUp(ctx context.Context, o *object[T], gone letGo) (ctrl.Result, error) {
	limited, cancel := r.limited(ctx)
	defer cancel()
	config, _, err := r.configs.wanted(limited, true, "")
	if err != nil {
		return ctrl.Result{}, r.failed(o, err, ClusterContext{})
	}
	name, do := "Delete", r.author.Delete
	if len(gone) > 0 {
		partial, can := r.author.(PartialDeleter[T, C])
		if !can { // nothing is left, see left
			return ctrl.Result{}, r.finishWork(ctx, o, gone)
		}
		name, do = "DeletePartially", partial.DeletePartially
	}
	found, w, err := r.acquire(askingContext(ctx, config, o.obj), o.request, gone)
	if err != nil {
		return ctrl.Result{}, r.failed(o, err, found)
	}
	if w != nil {
		w.message += r.howToLetGo(w)
		return r.tellWait(ctx, o, w, StatusTerminatingWithReason), nil
	}
	result, told, err := r.call(ctx, o, name, func(ctx context.Context, obj T) (ctrl.Result, error) {
		return do(withContext(ctx, config, found), obj, config, found)
	})
	switch {
	case err != nil:
		return ctrl.Result{}, r.failedIn(o, err, found, told)
	case waits(result):
		if !told {
			StatusTerminating(o.obj)
		}
		return result, nil
	}
	return ctrl.Result{}, r.finishWork(ctx, o, gone)
}

// finishWork notes in the object that nothing is left to be cleaned up.
func (r *APIReconciler[T, C]) finishWork(ctx context.Context, o *object[T], gone letGo) error {
	if len(gone) > 0 {
		r.recorder.warn(ctx, o.obj, ReasonClusterLetGo, "not cleaned up, because the annotation %s says that it is gone for good: %s", LetGoAnnotation, gone)
	}
	r.last.forget(o.request)
	if err := r.removeFinalizers(ctx, o, r.finalizers.work); err != nil {
		return r.failed(o, err, ClusterContext{})
	}
	return nil
}

// withdraw has the access taken away, and then lets the object go.
func (r *APIReconciler[T, C]) withdraw(ctx context.Context, o *object[T]) (ctrl.Result, error) {
	limited, cancel := r.limited(ctx)
	defer cancel()
	result, err := r.access.ReconcileDelete(limited, o.request)
	if err != nil {
		return ctrl.Result{}, r.failed(o, discreet.Step(err, "take away access to clusters"), ClusterContext{})
	}
	if waits(result) {
		message := "waits until access to its clusters is taken away"
		if leaving := r.leaving(limited, o.request); len(leaving) > 0 {
			message += ": " + strings.Join(leaving, ", ")
		}
		StatusTerminatingWithReason(o.obj, ReasonAccessLeaving, message)
		return result, nil
	}
	if err := r.removeFinalizers(ctx, o, r.finalizers.access); err != nil {
		return ctrl.Result{}, r.failed(o, err, ClusterContext{})
	}
	o.gone = true
	return ctrl.Result{}, nil
}

// leaving are the clusters of which there still is an access request.
func (r *APIReconciler[T, C]) leaving(ctx context.Context, request ctrl.Request) []string {
	var ids []string
	for _, a := range r.accesses {
		if ar, err := a.request(ctx, request); err == nil && ar != nil {
			ids = append(ids, a.id)
		}
	}
	return ids
}
