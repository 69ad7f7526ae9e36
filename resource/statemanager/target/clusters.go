package target

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/operatorkit/operatorkit/informer"
)

// Key names a cluster by its ClusterDeployment; the zero Key is the management cluster. It also names users: primary
// objects of the frameworks that watch [Clusters.Notices].
type Key = informer.Key

// Clusters hands out the clusters that services are for. All methods are safe for concurrent use.
type Clusters struct {
	config  Config
	metrics *metrics
	notices *notices

	mu      sync.Mutex
	running bool
	active  map[Key]*Cluster
	// wg counts all goroutines of all clusters.
	wg sync.WaitGroup
}

// New returns Clusters that do nothing before the source [Clusters.Notices] runs. The error names every faulty field and
// wraps informer.ErrInvalidConfig.
func New(config Config) (*Clusters, error) {
	config.setDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	c := &Clusters{config: config, active: map[Key]*Cluster{}}
	c.notices = newNotices(c)
	c.metrics = newMetrics(c)
	if config.Registerer != nil {
		if err := config.Registerer.Register(c.metrics); err != nil {
			return nil, fmt.Errorf("register the metrics of target clusters: %w", err)
		}
	}
	return c, nil
}

// Notices is the one source that tells users what concerns them on all clusters: see [Notice]. Give it to the frameworks
// whose primaries use clusters, with [Users] as the map function. Running it runs the clusters, with the sources of the
// configuration, and its end drops all clusters; an operator.Operator does that, after the frameworks have stopped.
func (c *Clusters) Notices() informer.Source { return c.notices }

// Acquire makes a user known to a cluster and returns the cluster, which is shared by all its users. It does not wait for
// the cluster, and a cluster that can't be reached is no error here: see [Cluster.Err]. It may be called again, and before
// every use should be: a cluster that its user did not acquire may be dropped. Without users, it is dropped after
// Config.IdleTimeout. The error is ErrNotRunning.
func (c *Clusters) Acquire(cluster, user Key) (*Cluster, error) {
	c.mu.Lock()
	acquired, err := c.acquire(cluster, user)
	c.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("acquire %s: %w", describe(cluster), err)
	}
	<-acquired.resolved
	return acquired, nil
}

// acquire does the work of Acquire. The caller holds the lock.
func (c *Clusters) acquire(cluster, user Key) (*Cluster, error) {
	if !c.running {
		return nil, ErrNotRunning
	}
	known := c.active[cluster]
	if known == nil {
		made, err := newCluster(c, cluster)
		if err != nil {
			return nil, err
		}
		c.active[cluster] = made
		made.start()
		known = made
	}
	known.join(user)
	return known, nil
}

// Release ends the use of a cluster by a user, with all that the user watches there. It may be called again, and by those
// who never acquired the cluster.
func (c *Clusters) Release(cluster, user Key) {
	c.mu.Lock()
	known := c.active[cluster]
	c.mu.Unlock()
	if known != nil {
		known.leave(user)
	}
}

// ReleaseAll is Release for all clusters but those that are named.
func (c *Clusters) ReleaseAll(user Key, but ...Key) {
	for _, cluster := range c.all() {
		if !slices.Contains(but, cluster.key) {
			cluster.leave(user)
		}
	}
}

// Run does what running Notices does. It returns nil when ctx has ended and, for the last caller, every goroutine too.
func (c *Clusters) Run(ctx context.Context) error { return c.notices.Run(ctx) }

// Health tells how the clusters that are in use are, ordered by key.
func (c *Clusters) Health() []Health {
	var all []Health
	for _, cluster := range c.all() {
		all = append(all, cluster.Health())
	}
	slices.SortFunc(all, func(a, b Health) int {
		return cmp.Or(cmp.Compare(a.Cluster.Namespace, b.Cluster.Namespace), cmp.Compare(a.Cluster.Name, b.Cluster.Name))
	})
	return all
}

func (c *Clusters) all() []*Cluster {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*Cluster, 0, len(c.active))
	for _, cluster := range c.active {
		all = append(all, cluster)
	}
	return all
}

// work runs everything until ctx ends.
func (c *Clusters) work(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer c.config.Deployments.Subscribe(c.deploymentChanged)()
	defer c.config.Secrets.Subscribe(c.secretChanged)()
	for _, source := range []informer.Source{c.config.Deployments, c.config.Secrets} {
		wg.Go(func() { _ = source.Run(ctx) })
	}
	for _, source := range []informer.Source{c.config.Deployments, c.config.Secrets} {
		if source.WaitForSync(ctx) != nil {
			return
		}
	}
	c.setRunning(true)
	c.notices.ready()
	<-ctx.Done()
	c.setRunning(false)
	for _, cluster := range c.all() {
		c.drop(cluster, ErrNotRunning)
	}
	c.wg.Wait()
}

func (c *Clusters) setRunning(running bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = running
}

// drop ends a cluster, and forgets it.
func (c *Clusters) drop(cluster *Cluster, cause error) {
	c.mu.Lock()
	if c.active[cluster.key] == cluster {
		delete(c.active, cluster.key)
	}
	c.mu.Unlock()
	cluster.close(cause)
}

// dropIdle drops a cluster unless somebody has joined it at the last moment.
func (c *Clusters) dropIdle(cluster *Cluster) {
	c.mu.Lock()
	if c.active[cluster.key] != cluster || !cluster.idle() {
		c.mu.Unlock()
		return
	}
	// Nobody can join between here and the end, because that takes c.mu.
	delete(c.active, cluster.key)
	c.mu.Unlock()
	c.log("target cluster is dropped because nobody uses it", "cluster", cluster.key.String(), "after", c.config.IdleTimeout.String())
	cluster.close(ErrReleased)
}

func (c *Clusters) log(message string, fields ...any) {
	c.config.Logger.Log(append([]any{"level", "info", "message", message}, fields...)...)
}

// now is the time at which what happens is noted.
func now() time.Time { return time.Now() }
