package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"helm.sh/helm/v4/pkg/release"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// cluster is a control plane, and ways to it.
type cluster struct {
	instance *operatortest.Instance
	// config reaches it with all rights.
	config *rest.Config
	http   *http.Client
	client client.WithWatch
	// stopNode ends its node, and waits for that.
	stopNode func()
}

// clusterConfig is how a cluster is started.
type clusterConfig struct {
	scheme   *runtime.Scheme
	progress io.Writer
	// workloads run, on a node.
	workloads bool
	// wrap goes around all requests, and may be nil.
	wrap func(http.RoundTripper) http.RoundTripper
}

// startCluster starts a control plane.
func startCluster(ctx context.Context, wanted clusterConfig) (c *cluster, err error) {
	c = &cluster{stopNode: func() {}}
	config := operatortest.Config{Progress: wanted.progress}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop(ctx))
		}
	}()
	if wanted.workloads {
		config.Controllers = operatortest.WorkloadControllers()
	}
	if c.instance, err = operatortest.Run(ctx, config); err != nil {
		return c, err
	}
	c.config = c.instance.RESTConfig()
	// Charts of all ages are tried: what is deprecated in them is not the question.
	c.config.WarningHandler, c.config.WarningHandlerWithContext = rest.NoWarnings{}, nil
	if wanted.wrap != nil {
		c.config.Wrap(wanted.wrap)
	}
	if c.http, err = rest.HTTPClientFor(c.config); err != nil {
		return c, err
	}
	if c.client, err = client.NewWithWatch(c.config, client.Options{HTTPClient: c.http, Scheme: wanted.scheme}); err != nil {
		return c, err
	}
	if wanted.workloads {
		running, cancel := context.WithCancel(context.WithoutCancel(ctx))
		var node sync.WaitGroup
		node.Go(func() { _ = operatortest.RunNode(running, c.config, operatortest.NodeConfig{}) })
		c.stopNode = func() {
			cancel()
			node.Wait()
		}
		err = eventually(ctx, startTimeout, func() error { return c.hasNode(ctx) })
	}
	return c, err
}

// hasNode tells whether the node is ready, so that it is not taken for a part of a chart.
func (c *cluster) hasNode(ctx context.Context) error {
	node := &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Node"})
	return c.client.Get(ctx, client.ObjectKey{Name: operatortest.DefaultNodeName}, node)
}

func (c *cluster) stop(ctx context.Context) error {
	c.stopNode()
	if c.http != nil {
		utilnet.CloseIdleConnectionsFor(c.http.Transport)
	}
	if c.instance == nil {
		return nil
	}
	return c.instance.Stop(context.WithoutCancel(ctx))
}

// eventually waits until f returns nil, and returns its last error after the time-out.
func eventually(ctx context.Context, timeout time.Duration, f func() error) error {
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-deadline.C:
			return err
		case <-time.After(look):
		}
	}
}

// pause waits for a while.
func pause(ctx context.Context, while time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(while):
		return nil
	}
}

// key names an object, whatever its version.
type key struct {
	kind schema.GroupKind
	client.ObjectKey
}

func keyOf(u *unstructured.Unstructured) key {
	return key{kind: u.GroupVersionKind().GroupKind(), ObjectKey: client.ObjectKeyFromObject(u)}
}

// String names it for people.
func (k key) String() string {
	return k.kind.String() + " " + strings.TrimPrefix(k.ObjectKey.String(), "/")
}

// objects are those of a cluster.
type objects map[key]*unstructured.Unstructured

// passing are the kinds that controllers write, and that are not looked at.
var passing = []schema.GroupResource{
	{Resource: "events"}, {Group: "events.k8s.io", Resource: "events"}, {Group: "coordination.k8s.io", Resource: "leases"}, {Resource: "endpoints"},
	{Group: "discovery.k8s.io", Resource: "endpointslices"}, {Group: "networking.k8s.io", Resource: "ipaddresses"},
}

// automanaged is the label of the APIServices that the API server makes for definitions.
const automanaged = "kube-aggregator.kubernetes.io/automanaged"

// recordType is the type of the Secrets in which Helm keeps releases.
const recordType = "helm.sh/release.v1"

// objects lists everything on the cluster but for what was there before, what controllers make for others, and the records of releases.
func (c *cluster) objects(ctx context.Context, before map[types.UID]bool) (objects, error) {
	resources, err := discovery.NewDiscoveryClientForConfigAndClient(c.config, c.http)
	if err != nil {
		return nil, err
	}
	lists, err := resources.ServerPreferredResourcesWithContext(ctx)
	// An API that another program serves can't be reached: there is none in the pods.
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("list the kinds of the cluster: %w", err)
	}
	all, err := dynamic.NewForConfigAndClient(c.config, c.http)
	if err != nil {
		return nil, err
	}
	found := objects{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			resource := version.WithResource(r.Name)
			if !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "delete") || slices.Contains(passing, resource.GroupResource()) {
				continue
			}
			items, err := all.Resource(resource).List(ctx, metav1.ListOptions{})
			switch {
			case apierrors.IsNotFound(err), apierrors.IsServiceUnavailable(err), apierrors.IsMethodNotSupported(err):
				continue // it has gone meanwhile, or is not there yet
			case err != nil:
				return nil, fmt.Errorf("list %s: %w", resource.GroupResource(), err)
			}
			for i := range items.Items {
				if u := &items.Items[i]; !before[u.GetUID()] && isOwn(u) {
					found[keyOf(u)] = u
				}
			}
		}
	}
	return found, nil
}

// isOwn tells whether an object is there for its own sake.
func isOwn(u *unstructured.Unstructured) bool {
	kind, _, _ := unstructured.NestedString(u.Object, "type")
	return metav1.GetControllerOf(u) == nil && u.GetLabels()[automanaged] == "" && (u.GetKind() != "Secret" || kind != recordType)
}

// uids are those of all objects that are there.
func (c *cluster) uids(ctx context.Context) (map[types.UID]bool, error) {
	found, err := c.objects(ctx, nil)
	uids := map[types.UID]bool{}
	for _, u := range found {
		uids[u.GetUID()] = true
	}
	return uids, err
}

// clean deletes what a subject has left, and waits until it is gone.
func (c *cluster) clean(ctx context.Context, before map[types.UID]bool) error {
	return eventually(ctx, cleanTimeout, func() error {
		left, err := c.objects(ctx, before)
		if err != nil {
			return err
		}
		for k, u := range left {
			if u.GetKind() != "Namespace" && len(u.GetFinalizers()) > 0 {
				patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
				if err := client.IgnoreNotFound(c.client.Patch(ctx, u.DeepCopy(), patch)); err != nil {
					return fmt.Errorf("take the finalizers from %s: %w", k, err)
				}
			}
			if u.GetDeletionTimestamp() != nil {
				continue
			}
			if err := client.IgnoreNotFound(c.client.Delete(ctx, u, client.PropagationPolicy(metav1.DeletePropagationBackground))); err != nil {
				return fmt.Errorf("delete %s: %w", k, err)
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("%s is still there", slices.MinFunc(slices.Collect(maps.Keys(left)), func(a, b key) int { return strings.Compare(a.String(), b.String()) }))
		}
		return nil
	})
}

// storage is Helm's, of the releases in a namespace.
func (c *cluster) storage(namespace string) (*storage.Storage, error) {
	core, err := corev1client.NewForConfigAndClient(c.config, c.http)
	if err != nil {
		return nil, err
	}
	secrets := driver.NewSecrets(core.Secrets(namespace))
	secrets.SetLogger(slog.DiscardHandler)
	return storage.Init(secrets), nil
}

// records are the revisions of a release, the oldest first.
func (c *cluster) records(namespace, name string) ([]*releasev1.Release, error) {
	store, err := c.storage(namespace)
	if err != nil {
		return nil, err
	}
	found, err := store.History(name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the records of release %s/%s: %w", namespace, name, err)
	}
	return revisions(found)
}

func revisions(found []release.Releaser) ([]*releasev1.Release, error) {
	var all []*releasev1.Release
	for _, r := range found {
		known, ok := r.(*releasev1.Release)
		if !ok {
			return nil, fmt.Errorf("a record of a release is a %T, which is not known", r)
		}
		all = append(all, known)
	}
	releaseutil.SortByRevision(all)
	return all, nil
}
