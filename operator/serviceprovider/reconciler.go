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
	"github.com/operatorkit/operatorkit/operator/serviceprovider/internal/redact"
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
	// recorder writes events, nil for none.
	recorder framework.EventRecorder
	changes  *pacer
	last     *lastStates
	brake    *brake
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
	limited, cancel := r.limited(ctx)
	defer cancel()
	o, err := r.fetch(limited, req)
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
	if serves, err := r.serves(limited, o.raw); err != nil || !serves {
		return ctrl.Result{}, err
	}
	way := r.update
	if o.raw.GetDeletionTimestamp() != nil {
		way = r.delete
	}
	var result ctrl.Result
	err = panics.Recovered(func() (err error) {
		if err = r.dropOperation(limited, o); err == nil {
			result, err = way(ctx, o)
		}
		return err
	})
	if o.gone {
		return result, err
	}
	if hasAny(o.raw, r.finalizers.work) {
		r.last.keep(req, o.obj)
	}
	if errors.Is(err, errChanged) {
		return ctrl.Result{RequeueAfter: conflictPause}, nil
	}
	var w *wait
	if errors.As(err, &w) {
		result, err = r.tellWait(ctx, o, w), nil
	} else if err != nil {
		r.tellFailure(ctx, o, err)
	}
	written, statusErr := r.writeStatus(ctx, o)
	if err == nil && statusErr == nil && !written {
		return ctrl.Result{RequeueAfter: conflictPause}, nil
	}
	return result, errors.Join(err, statusErr)
}

// update is the way of an object that is to stay.
func (r *APIReconciler[T, C]) update(ctx context.Context, o *object[T]) (ctrl.Result, error) {
	config, err := r.prepare(ctx, o)
	if err != nil {
		return ctrl.Result{}, err
	}
	poll := config.PollInterval()
	result, err := r.call(ctx, o, config, "CreateOrUpdate", r.author.CreateOrUpdate)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case o.told:
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

// prepare has an object held that is to stay, and finds its config and its clusters.
func (r *APIReconciler[T, C]) prepare(ctx context.Context, o *object[T]) (config C, err error) {
	ctx, cancel := r.limited(ctx)
	defer cancel()
	if _, known := r.last.of(o.request); known { // it is worked for, and may have lost its finalizers
		if err := r.ensureFinalizers(ctx, o, r.finalizers.access, r.finalizers.work); err != nil {
			return config, err
		}
	}
	if config, err = r.configs.wanted(ctx, false, r.configs.kind.Kind); err != nil {
		return config, err
	}
	if err := r.ensureFinalizers(ctx, o, r.finalizers.access); err != nil {
		return config, err
	}
	if err := r.acquire(askingContext(ctx, config, o.obj), o, nil); err != nil {
		return config, err
	}
	// Without access there is no work, and nothing that a deletion would have to undo.
	return config, r.ensureFinalizers(ctx, o, r.finalizers.work)
}

// call calls the author, for no longer than the timeout, and notes whether that has said something in the condition Ready.
func (r *APIReconciler[T, C]) call(ctx context.Context, o *object[T], config C, name string,
	do func(ctx context.Context, obj T, config C, clusters ClusterContext) (ctrl.Result, error),
) (result ctrl.Result, err error) {
	ctx, cancel := r.limited(withContext(ctx, config, o.clusters))
	defer cancel()
	restore, version := markReady(o.obj), o.obj.GetResourceVersion()
	given, err := statusmap.Of(o.obj)
	if err != nil {
		return result, err
	}
	err = panics.Recovered(func() (err error) {
		result, err = do(ctx, o.obj, config, o.clusters)
		return err
	})
	o.told = restore()
	if o.obj.GetResourceVersion() != version { // the author has written the status, with the mark in it
		err = errors.Join(err, r.rewritten(ctx, o, given))
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, secretscontext.ScrubError(ctx, err))
	}
	return result, err
}

func (r *APIReconciler[T, C]) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, r.timeout, fmt.Errorf("it took longer than %s", r.timeout))
}

// tellFailure says in an event and in the status that there was an error, as far as users are told of it. What the author has said is better,
// unless that is that the object is ready.
func (r *APIReconciler[T, C]) tellFailure(ctx context.Context, o *object[T], err error) {
	message := redact.Text(err)
	r.warn(ctx, o, ReasonReconcileFailed, "%s", message)
	if o.told && !isReady(o.obj) {
		return
	}
	if c := unreachable(err, r.reached(o.clusters)); c != nil {
		o.says(ReasonClusterUnreachable, fmt.Sprintf("waits for the cluster %q to answer: %s", c.ID(), message))
		return
	}
	o.says(ReasonReconcileFailed, message)
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
