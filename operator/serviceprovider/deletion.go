package serviceprovider

import (
	"context"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/operatorkit/operatorkit/operator/serviceprovider/internal/redact"
)

// delete is the way of an object that is to go. The finalizer for the work goes when Delete has succeeded: from then on it is
// not called any more. The one for the access goes when that is taken away.
func (r *APIReconciler[T, C]) delete(ctx context.Context, o *object[T]) (ctrl.Result, error) {
	working := hasAny(o.raw, r.finalizers.work)
	if !working && !hasAny(o.raw, r.finalizers.access) { // removed by a user, or by the end of this deletion
		o.gone = true
		return r.withdrawVanished(ctx, o.request)
	}
	gone, err := r.letGo(ctx, o)
	// Without work nothing is to be cleaned up, whatever is lost, and a cluster whose access is being taken away counts as lost next time.
	if working {
		if err == nil {
			err = r.left(gone)
		}
		if err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := r.abandon(ctx, gone); err != nil {
		return ctrl.Result{}, err
	}
	if working {
		if result, err := r.cleanUp(ctx, o, gone); err != nil || waits(result) {
			return result, err
		}
	}
	return r.withdraw(ctx, o)
}

// cleanUp has the author's Delete done.
func (r *APIReconciler[T, C]) cleanUp(ctx context.Context, o *object[T], gone letGo) (ctrl.Result, error) {
	name, do := "Delete", r.author.Delete
	if len(gone) > 0 {
		partial, can := r.author.(PartialDeleter[T, C])
		if !can { // nothing is left, see left
			return ctrl.Result{}, r.finishWork(ctx, o, gone)
		}
		name, do = "DeletePartially", partial.DeletePartially
	}
	limited, cancel := r.limited(ctx)
	defer cancel()
	config, err := r.configs.wanted(limited, true, "")
	if err == nil {
		err = r.acquire(askingContext(limited, config, o.obj), o, gone)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	result, err := r.call(ctx, o, config, name, do)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case waits(result):
		if !o.told {
			StatusTerminating(o.obj)
		}
		return result, nil
	}
	return ctrl.Result{}, r.finishWork(ctx, o, gone)
}

// finishWork notes in the object that nothing is left to be cleaned up.
func (r *APIReconciler[T, C]) finishWork(ctx context.Context, o *object[T], gone letGo) error {
	if len(gone) > 0 {
		r.warn(ctx, o, ReasonClusterLetGo, "not cleaned up, because the annotation %s says that it is gone for good: %s", LetGoAnnotation, gone)
	}
	o.told = false
	r.last.forget(o.request)
	return r.removeFinalizers(ctx, o, r.finalizers.work)
}

// withdraw has the access taken away, and then lets the object go.
func (r *APIReconciler[T, C]) withdraw(ctx context.Context, o *object[T]) (ctrl.Result, error) {
	limited, cancel := r.limited(ctx)
	defer cancel()
	result, err := r.access.ReconcileDelete(limited, o.request)
	if err != nil {
		return ctrl.Result{}, redact.Wrap(err, "take away access to clusters")
	}
	if waits(result) {
		message := "waits until access to its clusters is taken away"
		if leaving := r.leaving(limited, o.request); len(leaving) > 0 {
			message += ": " + strings.Join(leaving, ", ")
		}
		o.says(ReasonAccessLeaving, message)
		return result, nil
	}
	err = r.removeFinalizers(ctx, o, r.finalizers.access)
	o.gone = o.gone || err == nil
	return ctrl.Result{}, err
}

// leaving are the clusters of which there still is an access request.
func (r *APIReconciler[T, C]) leaving(ctx context.Context, request ctrl.Request) (ids []string) {
	all, _ := r.asked(ctx, request) // the message names none then
	for _, a := range all {
		if a.asked != nil {
			ids = append(ids, a.id)
		}
	}
	return ids
}
