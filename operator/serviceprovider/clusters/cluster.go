package clusters

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/notfound"
	"github.com/operatorkit/operatorkit/internal/faults"
)

// Cluster is a cluster, and the ways to reach it. It does not change once it is made, and is safe for concurrent use.
type Cluster struct {
	id       string
	config   *rest.Config
	client   client.Client
	watching client.WithWatch
	cluster  cluster.Cluster
	// direct makes the configurations for others, nil if config will do for them.
	direct func() *rest.Config
}

// Option changes a Cluster.
type Option func(*Cluster)

// WithRESTConfig sets what RESTConfig returns, for clusters whose clients go a way that nobody else can go. It is called anew each
// time, for a configuration that is the caller's own. Default: the configuration of the clients.
func WithRESTConfig(direct func() *rest.Config) Option { return func(c *Cluster) { c.direct = direct } }

// New returns a Cluster that is reached by a configuration, which is copied. The id names it in errors and logs, such as
// "platform". The error says which argument is missing, or what in the configuration can't be used; no request is sent.
func New(id string, config *rest.Config, scheme *runtime.Scheme, options ...Option) (*Cluster, error) {
	var wrong faults.List
	wrong.If(id == "", "id must be set")
	wrong.If(config == nil, "config must be set")
	wrong.If(scheme == nil, "scheme must be set")
	if err := wrong.Of(fmt.Sprintf("clusters.New: cluster %q", id)); err != nil {
		return nil, err
	}
	c := &Cluster{id: id, config: rest.CopyConfig(config)}
	for _, option := range options {
		option(c)
	}
	c.config.Wrap(informer.SecretTransport)
	c.config.Wrap(informer.RetryAfterTransport)
	httpClient, err := rest.HTTPClientFor(c.config)
	if err != nil {
		return nil, fmt.Errorf("clusters.New: cluster %q: make the HTTP client: %w", id, err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(c.config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("clusters.New: cluster %q: make the REST mapper: %w", id, err)
	}
	c.watching, err = client.NewWithWatch(c.config, client.Options{
		HTTPClient: httpClient, Scheme: scheme, Mapper: mapper,
		// The client has nothing to say, and would ask for the logger of the process.
		Log: logr.FromSlogHandler(slog.DiscardHandler),
	})
	if err != nil {
		return nil, fmt.Errorf("clusters.New: cluster %q: make the client: %w", id, err)
	}
	c.client = notfound.Checked(c.watching)
	c.cluster, err = cluster.New(c.config, func(o *cluster.Options) {
		o.Scheme, o.HTTPClient = scheme, httpClient
		o.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil }
	})
	if err != nil {
		return nil, fmt.Errorf("clusters.New: cluster %q: make the cluster: %w", id, err)
	}
	return c, nil
}

// InCluster returns the cluster that the program runs in, as a Pod, with the rights of its service account. The error says what a Pod
// has and this program has not.
func InCluster(id string, scheme *runtime.Scheme) (*Cluster, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("clusters.InCluster: cluster %q: %w: run the program as a Pod that has a service account, or reach the cluster by a kubeconfig", id, err)
	}
	return New(id, config, scheme)
}

// ID names the cluster in errors and logs.
func (c *Cluster) ID() string { return c.id }

// RESTConfig returns a configuration for clients of other kinds, and for libraries: with the address of the cluster, as exec,
// port-forward and others need it. It is the caller's own. That of a cluster that was asked for holds no token: its WrapTransport
// adds the credentials, the newest ones each time, so that what is made of it goes on when they are renewed.
func (c *Cluster) RESTConfig() *rest.Config {
	if c.direct == nil {
		return rest.CopyConfig(c.config)
	}
	config := c.direct()
	config.Wrap(informer.SecretTransport)
	config.Wrap(informer.RetryAfterTransport)
	return config
}

// IsAt tells whether a host, with its port, is the one that the clients of the cluster send requests to, or the one of RESTConfig:
// an error names the host that it comes from.
func (c *Cluster) IsAt(host string) bool {
	return slices.ContainsFunc([]*rest.Config{c.config, c.RESTConfig()}, func(config *rest.Config) bool {
		server, _, err := rest.DefaultServerUrlFor(config)
		return err == nil && server.Host == host
	})
}

// Scheme returns the scheme of the clients.
func (c *Cluster) Scheme() *runtime.Scheme { return c.client.Scheme() }

// Client reads from and writes to the API server, without a cache.
func (c *Cluster) Client() client.Client { return c.client }

// WithWatch is Client for those who watch too, as sources do (informer.KubernetesConfig).
func (c *Cluster) WithWatch() client.WithWatch { return c.watching }

// Cluster is controller-runtime's view of the cluster, with a cache, for watches. It is the same at each call, and does
// nothing before somebody starts it, such as the manager that it is added to (ctrl.Manager.Add).
func (c *Cluster) Cluster() cluster.Cluster { return c.cluster }
