package natscontroller

import (
	"cmp"
	"regexp"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/giantswarm/micrologger"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/operator"
)

// The defaults of a GarbageConfig.
const (
	DefaultGarbageInterval = 10 * time.Minute
	DefaultGarbageRate     = 5
)

// Config describes a controller of primaries of type T.
type Config[T natsinformer.Entity] struct {
	// Name identifies the controller in logs, metrics and events and, together with Operator, in all marks that it and its
	// resources leave; it names the framework. When it changes, the old one goes to FormerNames. Required.
	Name string
	// FormerNames are names that the controller had before. What was made under them is taken over as it is. Default: none.
	FormerNames []string
	// Operator is the name of the operator that the controller is a part of, and FormerOperators are those that it had before, as
	// FormerNames are. Two controllers with the same Name, on the same buckets, differ by it. Default: Name, and FormerNames
	// before FormerOperators.
	Operator        string
	FormerOperators []string
	// Kind is the kind of the primaries, by which secondaries name it. It must not change between versions, and consists of
	// letters, digits, '-', '_' and '.'. Required.
	Kind string
	// Primary is where the primaries come from. How often they are announced again is up to its Resync. Required.
	Primary *natsinformer.Source[T]
	// Secondaries are what the controller makes; changes of them go to HandleSecondary. Default: none.
	Secondaries []Secondary
	// Tertiaries are what the controller only reads, with the primaries that a change concerns. Default: none.
	Tertiaries []framework.Watch
	// Externals are what is polled of other systems (pollinformer), with the primaries that a change concerns. Default: none.
	Externals []framework.Watch
	// Resources reconcile each primary, in this order, before SyncHandler does; those that conclude come after it. Default: none.
	Resources []framework.Resource
	// ResourceSets are for primaries that differ in how they are reconciled; SyncHandler comes after the resources of each, as with
	// Resources. Not together with those.
	ResourceSets []*framework.ResourceSet
	// Workers is how many primaries are reconciled at the same time. Default: framework.DefaultWorkers.
	Workers int
	// BackOffFactory makes the backoff of a primary that fails. Default: framework.DefaultBackOffFactory().
	BackOffFactory func() backoff.BackOff
	// ShutdownTimeout is how long reconciliations may go on at the end. Default: framework.DefaultShutdownTimeout.
	ShutdownTimeout time.Duration
	// Observer is told of every reconciliation. Default: none.
	Observer framework.Observer
	// Garbage is about secondaries without their primary.
	Garbage GarbageConfig
	// Recorder writes the events on Kubernetes objects. Default: they are dropped.
	Recorder framework.EventRecorder
	// Events is the bucket for the events on entities. Give it a TTL. Default: they are dropped.
	Events *natsinformer.Bucket[*Event]
	// LeaderElection lets one of several replicas work: by a Lease in the Kubernetes of RESTConfig, or by its Lock, for
	// which natslease keeps a lease in a bucket. The Lease is called Name, with Operator and a hyphen before it if that is set. Its
	// Fence belongs into the buckets that are written to, which are made before the controller; with operator.Dependencies that is
	// theirs. Those of Primary, Entities and Events must have one. Default: off.
	LeaderElection operator.LeaderElectionConfig
	// RESTConfig is for the Lease and the shared state. Required with LeaderElection, unless that has a Lock, with Upgrade, and
	// if a guard has a limit.
	RESTConfig *rest.Config
	// Guards are asked about every change. A SyncHandler can't predict its changes: see framework.Guard. Default: none.
	Guards []framework.Guard
	// Upgrade limits how many primaries a new build of the program syncs at a time. Default: no limit.
	Upgrade operator.UpgradeConfig
	// StateNamespace is the namespace of the shared state, see operator.Config. Default: that of LeaderElection.
	StateNamespace string
	// ListenAddress is the host and port of /healthz, /readyz and /metrics. Default: off.
	ListenAddress string
	// ContactTimeout is how long a source may be out of contact, so that what it shows may be stale, before /readyz fails and says so.
	// Default: operator.DefaultContactTimeout (5 minutes).
	ContactTimeout time.Duration
	// Registry is for all metrics. Default: a new one.
	Registry *prometheus.Registry
	// Logger is for everything. Required.
	Logger micrologger.Logger
}

// GarbageConfig says when secondaries are looked for whose primary does not exist.
type GarbageConfig struct {
	// Interval is the time between two searches; the first one is at the start. Negative: GarbageSecondaries is never
	// called. Default: DefaultGarbageInterval (10 minutes).
	Interval time.Duration
	// Rate is how many objects are removed in a second at most, however often they are searched for. Default:
	// DefaultGarbageRate (5).
	Rate float32
}

// validKind is what an object can carry as a label, and the key of an event as a part.
var validKind = regexp.MustCompile(`^[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?$`)

func (c *Config[T]) setDefaults() {
	lease := c.Name
	if c.Operator == "" {
		c.Operator, c.FormerOperators = c.Name, append(slices.Clone(c.FormerNames), c.FormerOperators...)
	} else {
		lease = c.Operator + "-" + c.Name
	}
	if c.LeaderElection.Lock == nil {
		c.LeaderElection.Name = cmp.Or(c.LeaderElection.Name, lease)
	}
	c.Secondaries = slices.Clone(c.Secondaries)
	c.Tertiaries = slices.Clone(c.Tertiaries)
	c.Externals = slices.Clone(c.Externals)
	c.Resources = slices.Clone(c.Resources)
	c.ResourceSets = slices.Clone(c.ResourceSets)
	if c.Garbage.Interval == 0 {
		c.Garbage.Interval = DefaultGarbageInterval
	}
	if c.Garbage.Rate == 0 {
		c.Garbage.Rate = DefaultGarbageRate
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
}

// bucket is a natsinformer.Bucket of whatever entities.
type bucket interface {
	Name() string
	Fenced() bool
}

// buckets are those to which the controller writes by itself.
func (c *Config[T]) buckets() (buckets []bucket) {
	if c.Primary != nil {
		buckets = append(buckets, c.Primary.Bucket())
	}
	for _, s := range c.Secondaries {
		if s.bucket != nil {
			buckets = append(buckets, s.bucket)
		}
	}
	if c.Events != nil {
		buckets = append(buckets, c.Events)
	}
	return buckets
}

func (c *Config[T]) validate() error {
	var wrong faults.List
	wrong.If(c.Name == "", "Name must not be empty")
	wrong.If(!validKind.MatchString(c.Kind), "Kind must consist of letters, digits, '-', '_' and '.', 63 at most, is %q", c.Kind)
	wrong.If(c.Primary == nil, "Primary must not be nil")
	for i, s := range c.Secondaries {
		wrong.If(s.source == nil, "Secondaries[%d] must be made by Kube or Entities", i)
	}
	wrong.If(len(c.Resources) > 0 && len(c.ResourceSets) > 0, "Resources and ResourceSets must not both be set")
	for i, s := range c.ResourceSets {
		wrong.If(s == nil, "ResourceSets[%d] must not be nil", i)
	}
	if c.LeaderElection.Enabled {
		for _, b := range c.buckets() {
			wrong.If(!b.Fenced(), "the bucket %s must have a Fence, the Check of the one of LeaderElection", b.Name())
		}
	}
	wrong.If(c.Garbage.Rate < 0, "Garbage.Rate must not be negative, is %g", c.Garbage.Rate)
	wrong.If(c.Logger == nil, "Logger must not be nil")
	return wrong.Of("natscontroller.Config")
}
