package serviceprovider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
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

// lastStates are the last known states of the objects that CreateOrUpdate was called for and Delete has not succeeded for.
type lastStates struct{ byName sync.Map }

// keep remembers a copy of a state.
func (s *lastStates) keep(request ctrl.Request, obj client.Object) {
	kept := copyOf(obj)
	kept.SetManagedFields(nil)
	s.byName.Store(request, kept)
}

// of returns a state, which must not be changed.
func (s *lastStates) of(request ctrl.Request) (state any, known bool) { return s.byName.Load(request) }

func (s *lastStates) forget(request ctrl.Request) { s.byName.Delete(request) }

// orphaned cleans up after an object that is gone although access may be granted for it still: somebody has removed its finalizers. A single 404
// does not prove that it is gone.
func (r *APIReconciler[T, C]) orphaned(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	limited, cancel := r.limited(ctx)
	defer cancel()
	if err := r.confirmGone(limited, request); err != nil {
		return ctrl.Result{}, err
	}
	asked, _, err := r.granted(limited, request)
	if err == nil && asked {
		err = r.mayWithdraw(limited, request)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	result, err := r.withdrawVanished(ctx, request)
	if err == nil && !waits(result) {
		r.brake.release(request)
	}
	return result, err
}

// withdrawVanished calls Delete for an object that nothing holds any more, if it has access to its clusters, with its last known state, or with
// its name alone if this process has not seen it. Then it takes the access away.
func (r *APIReconciler[T, C]) withdrawVanished(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	limited, cancel := r.limited(ctx)
	defer cancel()
	_, granted, err := r.granted(limited, request)
	if err != nil {
		return ctrl.Result{}, err
	}
	o := r.vanished(request)
	if granted {
		log.FromContext(ctx).Info("the object has vanished without its finalizers: it is cleaned up by its last known state", "object", request.String())
		result, err := r.cleanUp(ctx, o, nil)
		var w *wait
		if errors.As(err, &w) {
			log.FromContext(ctx).Info("the clean-up of the object waits: "+w.message, "object", request.String())
			return ctrl.Result{RequeueAfter: w.after}, nil
		}
		if err != nil || waits(result) {
			return result, err
		}
	}
	r.last.forget(request)
	return r.withdraw(ctx, o)
}

// vanished returns an object that is gone, as it was last seen, to be deleted.
func (r *APIReconciler[T, C]) vanished(request ctrl.Request) *object[T] {
	o := &object[T]{request: request, raw: r.blank(request), obj: r.empty(), gone: true}
	if state, known := r.last.of(request); known {
		o.obj = copyOf(state.(T))
	}
	o.obj.GetObjectKind().SetGroupVersionKind(r.kind)
	o.obj.SetNamespace(request.Namespace)
	o.obj.SetName(request.Name)
	if o.obj.GetDeletionTimestamp() == nil {
		o.obj.SetDeletionTimestamp(new(metav1.Now()))
	}
	delete(o.obj.GetAnnotations(), framework.PlanAnnotation) // nobody could take it off
	return o
}

// confirmGone lists an object that was answered 404, and returns an error if it is there.
func (r *APIReconciler[T, C]) confirmGone(ctx context.Context, request ctrl.Request) error {
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

// granted reports whether access to a cluster of an object is asked for, and whether it was granted to all of them. Access that was never granted,
// is being taken away or was abandoned by the platform does not count: CreateOrUpdate was not called with it, or Delete can't be.
func (r *APIReconciler[T, C]) granted(ctx context.Context, request ctrl.Request) (asked, granted bool, err error) {
	all, err := r.asked(ctx, request)
	_, granted = r.last.of(request) // where no cluster is asked for this is all that is known
	for _, a := range all {
		asked = asked || a.asked != nil
	}
	granted = granted || asked
	for _, a := range all {
		there := a.asked != nil && a.asked.DeletionTimestamp == nil && !nothingMade(a.asked) && !clustersv1alpha1.IsAbandoned(a.asked)
		granted = granted && (a.fixed || there)
	}
	return asked, granted, err
}

// mayWithdraw returns an error if too many objects have vanished in a row: then the onboarding cluster may have lost them, or be the wrong one.
func (r *APIReconciler[T, C]) mayWithdraw(ctx context.Context, request ctrl.Request) error {
	config, err := r.configs.wanted(ctx, true, "")
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
	waiting sets.Set[types.NamespacedName]
}

// admit reports whether the clean-up of a vanished object may begin or go on, and how many wait. Up to a time all may.
func (b *brake) admit(request ctrl.Request, until time.Time) (waiting int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, key := b.clock.Now(), request.NamespacedName
	if now.Before(until) {
		b.waiting.Delete(key)
		return len(b.waiting), true
	}
	if _, begun := b.begun[key]; begun {
		return len(b.waiting), true
	}
	if len(b.waiting) == 0 {
		maps.DeleteFunc(b.begun, func(_ types.NamespacedName, at time.Time) bool { return now.Sub(at) > rowLasts })
	}
	if len(b.begun) >= withdrawalsInRow {
		b.waiting.Insert(key)
		return len(b.waiting), false
	}
	b.begun[key] = now
	return len(b.waiting), true
}

// release ends the waiting of an object that is there again, or that nothing is asked for.
func (b *brake) release(request ctrl.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting.Delete(request.NamespacedName)
}
