package serviceprovider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/panics"
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

// SetupWithManager adds a controller of that name to the manager, with what it watches: the metadata of the objects, and the config, the
// Secrets and ConfigMaps of the namespaces given to the builder. providerConfigUpdates is the channel of a ConfigReconciler;
// without one, which is nil, the controller watches the config itself.
func (r *APIReconciler[T, C]) SetupWithManager(mgr ctrl.Manager, name string, providerConfigUpdates chan event.GenericEvent) error {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry)
	c, err := controller.New(name, mgr, controller.Options{Reconciler: r, MaxConcurrentReconciles: r.workers, RateLimiter: limiter})
	if err == nil {
		err = r.watch(mgr, c, providerConfigUpdates)
	}
	if err != nil {
		return fmt.Errorf("set up %q: %w", name, err)
	}
	if r.recorder != nil {
		return nil
	}
	deps, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: r.identity.Operator + "/" + name, RESTConfig: r.onboarding.RESTConfig(), Scheme: r.onboarding.Scheme(), Logger: logging.FromLogr(logr.Discard()),
	})
	if err != nil {
		return fmt.Errorf("set up %q: make a recorder of events: %w", name, err)
	}
	r.recorder = deps.Recorder
	return mgr.Add(always(func(ctx context.Context) error {
		defer deps.Close()
		<-ctx.Done()
		return nil
	}))
}

// queue are the objects that wait to be reconciled.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func (r *APIReconciler[T, C]) watch(mgr ctrl.Manager, c controller.Controller, updates chan event.GenericEvent) error {
	var errs []error
	watch := func(in *clusters.Cluster, config informer.KubernetesConfig, changed func(context.Context, informer.Event, queue)) *informer.Kubernetes {
		objects, err := watch(mgr, c, in, config, changed)
		errs = append(errs, err)
		return objects
	}
	objects := watch(r.onboarding, informer.KubernetesConfig{Object: r.empty(), MetadataOnly: true, Namespaces: r.namespaces}, enqueue)
	if r.namespacePredicate != nil {
		watch(r.onboarding, informer.KubernetesConfig{Object: namespaceNamed("")}, r.namespaceChanged(objects))
	}
	if updates == nil {
		watch(r.platform, only(r.configs.given), func(_ context.Context, e informer.Event, _ queue) {
			if edited(e) {
				r.configChanged(e.Object.(client.Object), e.Type == informer.Deleted)
			}
		})
	}
	if secrets, ok := r.author.(SecretWatcher[C]); ok && r.secretNamespace != "" {
		watch(r.platform, informer.KubernetesConfig{Object: &corev1.Secret{}, Namespaces: []string{r.secretNamespace}}, referenced(r, secrets.IsReferencedSecret))
	}
	if configMaps, ok := r.author.(ConfigMapWatcher[C]); ok && r.configMapNamespace != "" {
		watch(r.platform, informer.KubernetesConfig{Object: &corev1.ConfigMap{}, Namespaces: []string{r.configMapNamespace}}, referenced(r, configMaps.IsReferencedConfigMap))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	r.changes.keys = objects.Keys
	sources := []source.Source{source.Func(func(ctx context.Context, queue queue) error {
		go r.changes.run(ctx, queue)
		return nil
	})}
	if notifier, ok := r.access.(AccessNotifier); ok {
		sources = append(sources, notifier.Changes())
	}
	if updates != nil {
		sources = append(sources, source.Channel(updates, handler.Funcs{
			GenericFunc: func(_ context.Context, e event.GenericEvent, _ queue) { r.configChanged(e.Object, false) },
		}))
	}
	for _, s := range sources {
		errs = append(errs, c.Watch(s))
	}
	return errors.Join(errs...)
}

// watch has a controller told of what changes in a cluster while the manager runs.
func watch(mgr ctrl.Manager, c controller.Controller, in *clusters.Cluster, config informer.KubernetesConfig, changed func(context.Context, informer.Event, queue)) (*informer.Kubernetes, error) {
	config.Client, config.Logger = in.WithWatch(), logging.FromLogr(mgr.GetLogger())
	objects, err := informer.NewKubernetes(config)
	if err != nil {
		return nil, fmt.Errorf("watch cluster %q: %w", in.ID(), err)
	}
	return objects, errors.Join(mgr.Add(always(objects.Run)), c.Watch(watched{objects, changed}))
}

// always runs with a manager, also while that does not lead.
type always func(ctx context.Context) error

// Start implements manager.Runnable.
func (run always) Start(ctx context.Context) error { return run(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (always) NeedLeaderElection() bool { return false }

// watched is a source.SyncingSource.
type watched struct {
	*informer.Kubernetes
	changed func(context.Context, informer.Event, queue)
}

// Start implements source.Source.
func (w watched) Start(ctx context.Context, queue queue) error {
	context.AfterFunc(ctx, w.Subscribe(func(e informer.Event) { w.changed(ctx, e, queue) }))
	return nil
}

// String names it in the log of a controller.
func (w watched) String() string { return w.Name() }

// only describes a source of one object.
func only(config client.Object) informer.KubernetesConfig {
	one := informer.KubernetesConfig{Object: config, FieldSelector: fields.OneTermEqualSelector("metadata.name", config.GetName())}
	if ns := config.GetNamespace(); ns != "" {
		one.Namespaces = []string{ns}
	}
	return one
}

// edited tells whether a user has changed an object, or it has come or gone. What the runtime changes does not count: the finalizers that it
// adds, the status, the annotation that it drops, and a claim. That a claim is dropped does, and so does a finalizer that is lost before the
// deletion.
func edited(e informer.Event) bool {
	if e.Type != informer.Updated {
		return true
	}
	before, after := e.Old.(client.Object), e.Object.(client.Object)
	was, is := maps.Clone(before.GetAnnotations()), maps.Clone(after.GetAnnotations())
	if was[claims.Annotation] == "" {
		delete(is, claims.Annotation)
	}
	if _, still := is[OperationAnnotation]; !still && was[OperationAnnotation] == OperationReconcile {
		delete(was, OperationAnnotation)
	}
	lost := after.GetDeletionTimestamp() == nil && len(after.GetFinalizers()) < len(before.GetFinalizers())
	return lost || before.GetGeneration() != after.GetGeneration() || !maps.Equal(before.GetLabels(), after.GetLabels()) || !maps.Equal(was, is)
}

// enqueue has an object reconciled that a user has changed, before those that were there at the start.
func enqueue(_ context.Context, e informer.Event, queue queue) {
	request := reconcile.Request{NamespacedName: e.Key}
	if line, ok := queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok && e.Backlog {
		line.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, request)
	} else if edited(e) {
		queue.Add(request)
	}
}

// referenced has all objects reconciled if a change concerns them, which the author is asked, with the newest config. What is there at the
// start concerns none: it is known before the first reconciliation.
func referenced[T API, C Config, O client.Object](r *APIReconciler[T, C], ask func(ctx context.Context, o O, config C) bool) func(context.Context, informer.Event, queue) {
	return func(ctx context.Context, e informer.Event, _ queue) {
		if e.Backlog {
			return
		}
		config, _ := r.configs.newest()
		concerns := true
		if err := panics.Recovered(func() error { concerns = ask(ctx, e.Object.(O), config); return nil }); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "the provider panicked when it was asked whether it refers to an object; that counts as yes")
		}
		if concerns {
			r.changes.all()
		}
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
