package clusteraccess

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/internal/reach"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// Clusters gets access to clusters for objects, with additional data D. It must run (Start) before it is used. All methods are
// safe for concurrent use, for different objects.
type Clusters[D any] struct {
	config   Config
	accesses []Access[D]
	client   client.Client

	access, requests *informer.Kubernetes
	reader           client.Reader
	targets          *target.Clusters
	// fixed are the clusters that are not asked for, by id.
	fixed  map[string]*fixed
	served served

	mu   sync.Mutex
	used map[use]*used
}

// use names one of the clusters of an object.
type use struct {
	request reconcile.Request
	id      string
}

// used is the AccessRequest by which an object uses a cluster, which may be gone already, and what was handed out.
type used struct {
	key target.Key
	handed
}

// handed is a cluster, and the connection that it is made of.
type handed struct {
	on      *target.Cluster
	cluster *clusters.Cluster
}

// by returns the cluster, which is made anew unless it is made of this connection.
func (h *handed) by(on *target.Cluster, name string, scheme *runtime.Scheme) (*clusters.Cluster, error) {
	if h.on != on {
		made, err := clusters.New(name, on.RESTConfig(), scheme, clusters.WithRESTConfig(on.DirectConfig))
		if err != nil {
			return nil, err
		}
		h.on, h.cluster = on, made
	}
	return h.cluster, nil
}

// New returns Clusters for the accesses given, or an error that lists every fault. It sends no request.
func New[D any](config Config, accesses []Access[D]) (*Clusters[D], error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	if err := validateAccesses(accesses); err != nil {
		return nil, err
	}
	c := &Clusters[D]{
		config: config, accesses: accesses, client: config.Platform.Client(), fixed: map[string]*fixed{}, used: map[use]*used{},
	}
	if err := c.open(); err != nil {
		return nil, fmt.Errorf("clusteraccess.New: %w", err)
	}
	return c, nil
}

// open makes the sources and the connections.
func (c *Clusters[D]) open() error {
	watching := c.config.Platform.WithWatch()
	var err error
	for _, a := range c.accesses {
		if a.Fixed == nil {
			continue
		}
		if c.fixed[a.ID], err = openFixed(a.ID, *a.Fixed, &c.config, watching); err != nil {
			return fmt.Errorf("the fixed cluster %s: %w", a.ID, err)
		}
	}
	ours, issued := c.config.selects(OwnerLabel), labels.SelectorFromSet(reach.GrantedLabels())
	newSource := func(config informer.KubernetesConfig) (*informer.Kubernetes, error) {
		config.Client, config.Namespaces, config.Logger = watching, []string{c.config.Namespace}, c.config.Logger
		return informer.NewKubernetes(config)
	}
	if c.access, err = newSource(informer.KubernetesConfig{Object: &v1alpha1.AccessRequest{}, LabelSelector: ours}); err != nil {
		return err
	}
	if c.requests, err = newSource(informer.KubernetesConfig{Object: &v1alpha1.ClusterRequest{}, LabelSelector: ours}); err != nil {
		return err
	}
	credentials, err := newSource(informer.KubernetesConfig{Object: &corev1.Secret{}, Name: "credentials of " + c.config.Provider, LabelSelector: issued})
	if err != nil {
		return err
	}
	c.reader = informer.NewReader(watching.Scheme(), c.access, c.requests)
	c.targets, err = target.New(target.Config{
		Deployments: c.access, Kubeconfig: issuedFor, Secrets: credentials, Rewrite: reach.Rewrite(c.config.LocalServers), Management: c.config.Platform.RESTConfig(), Scheme: c.config.Scheme, Logger: c.config.Logger,
		WrapTransport: c.signIn, IdleTimeout: c.config.IdleTimeout,
		QPS: -1, // API servers limit their clients themselves
	})
	return err
}

// issuedFor returns where the kubeconfig is that was issued for an AccessRequest.
func issuedFor(obj any) (secret target.Key, entry string) {
	if ar, ok := obj.(*v1alpha1.AccessRequest); ok && ar.Status.SecretRef != nil {
		secret = target.Key{Namespace: ar.Namespace, Name: ar.Status.SecretRef.Name}
	}
	return secret, v1alpha1.KubeconfigKey
}

// Start runs until ctx ends, and then returns nil when everything has stopped. It is a manager.Runnable.
func (c *Clusters[D]) Start(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _ = c.requests.Run(ctx) }) // never fails
	for _, f := range c.fixed {
		if f.targets != nil {
			wg.Go(func() { _ = f.targets.Run(ctx) }) // never fails
		}
	}
	return c.targets.Run(ctx)
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: replicas that wait have everything ready.
func (c *Clusters[D]) NeedLeaderElection() bool { return false }

// WaitForSync returns nil once everything is known that was there when Start was called, and the error of ctx when that ends
// before.
func (c *Clusters[D]) WaitForSync(ctx context.Context) error {
	for _, s := range append(c.notices(), c.requests) {
		if err := s.WaitForSync(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Changes tells a controller which objects are concerned when a request is granted, denied or gone, and when a cluster stops or
// begins to answer. The controller begins its work when everything is known: see WaitForSync.
func (c *Clusters[D]) Changes() source.Source {
	return changes{known: c.WaitForSync, Source: source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		c.subscribe(ctx, queue.Add)
		return nil
	})}
}

// changes is a source.SyncingSource.
type changes struct {
	source.Source
	known func(ctx context.Context) error
}

// WaitForSync implements source.SyncingSource.
func (c changes) WaitForSync(ctx context.Context) error { return c.known(ctx) }

// subscribe has add told of the objects that are concerned by a change, until ctx ends.
func (c *Clusters[D]) subscribe(ctx context.Context, add func(reconcile.Request)) {
	changed := func(e informer.Event) {
		if obj, ok := e.Object.(client.Object); ok {
			// One that names no kind or no cluster yet may be for an object elsewhere. It names them soon, if there is an object.
			from, _ := c.served.known()
			if request, ok := requestOf(obj); ok && from.isNamedBy(obj) {
				add(request)
			}
		}
	}
	stops := []func(){c.access.Subscribe(changed), c.requests.Subscribe(changed)}
	for _, notices := range c.notices() {
		stops = append(stops, notices.Subscribe(func(e informer.Event) {
			if e.Type != informer.Deleted {
				add(reconcile.Request{NamespacedName: e.Key})
			}
		}))
	}
	context.AfterFunc(ctx, func() {
		for _, stop := range stops {
			stop()
		}
	})
}

// Cluster returns the cluster of an object. It is granted or Fixed, and answered last time it was asked; otherwise the error says why
// not. For a cluster that does not answer that is a target.UnreachableError, also when the credentials could not be renewed meanwhile. The
// clients of what is returned stay good for as long as the object has access, whatever happens to the credentials. All objects get the same
// one of a Fixed cluster.
func (c *Clusters[D]) Cluster(ctx context.Context, request reconcile.Request, id string) (*clusters.Cluster, error) {
	if f := c.fixed[id]; f != nil {
		return f.cluster(request, &c.config)
	}
	ar, err := c.AccessRequest(ctx, request, id)
	if err != nil {
		return nil, err
	}
	phase := cmp.Or(ar.Status.Phase, v1alpha1.PhasePending)
	if ar.Status.ObservedGeneration != ar.Generation { // what is granted is what was asked for before
		phase = v1alpha1.PhasePending
	}
	issued := ar.Status.SecretRef != nil && ar.DeletionTimestamp == nil
	if phase == v1alpha1.PhaseGranted && issued {
		return c.reach(request, id, ar)
	}
	err = fmt.Errorf("access to the %s cluster of %s is not granted: AccessRequest %s/%s is %s: %s",
		id, request, ar.Namespace, ar.Name, phase, cmp.Or(v1alpha1.Granted(ar.Status.Conditions).Message, "it says no more"))
	if phase == v1alpha1.PhasePending && issued {
		// A cluster that is gone for good gives no new credentials: whether it answers is told by the old ones.
		if _, reachErr := c.reach(request, id, ar); errors.Is(reachErr, target.ErrUnreachable) {
			err = fmt.Errorf("%w; with the credentials that were issued before: %w", err, reachErr)
		}
	}
	return nil, err
}

// reach returns the cluster of an object, by the credentials that were issued for a request.
func (c *Clusters[D]) reach(request reconcile.Request, id string, ar *v1alpha1.AccessRequest) (*clusters.Cluster, error) {
	key := client.ObjectKeyFromObject(ar)
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.used[use{request, id}]
	if out == nil || out.key != key {
		c.release(use{request, id})
		out = &used{key: key}
		c.used[use{request, id}] = out
	}
	on, err := c.targets.Acquire(key, request.NamespacedName)
	if err == nil {
		err = on.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("reach the %s cluster of %s: %w", id, request, err)
	}
	return out.by(on, id+" of "+request.String(), c.config.Scheme)
}

// release ends the use of a cluster by an object, whatever became of the request. c.mu is held.
func (c *Clusters[D]) release(of use) {
	if out := c.used[of]; out != nil {
		c.targets.Release(out.key, of.request.NamespacedName)
		delete(c.used, of)
	}
}

// AccessRequest returns the AccessRequest of a cluster of an object. Without one it is an error for which
// apierrors.IsNotFound holds.
func (c *Clusters[D]) AccessRequest(ctx context.Context, request reconcile.Request, id string) (*v1alpha1.AccessRequest, error) {
	return c.accessRequest(ctx, request, id, c.serves)
}

// ClusterRequest returns the ClusterRequest of a cluster of an object, of those that ask for one of their own. Without one it
// is an error for which apierrors.IsNotFound holds.
func (c *Clusters[D]) ClusterRequest(ctx context.Context, request reconcile.Request, id string) (*v1alpha1.ClusterRequest, error) {
	return c.clusterRequest(ctx, request, id, c.serves)
}

// chooses reports whether a request is for an object of an origin.
type chooses func(o origin, of reconcile.Request, request client.Object) bool

// adopts is a chooses for requests that are adopted.
func adopts(o origin, _ reconcile.Request, request client.Object) bool { return o.adopts(request) }

func (c *Clusters[D]) accessRequest(ctx context.Context, request reconcile.Request, id string, which chooses) (*v1alpha1.AccessRequest, error) {
	found, err := c.find(ctx, &v1alpha1.AccessRequestList{}, v1alpha1.AccessRequestKind, request, id, which)
	ar, _ := found.(*v1alpha1.AccessRequest)
	return ar, err
}

func (c *Clusters[D]) clusterRequest(ctx context.Context, request reconcile.Request, id string, which chooses) (*v1alpha1.ClusterRequest, error) {
	found, err := c.find(ctx, &v1alpha1.ClusterRequestList{}, v1alpha1.ClusterRequestKind, request, id, which)
	cr, _ := found.(*v1alpha1.ClusterRequest)
	return cr, err
}

// find lists what was asked for an object, and returns what is for the cluster. What names the origin of the objects comes before what does
// not: that may be for an object of another kind, and have lost its annotation.
func (c *Clusters[D]) find(ctx context.Context, list client.ObjectList, kind string, request reconcile.Request, id string, which chooses) (found client.Object, err error) {
	from, err := c.served.read(ctx)
	if err == nil {
		err = c.reader.List(ctx, list, c.asked(request)...)
	}
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			o, ok := item.(client.Object)
			if ok && o.GetLabels()[AccessLabel] == id && which(from, request, o) && (found == nil || from.isNamedBy(o) && !from.isNamedBy(found)) {
				found = o
			}
			return nil
		})
	}
	if err == nil && found == nil {
		resources, _ := meta.UnsafeGuessKindToResource(v1alpha1.GroupVersion.WithKind(kind))
		err = apierrors.NewNotFound(resources.GroupResource(), c.config.meta(request, id, from).Name)
	}
	if err != nil {
		return nil, fmt.Errorf("read the %s for the %s cluster of %s: %w", kind, id, request, err)
	}
	return found, nil
}

// asked selects what was asked for an object.
func (c *Clusters[D]) asked(request reconcile.Request) []client.ListOption {
	return []client.ListOption{client.InNamespace(c.config.Namespace), client.MatchingLabelsSelector{Selector: c.config.selects(ObjectLabel, request.Namespace, request.Name)}}
}
