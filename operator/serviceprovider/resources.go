package serviceprovider

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

// The reasons of the condition Ready that Resources give.
const (
	// ReasonNoResourceSet: no resource set of the provider handles the object.
	ReasonNoResourceSet = "NoResourceSet"
	// ReasonCanceled: a resource has ended the reconciliation before the last one.
	ReasonCanceled = "Canceled"
	// ReasonPlanned: the object is only planned for, see framework.PlanAnnotation and framework.Config.PlanOnly. What the provider
	// would change in the clusters is told, and not changed.
	ReasonPlanned = "Planned"
	// ReasonHeld: a policy holds changes (framework.Policy).
	ReasonHeld = "Held"
	// ReasonDeletionWaits: a resource holds up the deletion.
	ReasonDeletionWaits = "DeletionWaits"
)

// resourcesPause is when an object is looked at again whose deletion a resource holds up, if that does not say.
const resourcesPause = 10 * time.Second

// Resources is a Reconciler that is made of resources: FromResources returns it. It is for one APIReconciler.
type Resources[T API, C Config] struct {
	router *framework.ResourceRouter
	// secrets and configMaps tell what the resources refer to; nil is nothing.
	secrets    func(ctx context.Context, secret *corev1.Secret, config C) bool
	configMaps func(ctx context.Context, configMap *corev1.ConfigMap, config C) bool
	// framework carries the resources out. It is set when the APIReconciler is built.
	framework atomic.Pointer[framework.Framework]
}

// FromResources makes a Reconciler of the resource sets of a router. Their resources get copies of the object, a T; in their
// contexts are the clusters (ClustersFrom), the config (ConfigFrom) and the object whose status is written (ObjectFrom).
//
//	r, err := serviceprovider.NewAPIReconcilerBuilder[*v1alpha1.Postgres, *v1alpha1.ProviderConfig]().
//		Reconciler(serviceprovider.FromResources[*v1alpha1.Postgres, *v1alpha1.ProviderConfig](router)). … .Build()
//	f, err := r.Framework(framework.Config{Logger: logger, Observer: page})
//	page.Watch(f)
//	err = mgr.Add(f)                            // runs its source, and compares shadows
//	p, err := f.Plan(ctx, key)                  // what would change, in all clusters of an object
//
// An object is ready when all its resources have run. It is Progressing while no resource set handles it, or when a resource
// cancels the reconciliation; a resource that knows better sets the condition Ready of ObjectFrom. Deletions are finished when no
// resource cancels them, keeps the finalizer or is forbidden to delete.
//
// In a deletion a cluster that was let go (LetGoAnnotation) is nil in ClustersFrom. A resource that finds its own so has nothing to do any
// more: it calls resourcecanceledcontext.SetCanceled, and the others clean up the clusters that are there. While one fails instead, the
// object stays.
func FromResources[T API, C Config](router *framework.ResourceRouter) *Resources[T, C] {
	return &Resources[T, C]{router: router}
}

// ReferTo has all objects reconciled when a Secret changes for which refers holds, see SecretWatcher. It returns the Resources.
func (r *Resources[T, C]) ReferTo(refers func(ctx context.Context, secret *corev1.Secret, config C) bool) *Resources[T, C] {
	r.secrets = refers
	return r
}

// ReferToConfigMaps is to ConfigMaps what ReferTo is to Secrets.
func (r *Resources[T, C]) ReferToConfigMaps(refers func(ctx context.Context, configMap *corev1.ConfigMap, config C) bool) *Resources[T, C] {
	r.configMaps = refers
	return r
}

// IsReferencedSecret implements SecretWatcher.
func (r *Resources[T, C]) IsReferencedSecret(ctx context.Context, secret *corev1.Secret, config C) bool {
	return r.secrets != nil && r.secrets(ctx, secret, config)
}

// IsReferencedConfigMap implements ConfigMapWatcher.
func (r *Resources[T, C]) IsReferencedConfigMap(ctx context.Context, configMap *corev1.ConfigMap, config C) bool {
	return r.configMaps != nil && r.configMaps(ctx, configMap, config)
}

// CreateOrUpdate implements Reconciler.
func (r *Resources[T, C]) CreateOrUpdate(ctx context.Context, obj T, _ C, _ ClusterContext) (ctrl.Result, error) {
	done, err := r.process(ctx, obj, StatusProgressing)
	return ctrl.Result{RequeueAfter: done.RequeueAfter}, err
}

// Delete implements Reconciler.
func (r *Resources[T, C]) Delete(ctx context.Context, obj T, _ C, _ ClusterContext) (ctrl.Result, error) {
	done, err := r.process(ctx, obj, StatusTerminatingWithReason)
	if err != nil || done.Outcome == framework.Succeeded {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: cmp.Or(done.RequeueAfter, resourcesPause)}, nil
}

// DeletePartially implements PartialDeleter: the resources of the clusters that are there clean up.
func (r *Resources[T, C]) DeletePartially(ctx context.Context, obj T, config C, clusters ClusterContext) (ctrl.Result, error) {
	return r.Delete(ctx, obj, config, clusters)
}

// process carries the resources out. What is not done is told, unless a resource has said why.
func (r *Resources[T, C]) process(ctx context.Context, obj T, tell func(obj API, reason, message string)) (framework.Reconciled, error) {
	f := r.framework.Load()
	if f == nil {
		return framework.Reconciled{}, fmt.Errorf("%w: Resources are called without an APIReconciler: give them to a builder", framework.ErrExecutionFailed)
	}
	done, err := f.ReconcileObject(context.WithValue(ctx, objectKey{}, obj), obj)
	if err == nil && obj.GetDeletionTimestamp() != nil && done.Outcome == framework.Ignored {
		err = fmt.Errorf("%w: the deletion can't be carried out: %s", framework.ErrNoResourceSet, done.Reason)
	}
	if reason, message := unfinished(done); err == nil && done.Outcome != framework.Succeeded && !saysWhy(obj) {
		tell(obj, reason, message)
	}
	return done, err
}

// saysWhy tells whether a resource has said something in the condition Ready since the reconciliation began.
func saysWhy(obj API) bool {
	c := meta.FindStatusCondition(*obj.GetConditions(), ServiceProviderConditionReady)
	return c != nil && c.ObservedGeneration != unsaid(obj)
}

// unfinished says why a reconciliation without an error has not done everything.
func unfinished(done framework.Reconciled) (reason, message string) {
	switch done.Outcome {
	case framework.Canceled:
		if done.Reason != "" {
			return ReasonHeld, done.Reason
		}
	case framework.Ignored:
		return ReasonNoResourceSet, done.Reason
	case framework.Planned:
		return ReasonPlanned, "the object is only planned for: nothing is changed in its clusters"
	case framework.Waiting:
		if done.Reason != "" {
			return ReasonHeld, done.Reason
		}
		return ReasonDeletionWaits, "a resource holds up the deletion"
	}
	return ReasonCanceled, "a resource has ended the reconciliation before the last one"
}

// Framework returns the framework that carries out the resources of a Reconciler that FromResources has made, for what only a
// framework can do: it plans what would change in the clusters of an object, compares shadow resource sets, and tells an observer
// such as the inspector what was done. Of the configuration Logger is required; ResourceRouter, InitCtx and Driven are set; Name is the kind of the objects by default, and Source one that watches them in the onboarding cluster. The framework is run
// beside the controller, which decides when an object is reconciled. Framework is called once, before SetupWithManager.
//
// A plan of an object whose access is not granted yet, or that has no config, fails and says so: what would come of it can't be
// known. Clusters are asked for nothing but what the resources read.
func (r *APIReconciler[T, C]) Framework(config framework.Config) (*framework.Framework, error) {
	resources, ok := r.author.(*Resources[T, C])
	if !ok {
		return nil, fmt.Errorf("%w: APIReconciler.Framework: the Reconciler is a %T, and not made by FromResources", framework.ErrInvalidConfig, r.author)
	}
	if config.Source == nil && config.Logger != nil {
		source, err := informer.NewKubernetes(informer.KubernetesConfig{
			Client: r.onboarding.WithWatch(), Object: r.empty(), Namespaces: r.namespaces, Logger: config.Logger,
		})
		if err != nil {
			return nil, fmt.Errorf("make a source of %s: %w", r.kind.Kind, err)
		}
		config.Source = source
	}
	f, err := r.newFramework(resources, config)
	if err != nil {
		return nil, err
	}
	resources.framework.Store(f)
	return f, nil
}

func (r *APIReconciler[T, C]) newFramework(resources *Resources[T, C], config framework.Config) (*framework.Framework, error) {
	if config.Name == "" {
		config.Name = r.kind.GroupKind().String()
	}
	if config.Operator == "" {
		config.Operator, config.FormerOperators = r.identity.Operator, r.identity.FormerOperators
	}
	config.ResourceRouter, config.InitCtx, config.Driven = resources.router, r.planned, true
	return framework.New(config)
}
