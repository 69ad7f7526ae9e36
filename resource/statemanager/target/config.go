package target

import (
	"cmp"
	"net/http"
	"time"

	"github.com/giantswarm/micrologger"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/faults"
)

// The defaults of a Config.
const (
	DefaultQPS            = 20
	DefaultBurst          = 40
	DefaultRequestTimeout = 30 * time.Second
	DefaultConnectTimeout = 10 * time.Second
	DefaultIdleTimeout    = 5 * time.Minute
	DefaultProbeInterval  = time.Minute
	DefaultMinRetry       = time.Second
	DefaultMaxRetry       = time.Minute
	// DefaultMaxKubeconfig is in bytes.
	DefaultMaxKubeconfig = 128 << 10
	// DefaultMaxResponse is in bytes.
	DefaultMaxResponse = 256 << 20
)

// Owners names the users that are concerned by a change of obj on a cluster. It is asked for the state before and the state
// after, must be quick, and must not change the object. Names that do not watch the object's kind on that cluster are
// ignored: what stands on objects of a target cluster is not to be trusted.
type Owners func(cluster Key, obj client.Object) []Key

// Config configures [Clusters].
type Config struct {
	// Deployments holds the *v1alpha1.ClusterDeployments of the management cluster, or what else Kubeconfig knows. Required.
	Deployments informer.Source
	// Kubeconfig names the Secret with the kubeconfig of an object of Deployments, and the entry in it. An object for which it names none
	// counts as missing. Default: KubeconfigSecret, of a *v1alpha1.ClusterDeployment.
	Kubeconfig func(deployment any) (secret Key, entry string)
	// Secrets holds the *corev1.Secrets with kubeconfigs, as far as it selects them: one that it does not hold counts as
	// missing. It need not hold others, and should not: select by the label cluster.x-k8s.io/cluster-name, which Cluster API
	// sets, by the field type, or by namespaces. Required.
	Secrets informer.Source
	// Rewrite returns what is used in place of a kubeconfig that is in a Secret, which it must not change. Default: nothing is changed.
	Rewrite func(secret *corev1.Secret, kubeconfig []byte) []byte
	// Management reaches the management cluster, which has the zero Key. It is trusted: plugins and files are allowed. It
	// must have no Transport of its own (WrapTransport is applied). Required.
	Management *rest.Config
	// Scheme is that of the clients. Default: the scheme of client-go.
	Scheme *runtime.Scheme
	// Owners names who is concerned by a change on a cluster. Default: everybody who watches the kind there.
	Owners Owners
	// WrapTransport goes around the requests to a cluster, after the rate limiter and before authentication: for traces, for
	// fences of those who may not write any more, for faults in tests. It is called once for each kubeconfig, and sees probes
	// too; and once for each connection that is upgraded, see Cluster.DirectConfig. Default: none.
	WrapTransport func(cluster Key, next http.RoundTripper) http.RoundTripper
	// Logger is told when a cluster's state changes. Nothing of a kubeconfig but names and addresses is logged. Required.
	Logger micrologger.Logger
	// Registerer registers the metrics. Default: none.
	Registerer prometheus.Registerer

	// QPS is how many requests a second go to one cluster, of all its users together. Negative: no limit. Default: 20.
	QPS float32
	// Burst is how many requests may go at once. Default: 40.
	Burst int
	// RequestTimeout is how long a request may take until its answer is read; of a watch, until it begins. Default: 30 s.
	RequestTimeout time.Duration
	// ConnectTimeout is how long connecting, the TLS handshake, and a probe may take, each. Default: 10 s.
	ConnectTimeout time.Duration
	// IdleTimeout is how long a cluster without users is kept. Default: 5 minutes.
	IdleTimeout time.Duration
	// ProbeInterval is after how long without an answer a cluster that is in use is asked for its version. Default: 1 minute.
	ProbeInterval time.Duration
	// MinRetry and MaxRetry are the shortest and the longest pause, ±20 %, between two probes of a cluster that does not
	// answer; each is twice the one before. MinRetry is also the shortest pause between two probes of one that does.
	// Default: 1 second, 1 minute.
	MinRetry, MaxRetry time.Duration
	// MaxKubeconfig is the size, in bytes, from which on a kubeconfig is refused unread. Default: 128 KiB.
	MaxKubeconfig int
	// MaxResponse is how many bytes of an answer are read; a longer one is an error. Watches have no such limit. Default:
	// 256 MiB.
	MaxResponse int64
}

func (c *Config) setDefaults() {
	if c.Scheme == nil {
		c.Scheme = scheme.Scheme
	}
	if c.Kubeconfig == nil {
		c.Kubeconfig = kubeconfigOfDeployment
	}
	c.QPS = cmp.Or(c.QPS, DefaultQPS)
	c.Burst = cmp.Or(c.Burst, DefaultBurst)
	c.RequestTimeout = cmp.Or(c.RequestTimeout, DefaultRequestTimeout)
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, DefaultConnectTimeout)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, DefaultIdleTimeout)
	c.ProbeInterval = cmp.Or(c.ProbeInterval, DefaultProbeInterval)
	c.MinRetry = cmp.Or(c.MinRetry, DefaultMinRetry)
	c.MaxRetry = cmp.Or(c.MaxRetry, DefaultMaxRetry)
	c.MaxKubeconfig = cmp.Or(c.MaxKubeconfig, DefaultMaxKubeconfig)
	c.MaxResponse = cmp.Or(c.MaxResponse, DefaultMaxResponse)
}

// validate returns an error that names every faulty field.
func (c *Config) validate() error {
	var wrong faults.List
	for _, required := range []struct {
		field   string
		missing bool
	}{
		{"Deployments", c.Deployments == nil},
		{"Secrets", c.Secrets == nil},
		{"Management", c.Management == nil},
		{"Logger", c.Logger == nil},
	} {
		wrong.If(required.missing, "%s must be set", required.field)
	}
	wrong.If(c.Management != nil && c.Management.Transport != nil, "Management must not have a Transport: use its WrapTransport")
	for _, of := range []struct {
		field string
		value time.Duration
	}{
		{"RequestTimeout", c.RequestTimeout}, {"ConnectTimeout", c.ConnectTimeout}, {"IdleTimeout", c.IdleTimeout},
		{"ProbeInterval", c.ProbeInterval}, {"MinRetry", c.MinRetry}, {"MaxRetry", c.MaxRetry},
	} {
		wrong.If(of.value < 0, "%s must not be negative, is %s", of.field, of.value)
	}
	wrong.If(c.MinRetry > c.MaxRetry, "MinRetry must not be longer than MaxRetry, is %s and %s", c.MinRetry, c.MaxRetry)
	wrong.If(c.Burst < 0 || c.MaxKubeconfig < 0 || c.MaxResponse < 0, "Burst, MaxKubeconfig and MaxResponse must not be negative")
	return wrong.Of("target.Config")
}
