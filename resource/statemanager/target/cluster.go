package target

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/notfound"
)

// Cluster is a cluster that services are for, or the management cluster. It stays the same when its kubeconfig changes: its
// clients use the newest one with their next request. All methods are safe for concurrent use.
type Cluster struct {
	clusters *Clusters
	key      Key
	// host stands for the server in requests, until the gate puts the real one in.
	host    string
	config  *rest.Config
	client  client.WithWatch
	mapper  *mapper
	limiter flowcontrol.RateLimiter
	// patient is for watches: it waits while nothing can be sent.
	patient client.WithWatch
	// acting are the Acting that were used last, by user.
	acting *lru.Cache

	// ctx ends with the cluster.
	ctx  context.Context
	stop context.CancelFunc
	// wake has the supervisor look around.
	wake chan struct{}
	// resolved is closed once the kubeconfig has been looked for.
	resolved chan struct{}

	mu     sync.Mutex
	conn   *connection
	health health
	// stale tells that the kubeconfig has to be looked for again.
	stale bool
	where reference
	// changed is closed at the next change of the state.
	changed chan struct{}
	// version and identity are those of conn.
	version  *version.Info
	identity string
	users    map[Key]struct{}
	// leaving drops the cluster if nobody joins before.
	leaving *time.Timer
	watched map[watchKey]*watched
	// closed is why the cluster is no more.
	closed error
}

// actingKept is for how many users a cluster keeps clients.
const actingKept = 64

// newCluster makes a cluster that start begins to look after.
func newCluster(clusters *Clusters, key Key) (*Cluster, error) {
	c := &Cluster{
		clusters: clusters, key: key, host: hostOf(key), limiter: newLimiter(clusters.config.QPS, clusters.config.Burst),
		wake: make(chan struct{}, 1), resolved: make(chan struct{}), changed: make(chan struct{}),
		acting: lru.New(actingKept), users: map[Key]struct{}{}, watched: map[watchKey]*watched{}, stale: true,
		health: newHealth(pacing{clusters.config.ProbeInterval, clusters.config.MinRetry, clusters.config.MaxRetry}),
	}
	c.health.connect(now())
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.config = &rest.Config{
		Host: "https://" + c.host, Transport: informer.RetryAfterTransport(&gate{cluster: c, admit: c.admit}), QPS: -1,
		UserAgent: rest.DefaultKubernetesUserAgent(), WarningHandlerWithContext: &warnings{cluster: c, told: lru.New(warningsKept)},
	}
	var err error
	if c.mapper, err = newMapper(c.config); err != nil {
		return nil, fmt.Errorf("make the REST mapper: %w", err)
	}
	if c.client, err = c.newClient(c.config.Transport); err != nil {
		return nil, err
	}
	c.client = notfound.CheckedWithWatch(c.client)
	c.patient, err = c.newClient(informer.RetryAfterTransport(&watchGate{gate{cluster: c, admit: c.await}}))
	return c, err
}

func (c *Cluster) newClient(transport http.RoundTripper) (client.WithWatch, error) {
	config := rest.CopyConfig(c.config)
	config.Transport = transport
	made, err := client.NewWithWatch(config, client.Options{
		HTTPClient: &http.Client{Transport: transport}, Scheme: c.clusters.config.Scheme, Mapper: c.mapper,
		// The client has nothing to say, and would ask for the logger of the process.
		Log: logr.FromSlogHandler(slog.DiscardHandler),
	})
	if err != nil {
		return nil, fmt.Errorf("make the client: %w", err)
	}
	return made, nil
}

// hostOf returns a name that no server has, by which errors tell the cluster.
func hostOf(key Key) string {
	if key == (Key{}) {
		return "management.cluster.invalid"
	}
	return key.Name + "." + key.Namespace + ".cluster.invalid"
}

// Key names the cluster.
func (c *Cluster) Key() Key { return c.key }

// Client reads from and writes to the cluster, without a cache. All its users share the rate limit and the connections.
// Requests that can't succeed fail at once, with an [UnreachableError].
func (c *Cluster) Client() client.WithWatch { return c.client }

// RESTConfig returns a configuration for clients of other kinds, the caller's own. What is made from it goes the same way as
// Client. Its Host is a name that only its Transport understands, so that neither credentials nor addresses are in it, and
// protocols that bypass the Transport (exec, attach, port-forward) don't work: DirectConfig is for those.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// RESTMapper maps kinds to resources as the cluster has them now: it asks again for what it does not know, at most once a
// second. It is a meta.ResettableRESTMapper.
func (c *Cluster) RESTMapper() meta.RESTMapper { return c.mapper }

// Version returns the version of the API server; false before the first answer.
func (c *Cluster) Version() (version.Info, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.version == nil {
		return version.Info{}, false
	}
	return *c.version, true
}

// Identity returns what tells this cluster from every other one: the UID of its namespace kube-system. It is read once for
// each kubeconfig, and needs the right to get that namespace.
func (c *Cluster) Identity(ctx context.Context) (string, error) {
	c.mu.Lock()
	known, conn := c.identity, c.conn
	c.mu.Unlock()
	if known != "" {
		return known, nil
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(schemaNamespace)
	if err := c.client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, namespace); err != nil {
		return "", fmt.Errorf("read the identity of %s: %w", describe(c.key), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == conn {
		c.identity = string(namespace.UID)
	}
	return string(namespace.UID), nil
}

// Err returns nil while requests are sent, and otherwise the error with which they would fail: an [UnreachableError], or
// ErrReleased or ErrNotRunning for a cluster that was dropped.
func (c *Cluster) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.errLocked()
}

// AwaitAnswer waits while the cluster is Connecting, until its first probe has ended, and returns Err then. When ctx ends before, it returns
// the error of ctx. It sends nothing.
func (c *Cluster) AwaitAnswer(ctx context.Context) error {
	for {
		c.mu.Lock()
		state, changed, err := c.health.state, c.changed, c.errLocked()
		c.mu.Unlock()
		if err != nil || state != Connecting {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *Cluster) errLocked() error {
	switch {
	case c.closed != nil:
		return fmt.Errorf("%s: %w", describe(c.key), c.closed)
	case c.health.state.sends():
		return nil
	}
	return &UnreachableError{
		Cluster: c.key, State: c.health.state, Since: c.health.since, NextTry: c.health.nextTry, Cause: c.health.cause,
	}
}

// Health is how a cluster is.
type Health struct {
	// Cluster names it.
	Cluster Key
	// State is how it is, and Since since when.
	State State
	Since time.Time
	// LastContact is when it answered last, and NextProbe when it is asked at the latest. Each may be zero.
	LastContact, NextProbe time.Time
	// Err is why it can't be reached, nil if it can.
	Err error
	// Version is that of the API server, such as "v1.37.2"; empty before the first answer.
	Version string
	// Users and Watches are how many there are.
	Users, Watches int
}

// Health returns how the cluster is.
func (c *Cluster) Health() Health {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := Health{
		Cluster: c.key, State: c.health.state, Since: c.health.since, LastContact: c.health.contact, NextProbe: c.health.nextTry,
		Err: c.errLocked(), Users: len(c.users), Watches: len(c.watched),
	}
	if c.version != nil {
		h.Version = c.version.GitVersion
	}
	return h
}

// Condition returns the condition Reachable for the status of what waits for the cluster: True, False, or Unknown before the
// first answer, with a [State] as the reason. It changes only when something about the cluster does, not with every try.
func (c *Cluster) Condition() metav1.Condition {
	c.mu.Lock()
	defer c.mu.Unlock()
	return metav1.Condition{
		Type: ConditionReachable, Status: c.health.state.status(), Reason: string(c.health.state), Message: c.messageLocked(),
		LastTransitionTime: metav1.NewTime(c.health.since),
	}
}

func (c *Cluster) messageLocked() string {
	cause := brief(c.health.cause)
	switch c.health.state {
	case Connecting:
		return "The kubeconfig was read, there was no answer yet."
	case Connected:
		return fmt.Sprintf("Kubernetes %s at %s answers.", c.version.GitVersion, c.conn.base.Redacted())
	case Unreachable:
		return fmt.Sprintf("%s does not answer: %s. It is tried again at least every %s.", c.conn.base.Redacted(), cause, c.health.pacing.maxRetry)
	case CredentialRefused:
		return fmt.Sprintf("%s does not accept the credentials: %s. Put a valid kubeconfig into %s.", c.conn.base.Redacted(), cause, c.where)
	}
	return cause
}

// admit returns the connection for a request to be sent now.
func (c *Cluster) admit(context.Context) (*connection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.errLocked(); err != nil {
		return nil, err
	}
	return c.conn, nil
}

// await waits until the cluster answers, and returns its connection. The error is that of ctx, or why the cluster is closed.
func (c *Cluster) await(ctx context.Context) (*connection, error) {
	for {
		c.mu.Lock()
		conn, state, changed, closed := c.conn, c.health.state, c.changed, c.closed
		c.mu.Unlock()
		switch {
		case closed != nil:
			return nil, closed
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case state == Connected:
			return conn, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
