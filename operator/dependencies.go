package operator

import (
	"fmt"
	"net/http"
	"time"

	"github.com/giantswarm/micrologger"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/logging"
)

// DependenciesConfig configures Dependencies.
type DependenciesConfig struct {
	// Name is the name of the operator. Events name it as their source. Required.
	Name string
	// RESTConfig tells the API server. It is not changed; without a limit on its rate of requests (QPS), Dependencies
	// has none either, because the API server limits its clients itself. Required.
	RESTConfig *rest.Config
	// Scheme knows the types of all objects. Required.
	Scheme *runtime.Scheme
	// Logger is for everything. Required.
	Logger micrologger.Logger
	// Registry is for all metrics. Default: a new one with those of the Go runtime and the process.
	Registry *prometheus.Registry
	// Namespaces limits the sources that NewSource makes. Default: all namespaces.
	Namespaces []string
	// Workers is the default for frameworks. Default: framework.DefaultWorkers.
	Workers int
	// ShutdownTimeout is the default for frameworks. Default: framework.DefaultShutdownTimeout.
	ShutdownTimeout time.Duration
	// PlanOnly makes frameworks plan and not reconcile. Default: false.
	PlanOnly bool
	// InspectorAddress is where the inspector listens, the page that shows what the frameworks do, such as
	// inspector.DefaultAddress. On loopback everybody on the machine may look, elsewhere those whom the API server lets, see
	// inspector.KubernetesAuthorizer. Default: empty, which is off.
	InspectorAddress string
}

// Dependencies are what the frameworks of one operator share. Close them when these have stopped.
type Dependencies struct {
	// Name is the name of the operator.
	Name string
	// RESTConfig is for clients of other kinds than Client.
	RESTConfig *rest.Config
	// Client reads from and writes to the API server, without a cache.
	Client client.WithWatch
	// Logger is for everything.
	Logger micrologger.Logger
	// Registry is for all metrics.
	Registry *prometheus.Registry
	// Recorder writes events on objects.
	Recorder *Recorder
	// Namespaces are those that the operator looks at; none means all.
	Namespaces []string
	// Workers is how many objects a framework reconciles at the same time; 0 stands for the framework's default.
	Workers int
	// ShutdownTimeout is how long reconciliations may go on at the end; 0 stands for the framework's default.
	ShutdownTimeout time.Duration
	// PlanOnly tells that frameworks are to plan and not to reconcile.
	PlanOnly bool
	// Inspector observes the frameworks. It is nil when it is off, and served when it is in the Config of the Operator.
	Inspector *inspector.Inspector

	httpClient *http.Client
}

// NewDependencies returns what frameworks need, or an error for which framework.IsInvalidConfig holds and which lists
// every fault. It sends no request.
func NewDependencies(config DependenciesConfig) (*Dependencies, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	restConfig := rest.CopyConfig(config.RESTConfig)
	if restConfig.QPS == 0 {
		restConfig.QPS = -1
	}
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
	registry := config.Registry
	if registry == nil {
		registry = prometheus.NewRegistry()
		registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	return &Dependencies{
		Name: config.Name, RESTConfig: restConfig, Client: c, Logger: config.Logger, Registry: registry, Recorder: recorder,
		Namespaces: config.Namespaces, Workers: config.Workers, ShutdownTimeout: config.ShutdownTimeout,
		PlanOnly: config.PlanOnly, Inspector: page, httpClient: httpClient,
	}, nil
}

func (c *DependenciesConfig) validate() error {
	var faults faults
	if c.Name == "" {
		faults.add("Name must not be empty")
	}
	if c.RESTConfig == nil {
		faults.add("RESTConfig must not be nil")
	}
	if c.Scheme == nil {
		faults.add("Scheme must not be nil")
	}
	if c.Logger == nil {
		faults.add("Logger must not be nil")
	}
	if c.Workers < 0 {
		faults.add("Workers must not be negative, is %d", c.Workers)
	}
	return faults.of("operator.DependenciesConfig")
}

// NewSource returns a source of all objects of the kind of object, in the namespaces of the operator. Frameworks that
// need the same objects share one source. For selectors, indexes or metadata only, use informer.NewKubernetes.
func (d *Dependencies) NewSource(object client.Object) (*informer.Kubernetes, error) {
	return informer.NewKubernetes(informer.KubernetesConfig{
		Client: d.Client, Object: object, Namespaces: d.Namespaces, Logger: d.Logger,
	})
}

// NewFramework returns a framework. Logger, Registerer, Recorder, Observer, Workers and ShutdownTimeout are those of d unless
// config sets them; it only plans if either of them says so.
func (d *Dependencies) NewFramework(config framework.Config) (*framework.Framework, error) {
	if config.Logger == nil {
		config.Logger = d.Logger
	}
	if config.Registerer == nil {
		config.Registerer = d.Registry
	}
	if config.Recorder == nil {
		config.Recorder = d.Recorder
	}
	if config.Observer == nil && d.Inspector != nil {
		config.Observer = d.Inspector
	}
	if config.Workers == 0 {
		config.Workers = d.Workers
	}
	if config.ShutdownTimeout == 0 {
		config.ShutdownTimeout = d.ShutdownTimeout
	}
	config.PlanOnly = config.PlanOnly || d.PlanOnly
	return framework.New(config)
}

// Close stops the recorder and closes idle connections. It may be called several times.
func (d *Dependencies) Close() {
	d.Recorder.Close()
	utilnet.CloseIdleConnectionsFor(d.httpClient.Transport)
}
