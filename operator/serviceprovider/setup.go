package serviceprovider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/internal/claims"
	"github.com/operatorkit/operatorkit/operator/logging"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
)

// The pauses before an object that failed is tried again: the first, which doubles, and the longest. It recovers soon after what
// it failed for.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = time.Minute
)

// SetupWithManager adds a controller of that name to the manager, with the caches that it needs: the metadata of the objects, and
// the Secrets and ConfigMaps of the namespaces given to the builder. providerConfigUpdates is the channel of a ConfigReconciler;
// without one, which is nil, the controller watches the config itself.
func (r *APIReconciler[T, C]) SetupWithManager(mgr ctrl.Manager, name string, providerConfigUpdates chan event.GenericEvent) error {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry)
	c, err := controller.New(name, mgr, controller.Options{Reconciler: r, MaxConcurrentReconciles: r.workers, RateLimiter: limiter})
	if err != nil {
		return fmt.Errorf("set up %q: %w", name, err)
	}
	if err := r.watch(mgr, c, providerConfigUpdates); err != nil {
		return fmt.Errorf("set up %q: %w", name, err)
	}
	if r.recorder.isSet() {
		return nil
	}
	return mgr.Add(&recorderRunnable{name: r.identity.Operator + "/" + name, recorder: r.recorder, cluster: r.onboarding})
}

func (r *APIReconciler[T, C]) watch(mgr ctrl.Manager, c controller.Controller, updates chan event.GenericEvent) error {
	objects := &metav1.PartialObjectMetadata{}
	objects.SetGroupVersionKind(r.kind)
	onboarding, err := newCache(mgr, r.onboarding, cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(), DefaultNamespaces: allOf(r.namespaces), NewInformer: newDrainedInformer,
	})
	if err != nil {
		return err
	}
	list := func(ctx context.Context) ([]reconcile.Request, error) { return r.keys(ctx, onboarding) }
	sources := []source.Source{
		source.Kind[client.Object](onboarding, objects, &handler.EnqueueRequestForObject{}, ownChanges),
		source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			go r.changes.run(ctx, queue, list)
			return nil
		}),
	}
	if r.namespacePredicate != nil {
		sources = append(sources, source.Kind(onboarding, namespaceNamed(""), r.namespaceHandler(list)))
	}
	if notifier, ok := r.access.(AccessNotifier); ok {
		sources = append(sources, notifier.Changes())
	}
	if updates != nil {
		sources = append(sources, source.Channel(updates, handler.Funcs{
			GenericFunc: func(_ context.Context, e event.GenericEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
				r.configChanged(e.Object, false)
			},
		}))
	}
	platform, err := r.platformSources(mgr, updates == nil)
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range append(sources, platform...) {
		errs = append(errs, c.Watch(s))
	}
	return errors.Join(errs...)
}

// platformSources are what is watched on the platform cluster.
func (r *APIReconciler[T, C]) platformSources(mgr ctrl.Manager, config bool) ([]source.Source, error) {
	secrets, _ := r.author.(SecretWatcher[C])
	configMaps, _ := r.author.(ConfigMapWatcher[C])
	objects := map[client.Object]cache.ByObject{}
	if config {
		objects[r.configs.given] = onlyConfig(r.configs.given)
	}
	if secrets != nil && r.secretNamespace != "" {
		objects[&corev1.Secret{}] = cache.ByObject{Namespaces: allOf([]string{r.secretNamespace})}
	}
	if configMaps != nil && r.configMapNamespace != "" {
		objects[&corev1.ConfigMap{}] = cache.ByObject{Namespaces: allOf([]string{r.configMapNamespace})}
	}
	if len(objects) == 0 {
		return nil, nil
	}
	platform, err := newCache(mgr, r.platform, cache.Options{ByObject: objects})
	if err != nil {
		return nil, err
	}
	var sources []source.Source
	for o := range maps.Keys(objects) {
		switch o := o.(type) {
		case *corev1.Secret:
			sources = append(sources, source.Kind(platform, o, onChange(func(ctx context.Context, s *corev1.Secret) {
				r.referenced(ctx, func(ctx context.Context, config C) bool { return secrets.IsReferencedSecret(ctx, s, config) })
			})))
		case *corev1.ConfigMap:
			sources = append(sources, source.Kind(platform, o, onChange(func(ctx context.Context, m *corev1.ConfigMap) {
				r.referenced(ctx, func(ctx context.Context, config C) bool { return configMaps.IsReferencedConfigMap(ctx, m, config) })
			})))
		default:
			sources = append(sources, source.Kind[client.Object](platform, o, r.configHandler(), configChanges))
		}
	}
	return sources, nil
}

// newCache makes a cache for what one controller watches of a cluster, and nothing else, and adds it to the manager.
func newCache(mgr ctrl.Manager, of *clusters.Cluster, options cache.Options) (cache.Cache, error) {
	options.Scheme, options.Mapper = of.Scheme(), of.Client().RESTMapper()
	c, err := cache.New(of.RESTConfig(), options)
	if err != nil {
		return nil, fmt.Errorf("make a cache of cluster %q: %w", of.ID(), err)
	}
	return c, mgr.Add(c)
}

// allOf has a cache hold everything in these namespaces, and in all without any.
func allOf(namespaces []string) map[string]cache.Config {
	if len(namespaces) == 0 {
		return nil
	}
	configs := map[string]cache.Config{}
	for _, ns := range namespaces {
		configs[ns] = cache.Config{}
	}
	return configs
}

// onlyConfig restricts a cache to one object.
func onlyConfig(config client.Object) cache.ByObject {
	one := cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", config.GetName())}
	if ns := config.GetNamespace(); ns != "" {
		one.Namespaces = allOf([]string{ns})
	}
	return one
}

// keys lists all objects, from the cache: that succeeds while the API server does not answer.
func (r *APIReconciler[T, C]) keys(ctx context.Context, from client.Reader) ([]reconcile.Request, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(r.kind.GroupVersion().WithKind(r.kind.Kind + "List"))
	if err := from.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	keys := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		keys = append(keys, reconcile.Request{NamespacedName: keyOf(&list.Items[i])})
	}
	return keys, nil
}

// referenced has all objects reconciled if a change concerns them. The author is asked, with the newest config.
func (r *APIReconciler[T, C]) referenced(ctx context.Context, ask func(context.Context, C) bool) {
	config, _ := r.configs.newest()
	concerns := true
	if err := framework.Recovered(func() error { concerns = ask(ctx, config); return nil }); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "the provider panicked when it was asked whether it refers to an object; that counts as yes")
	}
	if concerns {
		r.changes.all()
	}
}

// configChanged has all objects reconciled after a change of the config.
func (r *APIReconciler[T, C]) configChanged(o client.Object, deleted bool) {
	config, ok := o.(C)
	if !ok || config.GetName() != r.configs.given.GetName() || config.GetNamespace() != r.configs.given.GetNamespace() {
		return
	}
	version := config.GetResourceVersion()
	if deleted || version == "" {
		version = absent
	} else {
		r.configs.keep(config)
	}
	if r.configs.concerns(version) {
		r.changes.all()
	}
}

func (r *APIReconciler[T, C]) configHandler() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ queue) { r.configChanged(e.Object, false) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ queue) { r.configChanged(e.ObjectNew, false) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) { r.configChanged(e.Object, true) },
	}
}

// onChange calls a function for all objects that come, change or go, except for those that are there at the start: before the
// first reconciliation these are known.
func onChange[O client.Object](changed func(context.Context, O)) handler.TypedEventHandler[O, reconcile.Request] {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.TypedFuncs[O, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[O], _ queue) {
			if !e.IsInInitialList {
				changed(ctx, e.Object)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[O], _ queue) {
			if e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() {
				changed(ctx, e.ObjectNew)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[O], _ queue) { changed(ctx, e.Object) },
	}
}

// configChanges are changes of a config that somebody has made, not those of its status.
var configChanges = predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{})

// ownChanges are changes of an object that its user has made. Those that the runtime makes, of finalizers, of the status, of the
// annotation that it drops, and of a claim, are not. That a claim is dropped is one.
var ownChanges = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	was, is := maps.Clone(e.ObjectOld.GetAnnotations()), maps.Clone(e.ObjectNew.GetAnnotations())
	if was[claims.Annotation] == "" {
		delete(is, claims.Annotation)
	}
	if _, still := is[OperationAnnotation]; !still && was[OperationAnnotation] == OperationReconcile {
		delete(was, OperationAnnotation)
	}
	return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
		!maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) || !maps.Equal(was, is)
}}

// recorderRunnable writes events to the cluster of the objects while the manager runs.
type recorderRunnable struct {
	name     string
	recorder *recorder
	cluster  *clusters.Cluster
}

// NeedLeaderElection has it started before the controllers.
func (*recorderRunnable) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (s *recorderRunnable) Start(ctx context.Context) error {
	logger, err := logging.New(logging.Config{Writer: io.Discard})
	if err != nil {
		return err
	}
	deps, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: s.name, RESTConfig: s.cluster.RESTConfig(), Scheme: s.cluster.Scheme(), Logger: logger,
	})
	if err != nil {
		return fmt.Errorf("make a recorder of events: %w", err)
	}
	defer deps.Close()
	s.recorder.set(deps.Recorder)
	<-ctx.Done()
	return nil
}
