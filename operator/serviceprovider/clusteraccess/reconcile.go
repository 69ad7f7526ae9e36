package clusteraccess

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// Reconcile asks for all clusters of an object, and takes away what is not asked for any more. It is called in every
// reconciliation of the object. The result is zero when all is granted; otherwise it says when to call again. Errors are those of
// single clusters, joined; the others have been asked for nevertheless.
func (c *Clusters[D]) Reconcile(ctx context.Context, request reconcile.Request, data D) (reconcile.Result, error) {
	var after time.Duration
	var errs []error
	var wanted []string
	for _, a := range c.accesses {
		ask, err := a.Ask(request, data)
		if err == nil && ask == nil {
			continue
		}
		wanted = append(wanted, a.ID)
		if err == nil {
			err = ask.validate()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("the %s cluster of %s: %w", a.ID, request, err))
			continue
		}
		wait, err := c.ask(ctx, request, a.ID, ask)
		if err != nil {
			errs = append(errs, fmt.Errorf("ask for the %s cluster of %s: %w", a.ID, request, err))
		}
		after = sooner(after, wait)
	}
	leaving, err := c.withdraw(ctx, request, wanted)
	if err != nil {
		errs = append(errs, err)
	}
	if leaving {
		after = sooner(after, c.config.RetryPending)
	}
	return reconcile.Result{RequeueAfter: after}, errors.Join(errs...)
}

// sooner returns the shorter of two pauses, of which zero is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// ask makes the requests for one cluster as they should be. It returns how long to wait for them, zero when they are granted.
func (c *Clusters[D]) ask(ctx context.Context, request reconcile.Request, id string, ask *Ask) (time.Duration, error) {
	if ask.Cluster != nil {
		if err := c.askForCluster(ctx, request, id, ask.Cluster); err != nil {
			return 0, err
		}
	}
	desired := &v1alpha1.AccessRequest{ObjectMeta: c.config.meta(request, id)}
	desired.Spec = ask.spec(desired.Name)
	ar := &v1alpha1.AccessRequest{}
	err := c.reader.Get(ctx, client.ObjectKeyFromObject(desired), ar)
	switch {
	case apierrors.IsNotFound(err):
		return c.config.RetryPending, client.IgnoreAlreadyExists(c.client.Create(ctx, desired))
	case err != nil:
		return 0, err
	case ar.DeletionTimestamp != nil: // it is asked for again when this one is gone
		return c.config.RetryPending, nil
	case !equality.Semantic.DeepEqual(ar.Spec, desired.Spec):
		changed := ar.DeepCopy()
		changed.Spec = desired.Spec
		err := c.client.Patch(ctx, changed, client.MergeFromWithOptions(ar, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) { // what is known is old
			err = nil
		}
		return c.config.RetryPending, err
	case ar.Status.ObservedGeneration != ar.Generation:
		return c.config.RetryPending, nil
	}
	switch ar.Status.Phase {
	case v1alpha1.PhaseGranted:
		return 0, nil
	case v1alpha1.PhaseDenied:
		return c.config.RetryDenied, nil
	}
	return c.config.RetryPending, nil
}

// askForCluster makes the ClusterRequest.
func (c *Clusters[D]) askForCluster(ctx context.Context, request reconcile.Request, id string, spec *v1alpha1.ClusterRequestSpec) error {
	desired := &v1alpha1.ClusterRequest{ObjectMeta: c.config.meta(request, id), Spec: *spec}
	cr := &v1alpha1.ClusterRequest{}
	err := c.reader.Get(ctx, client.ObjectKeyFromObject(desired), cr)
	switch {
	case apierrors.IsNotFound(err):
		return client.IgnoreAlreadyExists(c.client.Create(ctx, desired))
	case err != nil:
		return err
	case !equality.Semantic.DeepEqual(cr.Spec, desired.Spec):
		return fmt.Errorf("ClusterRequest %s/%s asks for another cluster: an object keeps its clusters; to move it, delete the object, or ask under another id", cr.Namespace, cr.Name)
	}
	return nil
}

// ReconcileDelete takes away all that was asked for an object, under whatever id. It is called in its deletion until the result
// is zero: then nothing is left.
func (c *Clusters[D]) ReconcileDelete(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	// The API server is asked, because something may have been made a moment ago.
	leaving, err := c.withdrawFrom(ctx, c.client, request, nil)
	if err != nil || leaving {
		return reconcile.Result{RequeueAfter: c.config.RetryPending}, err
	}
	return reconcile.Result{}, nil
}

// withdraw takes away what was asked for under other ids than those wanted, and tells whether something of it is left.
func (c *Clusters[D]) withdraw(ctx context.Context, request reconcile.Request, wanted []string) (leaving bool, err error) {
	return c.withdrawFrom(ctx, c.reader, request, wanted)
}

func (c *Clusters[D]) withdrawFrom(ctx context.Context, reader client.Reader, request reconcile.Request, wanted []string) (leaving bool, err error) {
	ours := []client.ListOption{
		client.InNamespace(c.config.Namespace), client.MatchingLabels{ProviderLabel: c.config.Provider, ObjectLabel: objectHash(request)},
	}
	access, clusterRequests := &v1alpha1.AccessRequestList{}, &v1alpha1.ClusterRequestList{}
	if err := errors.Join(reader.List(ctx, access, ours...), reader.List(ctx, clusterRequests, ours...)); err != nil {
		return false, fmt.Errorf("list what was asked for %s: %w", request, err)
	}
	// Access goes first: a cluster that somebody else may get must not be reached any more.
	busy := map[string]bool{}
	var errs []error
	for i := range access.Items {
		ar := &access.Items[i]
		if id := ar.Labels[AccessLabel]; !slices.Contains(wanted, id) {
			busy[id] = true
			errs = append(errs, c.delete(ctx, ar))
			c.release(request, client.ObjectKeyFromObject(ar))
		}
	}
	for i := range clusterRequests.Items {
		cr := &clusterRequests.Items[i]
		if id := cr.Labels[AccessLabel]; !slices.Contains(wanted, id) && !busy[id] {
			busy[id] = true
			errs = append(errs, c.delete(ctx, cr))
		}
	}
	return len(busy) > 0, errors.Join(errs...)
}

// delete deletes an object as it was seen, once.
func (c *Clusters[D]) delete(ctx context.Context, obj client.Object) error {
	if obj.GetDeletionTimestamp() != nil {
		return nil
	}
	uid := obj.GetUID()
	err := c.client.Delete(ctx, obj, client.Preconditions{UID: &uid})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // another one of this name is looked at next time
		return nil
	}
	return err
}

func phaseOf(ar *v1alpha1.AccessRequest) v1alpha1.Phase {
	if ar.Status.Phase == "" {
		return v1alpha1.PhasePending
	}
	return ar.Status.Phase
}

func messageOf(ar *v1alpha1.AccessRequest) string {
	if c := apimeta.FindStatusCondition(ar.Status.Conditions, v1alpha1.ConditionGranted); c != nil && c.Message != "" {
		return c.Message
	}
	return "it says no more"
}
