package scheduler

import (
	"context"
	"slices"

	"github.com/giantswarm/micrologger"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statusresource"
)

// scheduler is the logic of both frameworks.
type scheduler struct {
	client   client.Client
	logger   micrologger.Logger
	recorder framework.EventRecorder

	requests, clusters, access *informer.Kubernetes
	reader                     client.Reader
	bound                      bindings
}

// New returns the frameworks for ClusterRequests and Clusters, in this order. The scheme of the Dependencies has to know
// v1alpha1.AddToScheme.
func New(d *operator.Dependencies) ([]*framework.Framework, error) {
	s := &scheduler{client: d.Client, logger: d.Logger, recorder: d.Recorder}
	for source, object := range map[**informer.Kubernetes]client.Object{
		&s.requests: &v1alpha1.ClusterRequest{}, &s.clusters: &v1alpha1.Cluster{}, &s.access: &v1alpha1.AccessRequest{},
	} {
		gvk, err := apiutil.GVKForObject(object, d.Client.Scheme())
		if err != nil {
			return nil, err
		}
		*source, err = informer.NewKubernetes(informer.KubernetesConfig{
			// Named apart from the granter's, which may run in the same operator.
			Client: d.Client, Object: object, Name: gvk.Kind + "s to schedule", Namespaces: d.Namespaces, Logger: d.Logger,
		})
		if err != nil {
			return nil, err
		}
	}
	s.reader = informer.NewReader(d.Client.Scheme(), s.requests, s.clusters, s.access)

	placing, err := newRouter(d, statusresource.Config[*v1alpha1.ClusterRequest]{Set: s.place, Written: s.placed}, &release{s})
	if err != nil {
		return nil, err
	}
	requests, err := d.NewFramework(framework.Config{
		Name: "scheduler", Source: s.requests, ResourceRouter: placing,
		// Requests are placed one after the other, so that no two of them are given the last room.
		Workers: 1,
		Watches: []framework.Watch{{Source: s.clusters, Map: s.waitingFor}, {Source: s.access, Map: requestOfAccess}, {Source: s.requests, Map: s.waitingBeside}},
	})
	if err != nil {
		return nil, err
	}
	counting, err := newRouter(d, statusresource.Config[*v1alpha1.Cluster]{Set: s.count}, &retire{s})
	if err != nil {
		return nil, err
	}
	clusters, err := d.NewFramework(framework.Config{
		Name: "cluster-usage", Source: s.clusters, ResourceRouter: counting,
		Watches: []framework.Watch{{Source: s.requests, Map: clusterOfRequest}, {Source: s.access, Map: clusterOfAccess}},
	})
	if err != nil {
		return nil, err
	}
	return []*framework.Framework{requests, clusters}, nil
}

// newRouter makes a router with one set: a status, and what holds a deletion up.
func newRouter[O client.Object](d *operator.Dependencies, config statusresource.Config[O], last framework.Resource) (*framework.ResourceRouter, error) {
	config.Custom, config.Client, config.Logger = true, d.Client, d.Logger
	status, err := statusresource.New(config)
	if err != nil {
		return nil, err
	}
	set, err := framework.NewResourceSet(framework.ResourceSetConfig{
		Handles: framework.HandlesType[O], Logger: d.Logger, Resources: []framework.Resource{status, last},
	})
	if err != nil {
		return nil, err
	}
	return framework.NewResourceRouter(framework.ResourceRouterConfig{Logger: d.Logger, ResourceSets: []*framework.ResourceSet{set}})
}

// The functions below are the maps of the watches. An error of the reader is that a source is not synced: then everything is
// going to be reconciled anyway.

// waitingFor returns the requests that may be bound to a Cluster that has changed.
func (s *scheduler) waitingFor(ctx context.Context, obj any) []informer.Key {
	cluster, ok := obj.(*v1alpha1.Cluster)
	if !ok {
		return nil
	}
	return s.waiting(ctx, cluster.Namespace, cluster.Spec.Purposes...)
}

// waitingBeside returns the requests that may be bound now that another one has changed, and so may have made room.
func (s *scheduler) waitingBeside(ctx context.Context, obj any) []informer.Key {
	request, ok := obj.(*v1alpha1.ClusterRequest)
	if !ok || request.Status.ClusterRef == nil || request.DeletionTimestamp == nil {
		return nil
	}
	return s.waiting(ctx, request.Namespace, request.Spec.Purpose)
}

// waiting returns the requests of a namespace, for one of these purposes, that have no Cluster.
func (s *scheduler) waiting(ctx context.Context, namespace string, purposes ...string) []informer.Key {
	list := &v1alpha1.ClusterRequestList{}
	if err := s.reader.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var keys []informer.Key
	for i := range list.Items {
		if r := &list.Items[i]; r.Status.ClusterRef == nil && slices.Contains(purposes, r.Spec.Purpose) {
			keys = append(keys, client.ObjectKeyFromObject(r))
		}
	}
	return keys
}

// requestOfAccess returns the ClusterRequest that an AccessRequest refers to.
func requestOfAccess(_ context.Context, obj any) []informer.Key {
	if ar, ok := obj.(*v1alpha1.AccessRequest); ok && ar.Spec.RequestRef != nil {
		return []informer.Key{{Namespace: ar.Namespace, Name: ar.Spec.RequestRef.Name}}
	}
	return nil
}

// clusterOfRequest returns the Cluster that a ClusterRequest is bound to.
func clusterOfRequest(_ context.Context, obj any) []informer.Key {
	if r, ok := obj.(*v1alpha1.ClusterRequest); ok && r.Status.ClusterRef != nil {
		return []informer.Key{{Namespace: r.Namespace, Name: r.Status.ClusterRef.Name}}
	}
	return nil
}

// clusterOfAccess returns the Cluster that an AccessRequest has access to.
func clusterOfAccess(_ context.Context, obj any) []informer.Key {
	if ar, ok := obj.(*v1alpha1.AccessRequest); ok && ar.Status.ClusterRef != nil {
		return []informer.Key{{Namespace: ar.Namespace, Name: ar.Status.ClusterRef.Name}}
	}
	return nil
}
