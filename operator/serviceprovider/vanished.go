package serviceprovider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operatorkit/operatorkit/framework"
	clustersv1alpha1 "github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// WithdrawUntilAnnotation on the provider's config is a time (RFC 3339). Until then access is withdrawn for however many objects have vanished:
// see the package's documentation. An administrator sets it after a look at the onboarding cluster.
const WithdrawUntilAnnotation = "serviceprovider.operatorkit.io/withdraw-until"

const (
	// withdrawalsInRow is how many vanished objects lose their access before somebody must look.
	withdrawalsInRow = 5
	// rowLasts is after what time without a withdrawal that waits the next ones are a row of their own.
	rowLasts = time.Hour
)

// ErrWithdrawalsStopped is that more objects have vanished than lose their access without a person's word.
var ErrWithdrawalsStopped = errors.New("withdrawals of access are stopped")

// lastStates are the last known states of the objects that CreateOrUpdate was called for and Delete has not succeeded for, as JSON.
type lastStates struct{ byName sync.Map }

// keep remembers a state. One that can't be encoded, which API servers have none of, leaves the one before.
func (s *lastStates) keep(request ctrl.Request, obj client.Object) {
	kept := copyOf(obj)
	kept.SetManagedFields(nil)
	if state, err := json.Marshal(kept); err == nil {
		s.byName.Store(request, state)
	}
}

func (s *lastStates) of(request ctrl.Request) (state []byte, known bool) {
	kept, known := s.byName.Load(request)
	state, _ = kept.([]byte)
	return state, known
}

func (s *lastStates) forget(request ctrl.Request) { s.byName.Delete(request) }

// orphaned cleans up after an object that is gone although access may be granted for it still: somebody has removed its finalizers. A single 404
// does not prove that it is gone.
func (r *APIReconciler[T, C]) orphaned(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if err := r.confirmGone(ctx, request); err != nil {
		return ctrl.Result{}, err
	}
	asked, _, err := r.asked(ctx, request)
	if err == nil && asked {
		err = r.mayWithdraw(ctx, request)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	result, err := r.withdrawUnheld(ctx, request)
	if err == nil && !waits(result) {
		r.brake.release(request)
	}
	return result, err
}

// withdrawUnheld calls Delete for an object that nothing holds any more, if it has access to its clusters, and then takes the access away.
func (r *APIReconciler[T, C]) withdrawUnheld(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	_, granted, err := r.asked(ctx, request)
	if err != nil {
		return ctrl.Result{}, err
	}
	if granted {
		if result, err := r.cleanUpUnheld(ctx, request); err != nil || waits(result) {
			return result, err
		}
	}
	r.last.forget(request)
	ctx, cancel := r.limited(ctx)
	defer cancel()
	result, err := r.access.ReconcileDelete(ctx, request)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("nothing holds it any more: take away access to its clusters: %w", err)
	}
	return result, nil
}

// confirmGone lists an object that was answered 404, and returns an error if it is there.
func (r *APIReconciler[T, C]) confirmGone(ctx context.Context, request ctrl.Request) error {
	ctx, cancel := r.limited(ctx)
	defer cancel()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(r.kind.GroupVersion().WithKind(r.kind.Kind + "List"))
	err := r.onboarding.Client().List(ctx, list, client.InNamespace(request.Namespace), client.MatchingFields{"metadata.name": request.Name})
	switch {
	case err != nil:
		return fmt.Errorf("cluster %q answers that it is not found: confirm that by a list: %w", r.onboarding.ID(), err)
	case len(list.Items) > 0:
		return fmt.Errorf("cluster %q answers that it is not found, and lists it: nothing is done for it until both agree", r.onboarding.ID())
	}
	return nil
}

// asked reports whether access to a cluster of an object is asked for, and whether it was granted to all of them. Access that was never granted,
// is being taken away or was abandoned by the platform does not count: CreateOrUpdate was not called with it, or Delete can't be.
func (r *APIReconciler[T, C]) asked(ctx context.Context, request ctrl.Request) (asked, granted bool, err error) {
	ctx, cancel := r.limited(ctx)
	defer cancel()
	_, granted = r.last.of(request) // where no cluster is asked for this is all that is known
	all := true
	for _, a := range r.accesses {
		if a.fixed {
			continue
		}
		ar, err := a.request(ctx, request)
		switch {
		case apierrors.IsNotFound(err), err == nil && ar == nil:
			all = false
		case err != nil:
			return false, false, fmt.Errorf("read the access request for the %s cluster: %w", a.id, err)
		default:
			asked, granted = true, true
			all = all && ar.DeletionTimestamp == nil && (ar.Status.ClusterRef != nil || ar.Status.SecretRef != nil) && !clustersv1alpha1.IsAbandoned(ar)
		}
	}
	return asked, granted && all, nil
}

// cleanUpUnheld has the author's Delete done with the last known state of an object, or with its name alone if this process has not seen it.
func (r *APIReconciler[T, C]) cleanUpUnheld(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	obj := r.empty()
	if state, known := r.last.of(request); known {
		if err := json.Unmarshal(state, obj); err != nil {
			return ctrl.Result{}, fmt.Errorf("decode its last known state: %w", err)
		}
	}
	obj.GetObjectKind().SetGroupVersionKind(r.kind)
	obj.SetNamespace(request.Namespace)
	obj.SetName(request.Name)
	if obj.GetDeletionTimestamp() == nil {
		obj.SetDeletionTimestamp(new(metav1.Now()))
	}
	annotations := obj.GetAnnotations()
	delete(annotations, framework.PlanAnnotation) // nobody could take it off
	obj.SetAnnotations(annotations)

	limited, cancel := r.limited(ctx)
	defer cancel()
	config, _, err := r.configs.wanted(limited, true, "")
	if err != nil {
		return ctrl.Result{}, err
	}
	found, w, err := r.have(askingContext(limited, config, obj), request, nil, true)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("nothing holds it any more: %w", err)
	}
	if w != nil {
		log.FromContext(ctx).Info("the object has vanished, and its clean-up waits: "+w.message, "object", request.String())
		return ctrl.Result{RequeueAfter: w.noLaterThan(0).after}, nil
	}
	log.FromContext(ctx).Info("the object has vanished without its finalizers: it is cleaned up by its last known state", "object", request.String())
	o := &object[T]{request: request, raw: r.blank(request), obj: obj, gone: true}
	result, _, err := r.call(ctx, o, "Delete", func(ctx context.Context, obj T) (ctrl.Result, error) {
		return r.author.Delete(withContext(ctx, config, found), obj, config, found)
	})
	return result, err
}

// mayWithdraw returns an error if too many objects have vanished in a row: then the onboarding cluster may have lost them, or be the wrong one.
func (r *APIReconciler[T, C]) mayWithdraw(ctx context.Context, request ctrl.Request) error {
	limited, cancel := r.limited(ctx)
	defer cancel()
	config, _, err := r.configs.wanted(limited, true, "")
	if err != nil {
		return err
	}
	until, _ := time.Parse(time.RFC3339, config.GetAnnotations()[WithdrawUntilAnnotation])
	waiting, ok := r.brake.admit(request, until)
	if ok {
		return nil
	}
	return fmt.Errorf("%w: cluster %q has lost more than %d objects without their finalizers, and access is kept for %d of them: check that it is the right cluster and that they are "+
		"to go, then set the annotation %s on the %s of cluster %q to a time until which to go on, such as %s",
		ErrWithdrawalsStopped, r.onboarding.ID(), withdrawalsInRow, waiting, WithdrawUntilAnnotation, r.configs.name(), r.platform.ID(),
		r.brake.clock.Now().Add(rowLasts).UTC().Format(time.RFC3339))
}

// brake bounds how many vanished objects lose their access in a row.
type brake struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// begun are the objects of the present row, by when their clean-up began. waiting are those beyond its end.
	begun   map[types.NamespacedName]time.Time
	waiting map[types.NamespacedName]bool
}

// admit reports whether the clean-up of a vanished object may begin or go on, and how many wait. Up to a time all may.
func (b *brake) admit(request ctrl.Request, until time.Time) (waiting int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, key := b.clock.Now(), request.NamespacedName
	if now.Before(until) {
		delete(b.waiting, key)
		return len(b.waiting), true
	}
	if _, begun := b.begun[key]; begun {
		return len(b.waiting), true
	}
	if len(b.waiting) == 0 {
		for name, at := range b.begun {
			if now.Sub(at) > rowLasts {
				delete(b.begun, name)
			}
		}
	}
	if len(b.begun) >= withdrawalsInRow {
		if b.waiting == nil {
			b.waiting = map[types.NamespacedName]bool{}
		}
		b.waiting[key] = true
		return len(b.waiting), false
	}
	if b.begun == nil {
		b.begun = map[types.NamespacedName]time.Time{}
	}
	b.begun[key] = now
	return len(b.waiting), true
}

// release ends the waiting of an object that is there again, or that nothing is asked for.
func (b *brake) release(request ctrl.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiting, request.NamespacedName)
}
