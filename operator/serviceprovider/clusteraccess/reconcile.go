package clusteraccess

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/internal/redact"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// Reconcile asks for all clusters of an object, and takes away what is not asked for any more. It is called in every
// reconciliation of the object. The result is zero when all is granted; otherwise it says when to call again. Errors are those of
// single clusters, joined; the others have been asked for nevertheless.
func (c *Clusters[D]) Reconcile(ctx context.Context, request reconcile.Request, data D) (reconcile.Result, error) {
	from, err := c.served.read(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	var after time.Duration
	var errs []error
	var wanted []string
	for _, a := range c.accesses {
		if a.Fixed != nil {
			continue
		}
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
		wait, err := c.ask(ctx, from, request, a.ID, ask)
		if err != nil {
			errs = append(errs, redact.Wrap(err, "ask for the %s cluster of %s", a.ID, request))
		}
		after = sooner(after, wait)
	}
	leaving, err := c.withdraw(ctx, c.reader, from, request, wanted)
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
func (c *Clusters[D]) ask(ctx context.Context, from origin, request reconcile.Request, id string, ask *Ask) (time.Duration, error) {
	own := ""
	if ask.Cluster != nil {
		var err error
		if own, err = c.askForCluster(ctx, from, request, id, ask); err != nil {
			return 0, err
		}
	}
	desired := &v1alpha1.AccessRequest{ObjectMeta: c.config.labelled(request, id, from, ask), Spec: ask.spec(own)}
	ar, err := c.accessRequest(ctx, request, id, adopts)
	switch {
	case apierrors.IsNotFound(err):
		return c.config.RetryPending, c.create(ctx, from, desired, &v1alpha1.AccessRequest{})
	case err != nil:
		return 0, err
	case ar.DeletionTimestamp != nil: // it is asked for again when this one is gone
		return c.config.RetryPending, nil
	}
	asks := !equality.Semantic.DeepEqual(ar.Spec, desired.Spec)
	changed := ar.DeepCopy()
	changed.Spec = desired.Spec
	if err := c.update(ctx, ar, changed, desired, asks); err != nil {
		return c.config.RetryPending, err
	}
	if asks || ar.Status.ObservedGeneration != ar.Generation {
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

// askForCluster makes the ClusterRequest, and returns its name.
func (c *Clusters[D]) askForCluster(ctx context.Context, from origin, request reconcile.Request, id string, ask *Ask) (string, error) {
	desired := &v1alpha1.ClusterRequest{ObjectMeta: c.config.labelled(request, id, from, ask), Spec: *ask.Cluster}
	cr, err := c.clusterRequest(ctx, request, id, adopts)
	switch {
	case apierrors.IsNotFound(err):
		return desired.Name, c.create(ctx, from, desired, &v1alpha1.ClusterRequest{})
	case err != nil:
		return "", err
	case !equality.Semantic.DeepEqual(cr.Spec, desired.Spec):
		return "", fmt.Errorf("ClusterRequest %s/%s asks for another cluster: an object keeps its clusters; to move it, delete the object, or ask under another id", cr.Namespace, cr.Name)
	}
	return cr.Name, c.update(ctx, cr, cr.DeepCopy(), desired, false)
}

// create makes a request. One that is there already, although it was not seen, is ours, or it is refused; it is read into there.
func (c *Clusters[D]) create(ctx context.Context, from origin, desired, there client.Object) error {
	err := c.client.Create(ctx, desired)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := c.client.Get(ctx, client.ObjectKeyFromObject(desired), there); err != nil {
		return client.IgnoreNotFound(err)
	}
	if c.config.selects(OwnerLabel).Matches(labels.Set(there.GetLabels())) && from.adopts(there) {
		return nil
	}
	return framework.Permanent(fmt.Errorf("%s is there already, of %s, and not of %s: delete it",
		client.ObjectKeyFromObject(there), cmp.Or(there.GetAnnotations()[OwnerAnnotation], "nobody who is known"), c.config.marks()[0]))
}

// update makes a request what was changed of it, if anything was, with the present mark and labels: one with a former mark is taken over as
// it is.
func (c *Clusters[D]) update(ctx context.Context, before, changed, desired client.Object, asks bool) error {
	taken := before.GetLabels()[OwnerLabel] != desired.GetLabels()[OwnerLabel]
	labelled := labels.SelectorFromSet(desired.GetLabels()).Matches(labels.Set(before.GetLabels()))
	if !taken && !asks && labelled && originOf(desired).isNamedBy(before) {
		return nil
	}
	changed.SetLabels(labels.Merge(before.GetLabels(), desired.GetLabels()))
	changed.SetAnnotations(labels.Merge(before.GetAnnotations(), desired.GetAnnotations())) // which somebody may have taken off
	err := c.client.Patch(ctx, changed, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) { // what is known is old
		return nil
	}
	if err == nil && taken {
		c.config.Logger.LogCtx(ctx, "level", "info", "message", "took over what was asked for", "request", client.ObjectKeyFromObject(before).String(),
			"from", before.GetAnnotations()[OwnerAnnotation])
	}
	return err
}

// ReconcileDelete takes away all that was asked for an object, under whatever id. It is called in its deletion until the result
// is zero: then nothing is left.
func (c *Clusters[D]) ReconcileDelete(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	from, err := c.served.confirm(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	// The API server is asked, because something may have been made a moment ago.
	leaving, err := c.withdraw(ctx, c.client, from, request, nil)
	if err == nil {
		err = c.unlabelled(ctx, from, request)
	}
	if err != nil || leaving {
		return reconcile.Result{RequeueAfter: c.config.RetryPending}, err
	}
	for _, f := range c.fixed {
		f.release(request)
	}
	return reconcile.Result{}, nil
}

// unlabelled returns an error that names the requests of an object that is to go, which have lost the labels that say whose they are: they hold
// up those for clusters, and what is granted for them would stay.
func (c *Clusters[D]) unlabelled(ctx context.Context, from origin, request reconcile.Request) error {
	errs := []error{}
	for _, a := range c.accesses {
		if a.Fixed != nil {
			continue
		}
		// What was asked for before the origin was known has another name.
		for _, named := range slices.Compact([]origin{{}, {kind: from.kind}, from}) {
			meta := c.config.meta(request, a.ID, named)
			errs = append(errs, c.labelsLost(ctx, request, from, meta, &v1alpha1.AccessRequest{}), c.labelsLost(ctx, request, from, meta, &v1alpha1.ClusterRequest{}))
		}
	}
	return errors.Join(errs...)
}

// labelsLost returns an error if there is a request of that name without the label that says whose it is, and its annotations say that it was
// made for this object. One that says nothing is somebody else's, and is left alone.
func (c *Clusters[D]) labelsLost(ctx context.Context, request reconcile.Request, from origin, meta metav1.ObjectMeta, there client.Object) error {
	kind, key := reflect.TypeOf(there).Elem().Name(), client.ObjectKey{Namespace: meta.Namespace, Name: meta.Name}
	err := c.client.Get(ctx, key, there)
	switch {
	case err == nil && there.GetLabels()[OwnerLabel] == "" && c.names(request, there) && c.serves(from, request, there):
		return fmt.Errorf("%s %s has the name of one for %s and not its labels: delete it, or label it with %s",
			kind, key, request, labels.FormatLabels(meta.Labels))
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("look for the %s %s: %w", kind, key, err)
	}
	return nil
}

// names reports whether the annotations of a request say that this provider made it for an object.
func (c *Clusters[D]) names(request reconcile.Request, there client.Object) bool {
	owner := there.GetAnnotations()[OwnerAnnotation]
	return there.GetAnnotations()[ObjectAnnotation] == request.String() &&
		slices.ContainsFunc(c.config.marks(), func(m identity.Mark) bool { return m.String() == owner })
}

// withdraw takes away what was asked for under other ids than those wanted, as a reader finds it, and tells whether something of it is left.
func (c *Clusters[D]) withdraw(ctx context.Context, reader client.Reader, from origin, request reconcile.Request, wanted []string) (leaving bool, err error) {
	ours := c.asked(request)
	access, clusterRequests := &v1alpha1.AccessRequestList{}, &v1alpha1.ClusterRequestList{}
	if err := errors.Join(reader.List(ctx, access, ours...), reader.List(ctx, clusterRequests, ours...)); err != nil {
		return false, fmt.Errorf("list what was asked for %s: %w", request, err)
	}
	c.mu.Lock()
	for _, a := range c.accesses {
		if !slices.Contains(wanted, a.ID) {
			c.release(use{request, a.ID})
		}
	}
	c.mu.Unlock()
	// Access goes first: a cluster that somebody else may get must not be reached any more.
	busy := map[string]bool{}
	var errs []error
	for _, list := range []client.ObjectList{access, clusterRequests} {
		reached := maps.Clone(busy)
		err := meta.EachListItem(list, func(item runtime.Object) error {
			asked := item.(client.Object)
			if id := asked.GetLabels()[AccessLabel]; !slices.Contains(wanted, id) && c.serves(from, request, asked) && !reached[id] {
				busy[id] = true
				errs = append(errs, c.delete(ctx, asked))
			}
			return nil
		})
		errs = append(errs, err)
	}
	return len(busy) > 0, errors.Join(errs...)
}

// delete deletes an object as it was seen, once.
func (c *Clusters[D]) delete(ctx context.Context, obj client.Object) error {
	if obj.GetDeletionTimestamp() != nil {
		return nil
	}
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	err := c.client.Delete(ctx, obj, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // it is looked at again next time
		return nil
	}
	return fmt.Errorf("delete %s %s: %w", reflect.TypeOf(obj).Elem().Name(), client.ObjectKeyFromObject(obj), err)
}
