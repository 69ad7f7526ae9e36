package machines

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
)

// errNotRunning is what is asked of engines before or after they run.
var errNotRunning = errors.New("the connections to engines are not kept up now")

// notice says that something has happened on a machine. It is an object of the source of engines.
type notice struct {
	machine informer.Key
	// service is the name of the service that it is about, and empty for all of the namespace.
	service string
}

// Copy implements informer.Copier.
func (n *notice) Copy() any {
	copied := *n
	return &copied
}

// engines is a source of what happens on machines. Running it keeps up the connections to them.
type engines struct {
	*informer.Hub
	feed              *informer.Feed
	config            Config
	machines, secrets *informer.Kubernetes
	d                 *operator.Dependencies

	mu       sync.Mutex
	running  bool
	clusters map[string]*cluster
	// count makes the versions of notices.
	count int
}

var _ informer.Source = (*engines)(nil)

// newEngines returns the source; machines and secrets are the sources that it goes by. Of Secrets the latter has metadata only.
func newEngines(d *operator.Dependencies, config Config, machines, secrets *informer.Kubernetes) *engines {
	hub, feed := informer.NewHub(informer.HubConfig{Name: "engines"})
	return &engines{Hub: hub, feed: feed, config: config, machines: machines, secrets: secrets, d: d}
}

// Run implements informer.Source.
func (e *engines) Run(ctx context.Context) error {
	e.feed.Run(ctx, e.work)
	return nil
}

// Status implements informer.Source. It is as fresh as what is known of the Machines; how fresh what is known of each engine is, its
// condition Ready tells.
func (e *engines) Status() informer.Status {
	status, machines := e.Hub.Status(), e.machines.Status()
	status.LastContact, status.LastError = machines.LastContact, machines.LastError
	return status
}

// work keeps up the connections until the context ends.
func (e *engines) work(ctx context.Context) {
	e.start()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer e.stop()
	defer queue.ShutDown()
	for _, source := range []*informer.Kubernetes{e.machines, e.secrets} {
		wg.Go(func() { _ = source.Run(ctx) }) // joins those who run it already; its end is that of ctx
	}
	defer e.machines.Subscribe(func(event informer.Event) {
		if old, ok := event.Old.(*v1alpha1.Machine); ok && event.Type == informer.Updated && !concerns(old, event.Object.(*v1alpha1.Machine)) {
			return
		}
		queue.Add(event.Key.Namespace)
	})()
	defer e.secrets.Subscribe(func(event informer.Event) {
		if e.named(event.Key) {
			queue.Add(event.Key.Namespace)
		}
	})()
	if e.machines.WaitForSync(ctx) != nil || e.secrets.WaitForSync(ctx) != nil {
		return
	}
	for _, obj := range e.machines.List() {
		queue.Add(obj.(*v1alpha1.Machine).Namespace)
	}
	for queue.Len() > 0 && ctx.Err() == nil {
		e.next(ctx, queue)
	}
	e.feed.Replace("", nil)
	wg.Go(func() {
		<-ctx.Done()
		queue.ShutDown()
	})
	for e.next(ctx, queue) {
	}
}

// next brings the connections of a namespace up to date, and tells whether there is more to come.
func (e *engines) next(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string]) bool {
	namespace, done := queue.Get()
	if done {
		return false
	}
	defer queue.Done(namespace)
	if err := e.connect(ctx, namespace); err != nil && ctx.Err() == nil {
		e.d.Logger.LogCtx(ctx, "level", "warning", "message", "not all machines of a namespace can be connected to", "namespace", namespace, "error", err.Error())
		queue.AddRateLimited(namespace)
		return true
	}
	queue.Forget(namespace)
	return true
}

func (e *engines) start() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running, e.clusters = true, map[string]*cluster{}
}

// stop ends all connections.
func (e *engines) stop() {
	e.mu.Lock()
	clusters := e.clusters
	e.running, e.clusters = false, nil
	e.mu.Unlock()
	for _, c := range clusters {
		_ = c.Close() // it has nothing to say
	}
}

// cluster returns the machines of a namespace. Those who have it for longer than the source runs get docker.ErrClosed.
func (e *engines) cluster(namespace string) (*cluster, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.running {
		return nil, errNotRunning
	}
	if c := e.clusters[namespace]; c != nil {
		return c, nil
	}
	cli, err := docker.New(docker.Config{
		Cluster: namespace, Domain: e.config.Domain, Names: e.config.Names, Ingress: e.config.Ingress, BeforeRequest: e.d.Fence.CheckRequest,
		Credentials:    credentials(e.d.Client, client.ObjectKey{Namespace: namespace, Name: e.config.RegistrySecret}),
		ConnectTimeout: e.config.ConnectTimeout, Heartbeat: e.config.Heartbeat, BackOffFactory: e.config.BackOffFactory,
	})
	if err != nil {
		return nil, fmt.Errorf("make the client for the machines of namespace %s: %w", namespace, err)
	}
	c := &cluster{Client: cli, machines: map[string]docker.Machine{}, object: func(name string) *v1alpha1.Machine {
		// An error is that there is no index, which this is not about.
		obj, exists, _ := e.machines.Get(informer.Key{Namespace: namespace, Name: name})
		if !exists {
			return nil
		}
		return obj.(*v1alpha1.Machine)
	}}
	cli.Subscribe(func(n docker.Notice) { e.tell(informer.Key{Namespace: namespace, Name: n.MachineID}, n.Service) })
	e.clusters[namespace] = c
	return c, nil
}

// tell tells of what has happened on a machine. Only the newest notice of a machine and a service is kept.
func (e *engines) tell(machine informer.Key, service string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.count++
	key := machine
	if service != "" {
		key.Name += "/" + service
	}
	e.feed.Set(informer.Item{Key: key, Object: &notice{machine, service}, Version: strconv.Itoa(e.count)})
}
