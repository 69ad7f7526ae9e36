package granter

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/internal/claims"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/internal/reach"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/objectresource"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
	"github.com/operatorkit/operatorkit/resource/statusresource"
)

// frameworkName is the name of the framework that grants, which is in the marks of what it makes.
const frameworkName = "granter"

// granter is the logic of the framework.
type granter struct {
	config   Config
	client   client.Client
	logger   micrologger.Logger
	recorder framework.EventRecorder
	clusters *target.Clusters
	// observed are the Clusters of which this granter tells whether they answer.
	observed *claims.Claims

	// requests, clusterRequests and known are the AccessRequests, ClusterRequests and Clusters; kubeconfigs are the Secrets
	// with which Clusters are managed, issued those that the granter writes.
	requests, clusterRequests, known, kubeconfigs, issued *informer.Kubernetes
	reader                                                client.Reader
}

// New returns the frameworks for AccessRequests and for the health of Clusters, in this order, and registers their metrics. It is called once for each Dependencies. The
// scheme of these has to know v1alpha1.AddToScheme and the types of Kubernetes.
//
// The error is one for which framework.IsInvalidConfig holds if it is about the configuration.
func New(d *operator.Dependencies, config Config) ([]*framework.Framework, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	g := &granter{config: config, client: d.Client, logger: d.Logger, recorder: d.Recorder}
	if err := g.open(d); err != nil {
		return nil, err
	}
	resources, err := g.resources()
	if err != nil {
		return nil, err
	}
	requests, err := d.NewFramework(framework.Config{
		Name: frameworkName, Source: g.requests, InitCtx: g.begin, Resources: resources,
		Watches: []framework.Watch{
			{Source: g.known, Map: g.requestsForCluster},
			{Source: g.clusterRequests, Map: g.requestsForClusterRequest},
			{Source: g.issued, Map: informer.OwnerMap(accessRequestKind, informer.ControllerOnly)},
			{Source: g.clusters.Notices(), Map: usersOfNotice},
		},
	})
	if err != nil {
		return nil, err
	}
	health, err := g.newHealth(d)
	if err != nil {
		return nil, err
	}
	left, err := g.newLeftovers(d)
	if err != nil {
		return nil, err
	}
	if err := d.Registry.Register(metrics{g}); err != nil {
		return nil, fmt.Errorf("register the metrics of access: %w", err)
	}
	return []*framework.Framework{requests, health, left}, nil
}

// usersOfNotice is the map function from a notice to the AccessRequest that it is for.
func usersOfNotice(ctx context.Context, obj any) []informer.Key {
	if n, ok := obj.(*target.Notice); ok && strings.HasPrefix(n.User.Name, healthPrefix) {
		return nil
	}
	return target.Users(ctx, obj)
}

var accessRequestKind = schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.AccessRequestKind}

// open makes the sources, and the connections to clusters.
func (g *granter) open(d *operator.Dependencies) error {
	clusters := operator.InNamespaces(g.config.Layout.Clusters)
	issued := &metav1.PartialObjectMetadata{}
	issued.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	for _, of := range []struct {
		source  **informer.Kubernetes
		object  client.Object
		options []operator.SourceOption
	}{
		{&g.requests, &v1alpha1.AccessRequest{}, nil},
		{&g.clusterRequests, &v1alpha1.ClusterRequest{}, nil},
		{&g.known, &v1alpha1.Cluster{}, []operator.SourceOption{clusters}},
		{&g.kubeconfigs, &corev1.Secret{}, []operator.SourceOption{clusters, operator.WithLabels(g.config.Secrets)}},
		{&g.issued, issued, []operator.SourceOption{operator.WithLabels(labels.SelectorFromSet(granted))}},
	} {
		var err error
		if *of.source, err = d.NewSource(of.object, of.options...); err != nil {
			return err
		}
	}
	g.reader = informer.NewReader(d.Client.Scheme(), g.requests, g.clusterRequests, g.known)

	concerned := objectresource.OwnerMap(accessRequestKind)
	var err error
	g.clusters, err = target.New(target.Config{
		Deployments: g.known, Kubeconfig: managedBy, Secrets: g.kubeconfigs, Rewrite: reach.Rewrite(g.config.LocalServers), Management: d.RESTConfig, WrapTransport: d.Fence.TransportTo(g.config.WrapTransport), Logger: d.Logger, Registerer: d.Registry,
		Owners: func(_ target.Key, obj client.Object) []target.Key { return concerned(context.Background(), obj) },
		QPS:    -1, // API servers limit their clients themselves
	})
	if err != nil {
		return err
	}
	g.requests.Subscribe(func(e informer.Event) {
		if e.Type == informer.Deleted {
			g.clusters.ReleaseAll(e.Key)
		}
	})
	return nil
}

// resources returns the resources of a request, in their order: what is needed in the cluster, credentials, and what is told.
func (g *granter) resources() ([]framework.Resource, error) {
	rights, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[*v1alpha1.AccessRequest, accessState]{
		Logger: g.logger, Ops: &access{g},
	})
	if err != nil {
		return nil, err
	}
	tokens, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[*v1alpha1.AccessRequest, secretState]{
		Logger: g.logger, Ops: &secrets{g},
	})
	if err != nil {
		return nil, err
	}
	claim, err := statusresource.New(statusresource.Config[*v1alpha1.AccessRequest]{
		Name: "claim", Custom: true, Client: g.client, Logger: g.logger, Set: g.claim,
		Written: func(ctx context.Context, _, after *v1alpha1.AccessRequest) { workOf(ctx).claimed = after },
	})
	if err != nil {
		return nil, err
	}
	status, err := statusresource.New(statusresource.Config[*v1alpha1.AccessRequest]{
		Custom: true, Client: g.client, Logger: g.logger, Set: g.status, Written: g.tell,
		Current: func(ctx context.Context, ar *v1alpha1.AccessRequest) *v1alpha1.AccessRequest {
			if claimed := workOf(ctx).claimed; claimed != nil {
				return claimed
			}
			return ar
		},
	})
	if err != nil {
		return nil, err
	}
	resources := []framework.Resource{claim, noting(&neededNamespaces{g}), noting(rights), noting(tokens), status}
	for i := range resources {
		resources[i] = unlessForeign(resources[i])
	}
	return append(resources, &check{g}), nil
}

// requestsForCluster returns the AccessRequests that are for a Cluster, be it by name or by a ClusterRequest.
func (g *granter) requestsForCluster(ctx context.Context, obj any) []informer.Key {
	cluster, ok := obj.(*v1alpha1.Cluster)
	if !ok {
		return nil
	}
	return g.requestsThat(ctx, "", func(ar *v1alpha1.AccessRequest) bool {
		name, _, err := g.clusterOf(ctx, ar)
		return err == nil && name == cluster.Name
	})
}

// requestsForClusterRequest returns the AccessRequests that refer to a ClusterRequest.
func (g *granter) requestsForClusterRequest(ctx context.Context, obj any) []informer.Key {
	request, ok := obj.(*v1alpha1.ClusterRequest)
	if !ok {
		return nil
	}
	return g.requestsThat(ctx, request.Namespace, func(ar *v1alpha1.AccessRequest) bool {
		return ar.Spec.RequestRef != nil && ar.Spec.RequestRef.Name == request.Name
	})
}

// requestsThat returns the AccessRequests of a namespace, of all for "", for which a condition holds. An error of the reader is that a source
// is not synced: then everything is going to be reconciled anyway.
func (g *granter) requestsThat(ctx context.Context, namespace string, holds func(*v1alpha1.AccessRequest) bool) []informer.Key {
	list := &v1alpha1.AccessRequestList{}
	if err := g.reader.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var keys []informer.Key
	for i := range list.Items {
		if holds(&list.Items[i]) {
			keys = append(keys, client.ObjectKeyFromObject(&list.Items[i]))
		}
	}
	return keys
}

// jitter is a duration ±10 %, in whole milliseconds, which people can read.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*rand.Float64())).Truncate(time.Millisecond)
}
