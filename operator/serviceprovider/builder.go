package serviceprovider

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/operator/logging"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
)

// The defaults of an APIReconcilerBuilder.
const (
	DefaultWorkers          = 10
	DefaultTimeout          = 5 * time.Minute
	DefaultChangesPerSecond = 10.0
)

// APIReconcilerBuilder collects what an APIReconciler needs. The methods return the builder.
type APIReconcilerBuilder[T API, C Config] struct {
	made             APIReconciler[T, C]
	config           C
	workload         bool
	additional       []string
	finalizer        string
	operator         string
	formerOperators  []string
	changesPerSecond float64
	clock            clock.Clock
}

// NewAPIReconcilerBuilder returns a builder. T and C are pointers.
func NewAPIReconcilerBuilder[T API, C Config]() *APIReconcilerBuilder[T, C] {
	return &APIReconcilerBuilder[T, C]{
		made:             APIReconciler[T, C]{workers: DefaultWorkers, timeout: DefaultTimeout},
		changesPerSecond: DefaultChangesPerSecond, clock: clock.RealClock{},
	}
}

// PlatformCluster sets the cluster with the provider's config, access requests, and the Secrets and ConfigMaps that are
// watched. Required.
func (b *APIReconcilerBuilder[T, C]) PlatformCluster(c *clusters.Cluster) *APIReconcilerBuilder[T, C] {
	b.made.platform = c
	return b
}

// OnboardingCluster sets the cluster with the objects. Required.
func (b *APIReconcilerBuilder[T, C]) OnboardingCluster(c *clusters.Cluster) *APIReconcilerBuilder[T, C] {
	b.made.onboarding = c
	return b
}

// ClusterAccessReconciler sets what asks for access to the clusters of an object. Each API has one of its own, if that is a KindAccessProvider,
// as those of package clusteraccess are. Required.
func (b *APIReconcilerBuilder[T, C]) ClusterAccessReconciler(car ClusterAccessProvider) *APIReconcilerBuilder[T, C] {
	b.made.access = car
	return b
}

// Reconciler sets the logic of the provider. Required.
func (b *APIReconcilerBuilder[T, C]) Reconciler(dsr Reconciler[T, C]) *APIReconcilerBuilder[T, C] {
	b.made.author = dsr
	return b
}

// EmptyObjectProvider sets the function that makes an empty object. Its type is known to the scheme of the onboarding cluster.
// Required.
func (b *APIReconcilerBuilder[T, C]) EmptyObjectProvider(emptyObj func() T) *APIReconcilerBuilder[T, C] {
	b.made.empty = emptyObj
	return b
}

// ProviderConfig says by its type, its name and its namespace which object of the platform cluster is the config. The rest of
// it is what Delete gets when that object is gone and was never seen by this process. Required, with a name. It is copied.
func (b *APIReconcilerBuilder[T, C]) ProviderConfig(config C) *APIReconcilerBuilder[T, C] {
	b.config = config
	return b
}

// WorkloadCluster says whether objects have a workload cluster. Default: false.
func (b *APIReconcilerBuilder[T, C]) WorkloadCluster(wlCluster bool) *APIReconcilerBuilder[T, C] {
	b.workload = wlCluster
	return b
}

// AdditionalClusters are the ids of further clusters that objects have; the ClusterAccessProvider is then an
// AdditionalAccessProvider. Default: none.
func (b *APIReconcilerBuilder[T, C]) AdditionalClusters(ids ...string) *APIReconcilerBuilder[T, C] {
	b.additional = slices.Clone(ids)
	return b
}

// Namespaces restricts the objects that are watched and served to those of some namespaces of the onboarding cluster. An object in another
// one is left alone, also when it was served before and is being deleted. Default: all.
func (b *APIReconcilerBuilder[T, C]) Namespaces(namespaces ...string) *APIReconcilerBuilder[T, C] {
	b.made.namespaces = slices.Clone(namespaces)
	return b
}

// NamespacePredicate restricts the objects that are served to those in namespaces of the onboarding cluster for which it holds, by their
// names, labels or annotations; it is asked again when a namespace changes. An object in another namespace is left alone, also when it
// was served before; its deletion is finished then nevertheless. It must be quick and must not change its argument, and is called
// from several goroutines. It takes the right to get, list and watch namespaces. Default: all namespaces, or those of Namespaces.
func (b *APIReconcilerBuilder[T, C]) NamespacePredicate(holds func(namespace *metav1.PartialObjectMetadata) bool) *APIReconcilerBuilder[T, C] {
	b.made.namespacePredicate = holds
	return b
}

// SecretNamespace has the Secrets of a namespace of the platform cluster watched, if the Reconciler is a SecretWatcher. Default:
// none are.
func (b *APIReconcilerBuilder[T, C]) SecretNamespace(ns string) *APIReconcilerBuilder[T, C] {
	b.made.secretNamespace = ns
	return b
}

// ConfigMapNamespace has the ConfigMaps of a namespace of the platform cluster watched, if the Reconciler is a ConfigMapWatcher.
// Default: none are.
func (b *APIReconcilerBuilder[T, C]) ConfigMapNamespace(ns string) *APIReconcilerBuilder[T, C] {
	b.made.configMapNamespace = ns
	return b
}

// Operator sets the name of the operator, and those that it had before: the finalizers of objects are made of the name and the kind, so
// that two providers of one kind don't take one another's. Those of former names are taken over. Default: identity.Program, the main
// package; none.
func (b *APIReconcilerBuilder[T, C]) Operator(name string, formerNames ...string) *APIReconcilerBuilder[T, C] {
	b.operator, b.formerOperators = name, slices.Clone(formerNames)
	return b
}

// Finalizer sets the finalizer that holds an object until Delete has succeeded; the one that holds it until its access is gone
// has "-access" appended. It must not change between versions, but may go: then those of Operator take over. Default: they are made of
// the name of the operator and the kind of the objects.
func (b *APIReconcilerBuilder[T, C]) Finalizer(name string) *APIReconcilerBuilder[T, C] {
	b.finalizer = name
	return b
}

// Workers sets how many objects are reconciled at the same time. Default: DefaultWorkers (10).
func (b *APIReconcilerBuilder[T, C]) Workers(n int) *APIReconcilerBuilder[T, C] {
	b.made.workers = n
	return b
}

// Timeout sets how long one call of the Reconciler, or of the ClusterAccessProvider, may take before its context ends, and the requests of
// each step of the runtime itself: a cluster that does not answer keeps a worker for no longer at each of them, if what is called heeds its
// context. Default: DefaultTimeout (5 min).
func (b *APIReconcilerBuilder[T, C]) Timeout(d time.Duration) *APIReconcilerBuilder[T, C] {
	b.made.timeout = d
	return b
}

// ChangesPerSecond sets how many objects are reconciled in one second at most because the config, a Secret or a ConfigMap has
// changed; +Inf is no limit. Changes of the objects themselves are not held up by that. Default: DefaultChangesPerSecond
// (10).
func (b *APIReconcilerBuilder[T, C]) ChangesPerSecond(rate float64) *APIReconcilerBuilder[T, C] {
	b.changesPerSecond = rate
	return b
}

// EventRecorder sets what writes events on objects. Default: SetupWithManager makes one for the onboarding cluster; without that
// none are written.
func (b *APIReconcilerBuilder[T, C]) EventRecorder(recorder framework.EventRecorder) *APIReconcilerBuilder[T, C] {
	b.made.recorder = recorder
	return b
}

// Clock sets the clock by which changes are spread out. Default: that of the machine.
func (b *APIReconcilerBuilder[T, C]) Clock(c clock.Clock) *APIReconcilerBuilder[T, C] {
	b.clock = c
	return b
}

// MustBuild is Build that panics.
func (b *APIReconcilerBuilder[T, C]) MustBuild() *APIReconciler[T, C] {
	r, err := b.Build()
	if err != nil {
		panic(err)
	}
	return r
}

// Build returns the reconciler, or an error for which framework.IsInvalidConfig holds and which lists every fault.
func (b *APIReconcilerBuilder[T, C]) Build() (*APIReconciler[T, C], error) {
	var wrong faults.List
	wrong.If(b.made.platform == nil, "PlatformCluster must be set")
	wrong.If(b.made.onboarding == nil, "OnboardingCluster must be set")
	wrong.If(faults.IsNil(b.made.access), "ClusterAccessReconciler must be set")
	wrong.If(faults.IsNil(b.made.author), "Reconciler must be set")
	wrong.If(b.made.empty == nil, "EmptyObjectProvider must be set")
	wrong.If(faults.IsNil(b.config), "ProviderConfig must be set")
	wrong.If(!faults.IsNil(b.config) && b.config.GetName() == "", "ProviderConfig must have a name")
	wrong.If(b.made.workers <= 0, "Workers must be positive, not %d", b.made.workers)
	wrong.If(b.made.timeout <= 0, "Timeout must be positive, not %s", b.made.timeout)
	wrong.If(!(b.changesPerSecond > 0), "ChangesPerSecond must be positive, not %v", b.changesPerSecond)
	wrong.If(b.clock == nil, "Clock must not be nil")
	r := new(b.made)
	r.changes = &pacer{clock: b.clock, interval: time.Duration(float64(time.Second) / b.changesPerSecond), waiting: workqueue.NewTyped[informer.Key]()}
	r.last, r.brake = &lastStates{}, &brake{clock: b.clock, begun: map[types.NamespacedName]time.Time{}, waiting: sets.Set[types.NamespacedName]{}}
	b.buildAccess(r, &wrong)
	b.buildKind(r, &wrong)
	if r.platform != nil && !faults.IsNil(b.config) {
		var err error
		r.configs, err = newConfigs(r.platform, b.config)
		wrong.If(err != nil, "ProviderConfig: %v", err)
	}
	resources, _ := r.author.(*Resources[T, C])
	wrong.If(resources != nil && resources.router == nil, "Reconciler: FromResources must be given a router")
	if err := wrong.Of("APIReconcilerBuilder"); err != nil {
		return nil, err
	}
	if resources != nil {
		f, err := r.newFramework(resources, framework.Config{Logger: logging.FromLogr(logr.Discard())})
		if err != nil {
			return nil, err
		}
		resources.framework.Store(f)
	}
	return r, nil
}

// buildAccess lists the clusters of an object, in the order in which they are waited for.
func (b *APIReconcilerBuilder[T, C]) buildAccess(r *APIReconciler[T, C], wrong *faults.List) {
	if faults.IsNil(r.access) {
		return
	}
	r.accesses = []access{mcpAccess(r.access)}
	if b.workload {
		r.accesses = append(r.accesses, workloadAccess(r.access))
	}
	provider, knows := r.access.(AdditionalAccessProvider)
	wrong.If(len(b.additional) > 0 && !knows, "AdditionalClusters: %T is no AdditionalAccessProvider", r.access)
	for i, id := range b.additional {
		taken := id == MCP || id == Workload || slices.Contains(b.additional[:i], id)
		wrong.If(id == "" || taken, "AdditionalClusters: the id %q is empty or taken", id)
		if knows {
			r.accesses = append(r.accesses, additionalAccess(provider, id))
		}
	}
	if fixed, ok := r.access.(FixedAccessProvider); ok {
		for i := range r.accesses {
			r.accesses[i].secret, r.accesses[i].fixed = fixed.FixedCluster(r.accesses[i].id)
		}
	}
}

// buildKind finds out which kind of objects it is about, and what its finalizers are called.
func (b *APIReconcilerBuilder[T, C]) buildKind(r *APIReconciler[T, C], wrong *faults.List) {
	if r.empty == nil || r.onboarding == nil {
		return
	}
	empty := r.empty()
	if faults.IsNil(empty) {
		wrong.Add("EmptyObjectProvider must not return nil")
		return
	}
	var err error
	if r.kind, err = apiutil.GVKForObject(empty, r.onboarding.Scheme()); err != nil {
		wrong.Add("EmptyObjectProvider: %v", err)
		return
	}
	if kinds, ok := r.access.(KindAccessProvider); ok && !faults.IsNil(r.access) {
		if err := kinds.ServeKind(r.kind.GroupKind()); err != nil {
			wrong.Add("ClusterAccessReconciler: %w", err)
		}
	}
	if origins, ok := r.access.(OnboardingAccessProvider); ok && !faults.IsNil(r.access) {
		if err := origins.ServeOnboarding(r.onboarding); err != nil {
			wrong.Add("ClusterAccessReconciler: %w", err)
		}
	}
	r.identity = identity.Identity{
		Operator: cmp.Or(b.operator, identity.Program()), Framework: r.kind.GroupKind().String(), FormerOperators: b.formerOperators,
	}
	r.finalizers = finalizersOf(r.identity, b.finalizer)
	for _, problem := range validation.IsQualifiedName(r.finalizers.access[0]) {
		wrong.Add("Finalizer %q: %s", b.finalizer, problem)
	}
	r.objects, err = informer.NewKubernetes(informer.KubernetesConfig{
		Client: r.onboarding.WithWatch(), Object: empty, MetadataOnly: true, Logger: logging.FromLogr(logr.Discard()),
	})
	wrong.If(err != nil, "EmptyObjectProvider: %v", err)
	wrong.If(!strings.Contains(r.finalizers.work[0], "/"), "Finalizer %q must be qualified, like example.com/name", b.finalizer)
}

// keyOf is the key of an object.
func keyOf(o client.Object) client.ObjectKey { return client.ObjectKeyFromObject(o) }
