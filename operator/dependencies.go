package operator

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/giantswarm/micrologger"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/notfound"
	"github.com/operatorkit/operatorkit/internal/access"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/logging"
)

// DependenciesConfig configures Dependencies.
type DependenciesConfig struct {
	// Name is the name of the operator. Events have it, and the name of the framework, as their
	// source. Required.
	Name string
	// FormerNames are names that the operator had before, see Config.FormerNames. Default: none.
	FormerNames []string
	// RESTConfig identifies the API server. It is not changed. Without a limit on its rate of
	// requests (QPS), Dependencies has none either, because the API server limits its clients
	// itself. A limit is shared by all clients. Requests that authorize access to the page or to
	// the metrics have their own limit. Required.
	RESTConfig *rest.Config
	// Scheme knows the types of all objects. Required.
	Scheme *runtime.Scheme
	// Logger receives all messages. Required.
	Logger micrologger.Logger
	// Registry is for all metrics. Default: a new one with the metrics of the Go runtime, the
	// process and the build.
	Registry *prometheus.Registry
	// Namespaces limits the sources that NewSource makes. Default: all namespaces.
	Namespaces []string
	// Workers is the default for frameworks. Default: framework.DefaultWorkers.
	Workers int
	// ShutdownTimeout is the default for frameworks. Default: framework.DefaultShutdownTimeout.
	ShutdownTimeout time.Duration
	// PlanOnly makes frameworks plan and not reconcile. Default: false.
	PlanOnly bool
	// Guards are added to those of each framework. Default: none.
	Guards []framework.Guard
	// TracerProvider makes the spans of frameworks, see framework.Config.TracerProvider. Default:
	// none.
	TracerProvider trace.TracerProvider
	// Fence guards all requests of Client, Recorder and RESTConfig. Set it if the fence is needed
	// before there are Dependencies. Default: that of RESTConfig, if it has one, or else a new one.
	Fence *Fence
	// InspectorAddress is the address of the inspector, the page that shows the work of the
	// frameworks, such as inspector.DefaultAddress. On loopback it is open to every user of the
	// machine. Elsewhere it is open to the users that the API server authorizes, see
	// inspector.KubernetesAuthorizer. Default: empty, which disables it.
	InspectorAddress string
	// InspectorCertFile and InspectorKeyFile have its certificate and key, see inspector.Config.
	// Required if InspectorAddress is not on loopback.
	InspectorCertFile, InspectorKeyFile string
	// InspectorMemory is roughly how many bytes the reconciliations shown by the inspector may
	// take. Default: inspector.DefaultMemory (64 MiB).
	InspectorMemory int
}

// Dependencies are shared by the frameworks of one operator. Close them when these have stopped.
type Dependencies struct {
	// Name is the name of the operator, and FormerNames are its earlier names.
	Name        string
	FormerNames []string
	// RESTConfig is for clients of other kinds than Client, and for the Config of the operator,
	// which gets Fence from it.
	RESTConfig *rest.Config
	// Client reads from and writes to the API server, without a cache.
	Client client.WithWatch
	// Logger receives all messages.
	Logger micrologger.Logger
	// Registry is for all metrics.
	Registry *prometheus.Registry
	// Recorder writes events on objects.
	Recorder *Recorder
	// Namespaces are the namespaces of the operator; none means all.
	Namespaces []string
	// Workers is how many objects a framework reconciles at the same time; 0 is the framework's
	// default.
	Workers int
	// ShutdownTimeout is how long reconciliations may continue at the end; 0 is the framework's
	// default.
	ShutdownTimeout time.Duration
	// PlanOnly makes frameworks plan and not reconcile.
	PlanOnly bool
	// Guards are added to those of each framework.
	Guards []framework.Guard
	// TracerProvider makes the spans of frameworks. It is nil without traces.
	TracerProvider trace.TracerProvider
	// Fence refuses writes once this replica may have lost the lease of its leader election.
	// Without an election it is open. It guards Client, Recorder and RESTConfig, and the clients
	// that HTTPClient returns. Its Check is for NATS buckets.
	Fence *Fence
	// WrapTransport wraps the transport of the clients that HTTPClient returns; nil leaves it
	// unchanged. It is for tests, see commandtest.Start.
	WrapTransport func(http.RoundTripper) http.RoundTripper
	// Inspector observes the frameworks. It is nil if it is off. It is served if it is in the
	// Config of the Operator.
	Inspector *inspector.Inspector

	httpClient *http.Client
	sources    sources
}

// NewDependencies returns the Dependencies, or an error for which framework.IsInvalidConfig holds
// and which lists every fault. It sends no request.
func NewDependencies(config DependenciesConfig) (*Dependencies, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	restConfig := rest.CopyConfig(config.RESTConfig)
	if restConfig.QPS == 0 {
		restConfig.QPS = -1
	}
	registry := config.Registry
	if registry == nil {
		registry = prometheus.NewRegistry()
		registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector())
	}
	fence, err := config.fence()
	if err != nil {
		return nil, err
	}
	metrics, err := newClientMetrics(registry)
	if err != nil {
		return nil, fmt.Errorf("%w: operator.DependenciesConfig: Registry: %w", framework.ErrInvalidConfig, err)
	}
	metrics.measure(restConfig)
	restConfig.Wrap(tracedAPIServer)
	if fenceOf(restConfig) == nil {
		restConfig.Wrap(fence.Transport)
	}
	restConfig.Wrap(informer.SecretTransport)
	restConfig.Wrap(newRefusals(config.Logger))
	writes := &informer.Writes{}
	restConfig.Wrap(writes.Transport)
	restConfig.Wrap(informer.RetryAfterTransport)
	httpClient, err := rest.HTTPClientFor(restConfig)
	if err != nil {
		return nil, fmt.Errorf("%w: operator.DependenciesConfig: RESTConfig: %w", framework.ErrInvalidConfig, err)
	}
	c, err := client.NewWithWatch(restConfig, client.Options{HTTPClient: httpClient, Scheme: config.Scheme, Log: logging.Logr(config.Logger)})
	if err != nil {
		return nil, fmt.Errorf("make the client: %w", err)
	}
	page, err := newInspector(config, restConfig)
	if err != nil {
		return nil, err
	}
	recorder, err := newRecorder(config.Name, restConfig, httpClient, config.Scheme, config.Logger)
	if err != nil {
		return nil, err
	}
	return &Dependencies{
		Name: config.Name, FormerNames: config.FormerNames, RESTConfig: restConfig, Client: writes.Client(notfound.CheckedWithWatch(c)), Logger: config.Logger, Registry: registry, Recorder: recorder,
		Namespaces: config.Namespaces, Workers: config.Workers, ShutdownTimeout: config.ShutdownTimeout,
		PlanOnly: config.PlanOnly, Guards: config.Guards, TracerProvider: config.TracerProvider, Fence: fence, Inspector: page, httpClient: httpClient,
	}, nil
}

func (c *DependenciesConfig) validate() error {
	var wrong faults.List
	wrong.If(c.Name == "", "Name must not be empty")
	wrong.If(c.RESTConfig == nil, "RESTConfig must not be nil")
	wrong.If(c.Scheme == nil, "Scheme must not be nil")
	wrong.If(c.Logger == nil, "Logger must not be nil")
	wrong.If(c.Workers < 0, "Workers must not be negative, is %d", c.Workers)
	return wrong.Of("operator.DependenciesConfig")
}

// fence returns the fence of the Dependencies. It is open until an operator with an election is
// made: until then this process is the only writer.
func (c *DependenciesConfig) fence() (*Fence, error) {
	found := fenceOf(c.RESTConfig)
	switch {
	case found != nil && c.Fence != nil && found != c.Fence:
		return nil, fmt.Errorf("%w: operator.DependenciesConfig: Fence must be the one that RESTConfig has already", framework.ErrInvalidConfig)
	case found != nil:
		return found, nil
	case c.Fence != nil:
		return c.Fence, nil
	}
	return &Fence{now: time.Now, always: true}, nil
}

// HTTPClient returns a copy of base that starts no request once this replica may have lost its
// lease, and before it leads only requests that read (GET, HEAD, OPTIONS). It is for clients of
// other systems. base provides the credentials; it may be nil for an http.DefaultClient.
func (d *Dependencies) HTTPClient(base *http.Client) *http.Client {
	if base == nil {
		base = http.DefaultClient
	}
	fenced := *base
	if fenced.Transport == nil {
		fenced.Transport = http.DefaultTransport
	}
	if d.WrapTransport != nil {
		fenced.Transport = d.WrapTransport(fenced.Transport)
	}
	fenced.Transport = d.Fence.Transport(&tracedTransport{next: fenced.Transport})
	return &fenced
}

// NewFramework returns a framework of the operator. Logger, Registerer, Recorder, Observer,
// TracerProvider, Workers and ShutdownTimeout are those of d unless config sets them. It only plans
// if PlanOnly is set in d or in config. It names the other managers of a framework.Fight if Client
// may get the object. The guards of d follow those of config.
func (d *Dependencies) NewFramework(config framework.Config) (*framework.Framework, error) {
	if config.Operator == "" {
		config.Operator, config.FormerOperators = d.Name, d.FormerNames
	}
	if config.Logger == nil {
		config.Logger = d.Logger
	}
	if config.Registerer == nil {
		config.Registerer = d.Registry
	}
	if config.Recorder == nil {
		config.Recorder = d.Recorder.of(config)
	}
	if config.Observer == nil && d.Inspector != nil {
		config.Observer = d.Inspector
	}
	if config.TracerProvider == nil {
		config.TracerProvider = d.TracerProvider
	}
	if config.Workers == 0 {
		config.Workers = d.Workers
	}
	if config.ShutdownTimeout == 0 {
		config.ShutdownTimeout = d.ShutdownTimeout
	}
	config.PlanOnly = config.PlanOnly || d.PlanOnly
	config.Guards = slices.Concat(config.Guards, d.Guards)
	f, err := framework.New(config)
	if err != nil {
		return nil, err
	}
	access.EngineOf(f).FindManagers(d.managersOf)
	return f, nil
}

// Close stops the recorder and closes idle connections. It may be called several times.
func (d *Dependencies) Close() {
	d.Recorder.Close()
	utilnet.CloseIdleConnectionsFor(d.httpClient.Transport)
}
