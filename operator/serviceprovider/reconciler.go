package serviceprovider

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/panics"
	"github.com/operatorkit/operatorkit/internal/statusmap"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/internal/discreet"
)

// conflictPause is when an object is looked at again that somebody else has changed at the same moment.
const conflictPause = 100 * time.Millisecond

// APIReconciler reconciles the objects of one API. An APIReconcilerBuilder makes it. All methods are safe for concurrent use.
type APIReconciler[T API, C Config] struct {
	onboarding, platform *clusters.Cluster
	access               ClusterAccessProvider
	accesses             []access
	author               Reconciler[T, C]
	empty                func() T
	kind                 schema.GroupVersionKind
	identity             identity.Identity
	finalizers           finalizers
	// objects takes finalizers off. It does not run.
	objects            *informer.Kubernetes
	configs            *configs[C]
	namespaces         []string
	namespacePredicate func(namespace *metav1.PartialObjectMetadata) bool
	secretNamespace    string
	configMapNamespace string
	workers            int
	timeout            time.Duration
	recorder           *recorder
	changes            *spread
	last               *lastStates
	brake              *brake
}

// Reconcile brings one object up to date, in the steps that the package documentation lists, and writes its status. It is what
// the controller calls; callers of their own never call it twice at once for one object.
func (r *APIReconciler[T, C]) Reconcile(ctx context.Context, req ctrl.Request) (_ ctrl.Result, reconcileErr error) {
	ctx = secretscontext.NewContext(ctx)
	var result ctrl.Result
	err := panics.Recovered(func() (err error) {
		result, err = r.reconcile(ctx, req)
		return err
	})
	if err == nil {
		return result, nil
	}
	err = fmt.Errorf("reconcile %s %s: %w", r.kind.Kind, req, err)
	var panicked *panics.Error
	if errors.As(err, &panicked) {
		log.FromContext(ctx).Error(err, "the provider panicked", "stack", string(panicked.Stack))
	}
	if framework.IsPermanent(err) {
		err = reconcile.TerminalError(err)
	}
	return ctrl.Result{}, err
}

func (r *APIReconciler[T, C]) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if len(r.namespaces) > 0 && !slices.Contains(r.namespaces, req.Namespace) {
		return ctrl.Result{}, nil // its access has changed, which is watched for all namespaces
	}
	o, err := r.fetch(ctx, req)
	if apierrors.IsNotFound(err) {
		return r.orphaned(ctx, req)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	r.brake.release(req)
	if r.leftAlone(o) {
		return ctrl.Result{}, nil
	}
	if serves, err := r.serves(ctx, o.raw); err != nil || !serves {
		return ctrl.Result{}, err
	}
	if err := r.dropOperation(ctx, o); err != nil {
		return changedMeanwhile(err)
	}
	way := r.update
	if o.raw.GetDeletionTimestamp() != nil {
		way = r.delete
	}
	var result ctrl.Result
	if panicked := panics.Recovered(func() error { result, err = way(ctx, o); return nil }); panicked != nil {
		result, err = ctrl.Result{}, r.failed(o, panicked, ClusterContext{})
	}
	if o.gone && err == nil {
		return result, nil
	} else if o.gone {
		return ctrl.Result{}, err
	}
	if hasAny(o.raw, r.finalizers.work) {
		r.last.keep(req, o.obj)
	}
	if err != nil {
		if conflict, again := changedMeanwhile(err); again == nil {
			return conflict, nil
		}
		r.recorder.warn(ctx, o.obj, ReasonReconcileFailed, "%s", discreet.Text(err))
	}
	written, statusErr := r.writeStatus(ctx, o)
	if err == nil && statusErr == nil && !written {
		return ctrl.Result{RequeueAfter: conflictPause}, nil
	}
	return result, errors.Join(err, statusErr)
}

// changedMeanwhile is the result of a reconciliation that ends because the object is not what it was any more. Other errors are
// returned.
func changedMeanwhile(err error) (ctrl.Result, error) {
	if errors.Is(err, errChanged) {
		return ctrl.Result{RequeueAfter: conflictPause}, nil
	}
	return ctrl.Result{}, err
}

// update is the way of an object that is to stay.
func (r *APIReconciler[T, C]) update(ctx context.Context, o *object[T]) (ctrl.Result, error) {
	limited, cancel := r.limited(ctx)
	defer cancel()
	if _, known := r.last.of(o.request); known { // it is worked for, and may have lost its finalizers
		for _, finalizers := range [][]string{r.finalizers.access, r.finalizers.work} {
			if err := r.ensureFinalizer(ctx, o, finalizers); err != nil {
				return ctrl.Result{}, err
			}
		}
	}
	config, w, err := r.configs.wanted(limited, false, r.configs.kind.Kind)
	switch {
	case err != nil:
		return ctrl.Result{}, r.failed(o, err, ClusterContext{})
	case w != nil:
		return r.tellWait(ctx, o, w, StatusProgressing), nil
	}
	if err := r.ensureFinalizer(ctx, o, r.finalizers.access); err != nil {
		return ctrl.Result{}, err
	}
	found, w, err := r.acquire(askingContext(ctx, config, o.obj), o.request, nil)
	if err != nil {
		return ctrl.Result{}, r.failed(o, err, found)
	}
	if w != nil {
		return r.tellWait(ctx, o, w, StatusProgressing), nil
	}
	// Without access there is no work, and nothing that a deletion would have to undo.
	if err := r.ensureFinalizer(ctx, o, r.finalizers.work); err != nil {
		return ctrl.Result{}, err
	}
	poll := config.PollInterval()
	result, told, err := r.call(ctx, o, "CreateOrUpdate", func(ctx context.Context, obj T) (ctrl.Result, error) {
		return r.author.CreateOrUpdate(withContext(ctx, config, found), obj, config, found)
	})
	switch {
	case err != nil:
		return ctrl.Result{}, r.failedIn(o, err, found, told)
	case told:
	case waits(result):
		StatusProgressing(o.obj, "", "the provider is at work")
	default:
		StatusReady(o.obj)
	}
	if !waits(result) {
		result.RequeueAfter = poll
	}
	return result, nil
}

// call calls the author, for no longer than the timeout. It tells whether the author has said something in the condition Ready.
func (r *APIReconciler[T, C]) call(ctx context.Context, o *object[T], function string, do func(ctx context.Context, obj T) (ctrl.Result, error)) (result ctrl.Result, told bool, err error) {
	ctx, cancel := r.limited(ctx)
	defer cancel()
	restore, version := markReady(o.obj), o.obj.GetResourceVersion()
	given, err := statusmap.Of(o.obj)
	if err != nil {
		return result, false, err
	}
	err = panics.Recovered(func() (err error) {
		result, err = do(ctx, o.obj)
		return err
	})
	told = restore()
	if o.obj.GetResourceVersion() != version { // the author has written the status, with the mark in it
		err = errors.Join(err, r.rewritten(ctx, o, given))
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", function, secretscontext.ScrubError(ctx, err))
	}
	return result, told, err
}

func (r *APIReconciler[T, C]) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, r.timeout, fmt.Errorf("it took longer than %s", r.timeout))
}

// failedIn is failed for an error of the author, who may have told something better: unless that is that the object is ready.
func (r *APIReconciler[T, C]) failedIn(o *object[T], err error, found ClusterContext, told bool) error {
	if told && !isReady(o.obj) {
		return err
	}
	return r.failed(o, err, found)
}

// failed says in the status that there was an error, as far as users are told of it. It returns the error.
func (r *APIReconciler[T, C]) failed(o *object[T], err error, found ClusterContext) error {
	reason, message := ReasonReconcileFailed, discreet.Text(err)
	if c := unreachable(err, r.reached(found)); c != nil {
		reason, message = ReasonClusterUnreachable, fmt.Sprintf("waits for the cluster %q to answer: %s", c.ID(), discreet.Text(err))
	}
	if o.raw.GetDeletionTimestamp() != nil {
		StatusTerminatingWithReason(o.obj, reason, message)
	} else {
		StatusProgressing(o.obj, reason, message)
	}
	return err
}

// reached are the clusters that a reconciliation sends requests to.
func (r *APIReconciler[T, C]) reached(found ClusterContext) []*clusters.Cluster {
	all := []*clusters.Cluster{r.platform, r.onboarding, found.MCPCluster, found.WorkloadCluster}
	for _, a := range found.Additional {
		all = append(all, a.Cluster)
	}
	return all
}

// unreachable returns the cluster that did not answer a request, if that is the error.
func unreachable(err error, among []*clusters.Cluster) *clusters.Cluster {
	var failed *url.Error
	if !errors.As(err, &failed) {
		return nil
	}
	asked, parseErr := url.Parse(failed.URL)
	if parseErr != nil {
		return nil
	}
	for _, c := range among {
		if c != nil && c.IsAt(asked.Host) {
			return c
		}
	}
	return nil
}
