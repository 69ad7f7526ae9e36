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

// The annotations that make the framework leave an object alone, its deletion included, while their value is "true".
const (
	PausedAnnotation        = "operatorkit.io/paused"
	ClusterPausedAnnotation = "cluster.x-k8s.io/paused"
)

// The defaults of a Config.
const (
	DefaultName            = identity.DefaultFramework
	DefaultWorkers         = 10
	DefaultShutdownTimeout = 30 * time.Second
	DefaultCancelTimeout   = 10 * time.Second
	DefaultShadowWorkers   = 1
	DefaultShadowTimeout   = 30 * time.Second
)

// DefaultBackOffFactory returns the factory that is used when none is configured: pauses from 500 ms on, doubling up to
// five minutes, each 50 % more or less by chance, without an end.
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

// CRDClient ensures custom resource definitions. crdclient.Client is one.
type CRDClient interface {
	// EnsureCreated creates the definition, or updates it in place, and waits until the API is served. Failures are
	// retried with the backoff until it stops, the context ends, or the error is permanent. It never deletes anything.
	EnsureCreated(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, b backoff.BackOff) error
}

// Watch makes changes of other objects reconcile the primary ones: secondaries, which the operator creates for its
// primaries, and tertiaries, which it only reads.
type Watch struct {
	// Source is where these objects come from. Required. A source may be watched by several frameworks.
	Source informer.Source
	// Map names the primaries that are concerned by a change of one of its objects; it is asked for the state before
	// and the state after. Its context has the identity of the framework (identity.From). It must be quick and must not change
	// the object. Required.
	Map informer.MapFunc
	// OwnWrites makes what a reconciliation writes to these objects a reason to reconcile its key again. It is for resources that read
	// what a later one writes. Default: false, for sources that know of the writes (informer.Writes); others can't tell.
	OwnWrites bool
	// SameNamespace says that an object concerns primaries of its own namespace only. When replicas share the primaries
	// (operator.ShardingConfig), each holds the objects in the namespaces of its primaries then, and otherwise those of all namespaces.
	// Default: false.
	SameNamespace bool
}

// Config configures a Framework.
type Config struct {
	// Name identifies the framework in logs, metrics and all marks that it and its resources leave, together with the name of the
	// operator. It is unique within an operator, and two frameworks that run at the same time on one Source, or with one
	// Registerer, differ by it. When it changes, the old one goes to FormerNames. Default: the name of CRD, else of Source, else
	// DefaultName.
	Name string
	// FormerNames are names that the framework had before. What stands under them is taken over as it is: finalizers are
	// replaced, and resources take over what carries them. Default: none.
	FormerNames []string
	// Operator is the name of the operator that the framework belongs to, and FormerOperators are names that it had before, as
	// FormerNames are. Default: those of the operator.Operator that runs it, and without one identity.Program, the main package
	// of the program.
	Operator        string
	FormerOperators []string
	// CRD is ensured before the sources start. Default: none.
	CRD *apiextensionsv1.CustomResourceDefinition
	// CRDClient ensures CRD. Required with it, and not set without it.
	CRDClient CRDClient
	// Source is where the primary objects come from. Without it they come from Informer, or from the drop-ins
	// UpdateFunc, DeleteFunc and ProcessEvents.
	Source informer.Source
	// Informer gives the primary objects as events. One that is a Source too is used as Source. Not together with Source.
	Informer informer.Interface
	// Watches are the secondary and tertiary sources. Default: none.
	Watches []Watch
	// Logger receives errors and what was changed, not what stayed as it was. Required.
	Logger micrologger.Logger
	// ResourceRouter picks the resource set of an object. Required, unless ResourceSets or Resources is set.
	ResourceRouter *ResourceRouter
	// ResourceSets are those of a router that the framework makes itself, one for each version of the logic. Their Logger is that of
	// the framework unless they have their own. Not together with ResourceRouter or Resources.
	ResourceSets []ResourceSetConfig
	// Resources are for operators with one version of their logic: one resource set that handles every object. Not
	// together with ResourceRouter or ResourceSets.
	Resources []Resource
	// InitCtx prepares the context of every reconciliation and every plan, with shadows too, before InitCtx of the resource
	// set does. It must return a child of the given context, and must not change the object or anything else. Default: the
	// context as it is.
	InitCtx func(ctx context.Context, obj any) (context.Context, error)
	// Driven leaves it to somebody else when an object is reconciled: a controller with a queue of its own, which calls ReconcileObject.
	// Run then runs the source, for plans, and compares shadows, and reconciles nothing; Enqueue does nothing. Finalizers are
	// the controller's business. Not together with Informer or Watches. Default: false.
	Driven bool
	// BackOffFactory makes the backoff of an object when it fails first; it is dropped on success. When it says stop,
	// the next try is after five minutes. Default: DefaultBackOffFactory().
	BackOffFactory func() backoff.BackOff
	// Workers is how many objects are reconciled at the same time. Default: DefaultWorkers (10).
	Workers int
	// Finalizer holds an object until ProcessDelete has succeeded for it. It must be qualified, "domain/name". Default: one made
	// of the names of operator and framework (identity.Identity.Finalizer). Sources that can't hold objects have none.
	Finalizer string
	// FormerFinalizers are those that the framework had before, if it was not by FormerNames that it had others: where they
	// are, Finalizer takes their place. Default: none.
	FormerFinalizers []string
	// OwnWrites is that of Watch, for the primary itself. Default: false.
	OwnWrites bool
	// DisableFinalizer makes deletions be processed when the object is gone already, with the last known state. Those
	// that happen while the operator is down are missed. Finalizers that are there are still taken off. Objects of a
	// source that is an informer.Remover are not taken out of it.
	DisableFinalizer bool
	// Rights are those that functions of the configuration need at the API server beyond what the resources declare. Default: none.
	Rights []Right
	// Recorder writes events on objects that fail; on those that are no Kubernetes objects if it is an AnyEventRecorder.
	// Default: none.
	Recorder EventRecorder
	// PlanOnly makes the framework plan in place of reconciling: it tells by events, metrics and PlanReporter what would
	// change, and changes nothing else; no object gets a finalizer or loses it, and CRD is not ensured. Default: false, and
	// the annotation PlanAnnotation does the same for single objects.
	PlanOnly bool
	// PlanReporter is told what would change for objects that are only planned for. Default: none.
	PlanReporter PlanReporter
	// Observer is told of every reconciliation. inspector.Inspector is one. Default: none.
	Observer Observer
	// Registerer registers the metrics. Several frameworks may share one. Default: none.
	Registerer prometheus.Registerer
	// TracerProvider makes spans: of each reconciliation, of its steps, and, by the clients of operator.Dependencies, of its writes. The span
	// is in the context of the steps; a reconciliation that another one has caused is linked to that one where this is known: by an
	// own write, a retry, or a look that a resource asked for. Default: none, and no span costs anything.
	TracerProvider trace.TracerProvider
	// ShutdownTimeout is how long reconciliations may go on after the context of Run has ended, before theirs is
	// cancelled too. Negative: it is cancelled at once. Default: DefaultShutdownTimeout (30 s).
	ShutdownTimeout time.Duration
	// CancelTimeout is how long reconciliations, and sources, may take to return once their context is cancelled, before Run
	// returns without them, with an error. Default: DefaultCancelTimeout (10 s).
	CancelTimeout time.Duration
	// ShadowWorkers is how many objects are compared with shadow resource sets at the same time, beside Workers. They begin
	// with an object only when none waits for a reconciliation. Default: DefaultShadowWorkers (1).
	ShadowWorkers int
	// ShadowTimeout is how long planning one object with one resource set may take, for a comparison. Default:
	// DefaultShadowTimeout (30 s).
	ShadowTimeout time.Duration
}

// Identity returns the identity that a framework of this configuration has.
func (c Config) Identity() identity.Identity {
	return identity.Identity{
		Operator: cmp.Or(c.Operator, identity.Program()), Framework: c.name(),
		FormerOperators: slices.Clone(c.FormerOperators), FormerFrameworks: slices.Clone(c.FormerNames),
	}
}
