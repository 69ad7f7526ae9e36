package framework

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/giantswarm/micrologger"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/internal/queue"
	"github.com/operatorkit/operatorkit/informer"
)

// These annotations make the framework ignore an object, also its deletion, while their value is
// "true".
const (
	PausedAnnotation        = "operatorkit.io/paused"
	ClusterPausedAnnotation = "cluster.x-k8s.io/paused"
)

// The defaults of a Config.
const (
	DefaultWorkers         = 10
	DefaultShutdownTimeout = 30 * time.Second
	DefaultCancelTimeout   = 10 * time.Second
	defaultShadowWorkers   = 1
	defaultShadowTimeout   = 30 * time.Second
)

// DefaultBackOffFactory returns the default of Config.BackOffFactory: pauses that start at 500 ms
// and double up to five minutes, each randomized by 50 %, without an end.
func DefaultBackOffFactory() func() backoff.BackOff {
	return func() backoff.BackOff {
		return backoff.NewExponentialBackOff(
			backoff.WithInitialInterval(500*time.Millisecond),
			backoff.WithMultiplier(2),
			backoff.WithRandomizationFactor(0.5),
			backoff.WithMaxInterval(queue.MaxRetryInterval),
			backoff.WithMaxElapsedTime(0),
		)
	}
}

// CRDClient ensures custom resource definitions. crdclient.Client implements it.
type CRDClient interface {
	// EnsureCreated creates the definition, or updates it in place, and waits until the API is
	// served. It retries with the backoff until that stops, the context ends, or the error is
	// permanent. It never deletes anything.
	EnsureCreated(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, b backoff.BackOff) error
}

// Watch makes changes of other objects reconcile the primary ones. The others are secondaries,
// which the operator creates for its primaries, and tertiaries, which it only reads.
type Watch struct {
	// Source is where these objects come from. Several frameworks may watch one source. Required.
	Source informer.Source
	// Map returns the primaries that a change of one of these objects concerns. It is called for
	// the state before and for the state after. Its context has the identity of the framework
	// (identity.From). It must be quick and must not change the object. Required.
	Map informer.MapFunc
	// OwnWrites makes a reconciliation's own writes to these objects reconcile its key again. It is
	// for resources that read what a later resource writes. Default: false. Own writes are then
	// ignored if the source knows of them (informer.Writes); other sources can't distinguish them.
	OwnWrites bool
	// SameNamespace says that an object concerns only primaries of its own namespace. When replicas
	// share the primaries (operator.ShardingConfig), each replica then holds only the objects in
	// the namespaces of its primaries, instead of those of all namespaces. Default: false.
	SameNamespace bool
}

// Config configures a Framework.
type Config struct {
	// Name identifies the framework in logs and metrics. Together with the name of the operator it
	// identifies the framework in all marks that it and its resources leave. It is unique within an
	// operator. Two frameworks that run at the same time on one Source, or with one Registerer,
	// need different names. When it changes, add the old name to FormerNames. Default: the name of
	// CRD, else of Source, else identity.DefaultFramework.
	Name string
	// FormerNames are earlier names of the framework. Objects that carry them are adopted
	// unchanged: finalizers are replaced, and resources adopt what carries them. Default: none.
	FormerNames []string
	// Operator is the name of the operator that the framework belongs to. FormerOperators are its
	// earlier names, as FormerNames are. Default: those of the operator.Operator that runs the
	// framework; without one, identity.Program, the main package of the program.
	Operator        string
	FormerOperators []string
	// CRD is ensured before the sources start. Default: none.
	CRD *apiextensionsv1.CustomResourceDefinition
	// CRDClient ensures CRD. Required with it, and not set without it.
	CRDClient CRDClient
	// Source is where the primary objects come from. Without it they come from Informer, or from
	// the drop-ins UpdateFunc, DeleteFunc and ProcessEvents.
	Source informer.Source
	// Informer delivers the primary objects as events. If it also is a Source, it is used as
	// Source. Not together with Source.
	Informer informer.Interface
	// Watches are the secondary and tertiary sources. Default: none.
	Watches []Watch
	// Logger receives errors and changes. Unchanged things are not logged. Required.
	Logger micrologger.Logger
	// ResourceRouter picks the resource set of an object. Required, unless ResourceSets or
	// Resources is set.
	ResourceRouter *ResourceRouter
	// ResourceSets configure the sets of a router that the framework makes itself, one for each
	// version of the logic. Their Logger defaults to that of the framework. Not together with
	// ResourceRouter or Resources.
	ResourceSets []ResourceSetConfig
	// Resources are for operators with one version of their logic: one resource set that handles
	// every object. Not together with ResourceRouter or ResourceSets.
	Resources []Resource
	// InitCtx prepares the context of every reconciliation and every plan, also for shadows, before
	// InitCtx of the resource set does. It must return a child of the given context, and must not
	// change the object or anything else. Default: the context is unchanged.
	InitCtx func(ctx context.Context, obj any) (context.Context, error)
	// Driven leaves queueing to the caller: a controller with a queue of its own calls
	// ReconcileObject. Run then runs the source, for plans, and compares shadows. It reconciles
	// nothing, and Enqueue does nothing. The controller handles finalizers. Not together with
	// Informer or Watches. Default: false.
	Driven bool
	// BackOffFactory makes the backoff of an object at its first failure. Success drops the
	// backoff. When the backoff stops, the next try is after five minutes. Default:
	// DefaultBackOffFactory().
	BackOffFactory func() backoff.BackOff
	// Workers is the number of objects that are reconciled at the same time. Default:
	// DefaultWorkers (10).
	Workers int
	// Finalizer holds an object until ProcessDelete has succeeded for it. It must be qualified,
	// "domain/name". Default: a name made of those of operator and framework
	// (identity.Identity.Finalizer). Sources that can't hold objects have none.
	Finalizer string
	// FormerFinalizers are earlier finalizers of the framework that FormerNames does not imply.
	// Finalizer replaces them where they are found. Default: none.
	FormerFinalizers []string
	// OwnWrites is Watch.OwnWrites for the primary itself. Default: false.
	OwnWrites bool
	// DisableFinalizer makes deletions be processed after the object is gone, with the last known
	// state. Deletions that happen while the operator is down are missed. Existing finalizers are
	// still removed. Objects of a source that is an informer.Remover are not removed from it.
	DisableFinalizer bool
	// Guards are asked about every change before it is applied. Default: none; then they cost
	// nothing.
	Guards []Guard
	// Rights are the rights at the API server that functions of the configuration need in addition
	// to the declared rights of the resources. Default: none.
	Rights []Right
	// Recorder writes events on objects that fail. If it is an AnyEventRecorder, it also writes
	// them on objects that are not Kubernetes objects. Default: none.
	Recorder EventRecorder
	// PlanOnly makes the framework plan instead of reconcile. It reports by events, metrics and
	// PlanReporter what would change, and changes nothing else: no object gets or loses a
	// finalizer, and CRD is not ensured. PlanAnnotation does the same for a single object. Default:
	// false.
	PlanOnly bool
	// PlanReporter receives the changes of objects that are only planned. Default: none.
	PlanReporter PlanReporter
	// Observer receives a record of every reconciliation. inspector.Inspector implements it.
	// Default: none.
	Observer Observer
	// Registerer registers the metrics. Several frameworks may share it. Default: none.
	Registerer prometheus.Registerer
	// TracerProvider makes spans: of each reconciliation, of its steps and, by the clients of
	// operator.Dependencies, of its writes. The context of a step has the span. A reconciliation is
	// linked to the one that caused it where this is known: by an own write, a retry, or a requeue
	// that a resource requested. Default: none; then tracing costs nothing.
	TracerProvider trace.TracerProvider
	// ShutdownTimeout is how long reconciliations may continue after the context of Run has ended.
	// Then their context is cancelled too. Negative: it is cancelled at once. Default:
	// DefaultShutdownTimeout (30 s).
	ShutdownTimeout time.Duration
	// CancelTimeout is how long reconciliations and sources may take to return after their context
	// is cancelled. Then Run returns without them, with an error. Default: DefaultCancelTimeout
	// (10 s).
	CancelTimeout time.Duration
	// ShadowWorkers is the number of objects that are compared with shadow resource sets at the
	// same time, in addition to Workers. They start on an object only when none waits for a
	// reconciliation. Default: 1.
	ShadowWorkers int
	// ShadowTimeout limits how long planning one object with one resource set may take in a
	// comparison. Default: 30 s.
	ShadowTimeout time.Duration
}

// Identity returns the identity of a framework with this configuration.
func (c Config) Identity() identity.Identity {
	return identity.Identity{
		Operator: cmp.Or(c.Operator, identity.Program()), Framework: c.name(),
		FormerOperators: slices.Clone(c.FormerOperators), FormerFrameworks: slices.Clone(c.FormerNames),
	}
}
