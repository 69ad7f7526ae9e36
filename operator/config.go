package operator

import (
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/giantswarm/micrologger"
	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/operator/inspector"
)

// The defaults of a Config. DefaultStepTimeout is longer than any timeout of operatorkit itself,
// except those of plans for machines, which wait on purpose (framework.BeginWait).
const (
	DefaultSyncTimeout     = time.Minute
	DefaultStepTimeout     = time.Hour
	DefaultContactTimeout  = 5 * time.Minute
	DefaultShutdownTimeout = framework.DefaultShutdownTimeout + framework.DefaultCancelTimeout
)

// Config configures an Operator.
type Config struct {
	// Name identifies the operator in logs, metrics, its lease, and all marks that its frameworks
	// and their resources leave. It distinguishes operators on the same objects. If it changes, add
	// the old one to FormerNames. Required.
	Name string
	// FormerNames are earlier names of the operator. Objects marked with them are adopted
	// unchanged. The lease is not: the operator must not run under both names at the same time.
	// Default: none.
	FormerNames []string
	// Logger receives the operator's own messages. Required.
	Logger micrologger.Logger
	// RESTConfig is for definitions and leases. It is not changed. Required with CRDs, and with
	// LeaderElection without a Lock.
	RESTConfig *rest.Config
	// Frameworks run while this replica leads, or with Sharding on every replica. Their names must
	// differ. Required.
	Frameworks []*framework.Framework
	// Runnables run beside the frameworks, while this replica leads. Their names must differ.
	// Default: none.
	Runnables []Runnable
	// Sources run on every replica, in addition to those of the frameworks, which need not be
	// listed here. Default: none.
	Sources []informer.Source
	// CRDs are served before the sources start. They are never deleted. Default: none.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// CRDMode defines how the definitions are ensured. Default: EnsureCRDs.
	CRDMode CRDMode
	// LeaderElection lets one of several replicas work, behind a Fence. Default: off.
	LeaderElection LeaderElectionConfig
	// Sharding lets all replicas work, each on a part of the objects. Default: off.
	Sharding ShardingConfig
	// Upgrade limits how many objects a new build of the operator changes at a time. Default: off.
	Upgrade UpgradeConfig
	// StateNamespace is the namespace of the ConfigMap with the state that replicas share: that of
	// an upgrade, and what is charged to the limits of guards. Its name is StateName. Required for
	// Upgrade, and if a guard has a limit, unless LeaderElection.Namespace is set. Default:
	// LeaderElection.Namespace.
	StateNamespace string
	// ListenAddress is the host and port of /healthz, /readyz and /metrics, such as ":8080" in a
	// Pod. Default: empty, which disables them.
	ListenAddress string
	// AuthorizeMetrics restricts /metrics to users that the API server allows to get that path (a
	// non-resource URL), identified by a bearer token. The operator then needs the cluster role
	// system:auth-delegator. /metrics is still served without TLS, so it is for networks in which
	// tokens are safe. Default: access is not restricted.
	AuthorizeMetrics bool
	// OpenMetrics makes /metrics answer in that format to clients that ask for it, as Prometheus
	// does. Only this format has exemplars; those of the times of reconciliations and steps are
	// their traces. Names and labels stay, but whole bounds of histograms are written as le="1.0",
	// not le="1", and ranks of summaries likewise: Prometheus before version 3 treats these as
	// other series. Default: only the text format.
	OpenMetrics bool
	// Inspector is served on its own address, and shows the frameworks that it observes.
	// NewDependencies makes one. Default: none.
	Inspector *inspector.Inspector
	// Registry has the metrics that /metrics shows. The operator adds its own metrics. Default: a
	// new one.
	Registry *prometheus.Registry
	// SyncTimeout is how long a replica waits for all sources before it requests the lease. Sources
	// that are not synced by then are logged, and delay only the frameworks that need them. A
	// replica does not request the lease before one framework has all of its sources. Default:
	// DefaultSyncTimeout (1 min).
	SyncTimeout time.Duration
	// StepTimeout is how long a worker of a framework may be in one step of a resource before
	// /healthz fails. Time that a step waits on purpose (framework.BeginWait) does not count.
	// Default: DefaultStepTimeout (1 h).
	StepTimeout time.Duration
	// ContactTimeout is how long a source may be without contact before /readyz fails. Default:
	// DefaultContactTimeout (5 min).
	ContactTimeout time.Duration
	// ShutdownTimeout is how long Runnables and sources may take to end when they are stopped.
	// After that Run returns without them, with an error. The frameworks have their own timeouts.
	// Default: DefaultShutdownTimeout (40 s).
	ShutdownTimeout time.Duration
	// BackOffFactory makes the backoff for ensuring one definition. Default:
	// framework.DefaultBackOffFactory(), which does not give up.
	BackOffFactory func() backoff.BackOff
}

func (c *Config) setDefaults() {
	c.Frameworks = slices.Clone(c.Frameworks)
	c.Runnables = slices.Clone(c.Runnables)
	c.Sources = slices.Clone(c.Sources)
	c.CRDs = slices.Clone(c.CRDs)
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	if c.CRDMode == "" {
		c.CRDMode = EnsureCRDs
	}
	if c.BackOffFactory == nil {
		c.BackOffFactory = framework.DefaultBackOffFactory()
	}
	for _, d := range c.timeouts() {
		if *d.value == 0 {
			*d.value = d.otherwise
		}
	}
	c.LeaderElection.setDefaults(c.Name)
	c.Upgrade.setDefaults()
}

// timeout is one of the times of a Config, with its default.
type timeout struct {
	name      string
	value     *time.Duration
	otherwise time.Duration
}

func (c *Config) timeouts() []timeout {
	return []timeout{
		{"SyncTimeout", &c.SyncTimeout, DefaultSyncTimeout},
		{"StepTimeout", &c.StepTimeout, DefaultStepTimeout},
		{"ContactTimeout", &c.ContactTimeout, DefaultContactTimeout},
		{"ShutdownTimeout", &c.ShutdownTimeout, DefaultShutdownTimeout},
	}
}

func (c *Config) validate() error {
	var wrong faults.List
	wrong.If(c.Name == "", "Name must not be empty")
	wrong.If(c.Logger == nil, "Logger must not be nil")
	wrong.If(c.RESTConfig == nil && len(c.CRDs) > 0, "RESTConfig must not be nil when CRDs are set")
	wrong.If(c.RESTConfig == nil && c.LeaderElection.onKubernetes(), "RESTConfig must not be nil when LeaderElection is enabled")
	wrong.If(c.RESTConfig == nil && c.AuthorizeMetrics, "RESTConfig must not be nil when AuthorizeMetrics is set")
	wrong.If(len(c.Frameworks) == 0, "Frameworks must not be empty")
	names := map[string]bool{}
	for i, f := range c.Frameworks {
		switch {
		case f == nil:
			wrong.Add("Frameworks[%d] must not be nil", i)
		case names[f.Name()]:
			wrong.Add("Frameworks[%d] must not have the name %q of an earlier one", i, f.Name())
		default:
			names[f.Name()] = true
		}
	}
	names = map[string]bool{}
	for i, name := range c.FormerNames {
		wrong.If(name == c.Name || name == "", "FormerNames[%d] must be another name than %q", i, c.Name)
	}
	for i, r := range c.Runnables {
		wrong.If(r.Name == "" || r.Run == nil, "Runnables[%d] must have a Name and a Run", i)
		wrong.If(names[r.Name], "Runnables[%d] must not have the name %q of an earlier one", i, r.Name)
		names[r.Name] = true
	}
	for i, s := range c.Sources {
		wrong.If(s == nil, "Sources[%d] must not be nil", i)
	}
	for i, crd := range c.CRDs {
		wrong.If(crd == nil, "CRDs[%d] must not be nil", i)
	}
	wrong.If(!slices.Contains(CRDModes(), c.CRDMode), "CRDMode must be one of %q, is %q", CRDModes(), c.CRDMode)
	for _, d := range c.timeouts() {
		wrong.If(*d.value < 0, "%s must not be negative, is %s", d.name, *d.value)
	}
	if hasLimits(c.Frameworks) {
		wrong.If(c.stateNamespace() == "", "StateNamespace must not be empty when a guard has a limit and LeaderElection.Namespace is empty: name the namespace in which replicas share what is charged")
		wrong.If(c.RESTConfig == nil, "RESTConfig must not be nil when a guard has a limit")
	}
	c.LeaderElection.validate(&wrong)
	c.Sharding.validate(&wrong, c.LeaderElection)
	c.Upgrade.validate(&wrong, c)
	return wrong.Of("operator.Config")
}
