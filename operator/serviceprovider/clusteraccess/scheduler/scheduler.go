package scheduler

import (
	"context"
	"slices"

	"github.com/giantswarm/micrologger"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/internal/claims"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/namespaces"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statusresource"
)

// scheduler is the logic of both frameworks.
type scheduler struct {
	layout   namespaces.Layout
	client   client.Client
	logger   micrologger.Logger
	recorder framework.EventRecorder
	// claimed are the requests that are this scheduler's to answer, used the Clusters that are its to give away.
	claimed, used *claims.Claims

	requests, clusters, access *informer.Kubernetes
	reader                     client.Reader
}

// New returns the frameworks for ClusterRequests and Clusters, in this order. The scheme of the Dependencies has to know
// v1alpha1.AddToScheme. The error is one for which framework.IsInvalidConfig holds if it is about the layout.
func New(d *operator.Dependencies, layout namespaces.Layout) ([]*framework.Framework, error) {
	layout, err := layout.Complete()
	if err != nil {
		return nil, err
	}
	s := &scheduler{layout: layout, client: d.Client, logger: d.Logger, recorder: d.Recorder}
	s.claimed = &claims.Claims{Client: d.Client, Kind: v1alpha1.ClusterRequestKind}
	s.used = &claims.Claims{Client: d.Client, Kind: v1alpha1.ClusterKind, Part: "usage"}
	if s.requests, err = d.NewSource(&v1alpha1.ClusterRequest{}); err != nil {
		return nil, err
	}
	if s.access, err = d.NewSource(&v1alpha1.AccessRequest{}); err != nil {
		return nil, err
	}
	if s.clusters, err = d.NewSource(&v1alpha1.Cluster{}, operator.InNamespaces(layout.Clusters)); err != nil {
		return nil, err
	}
	s.reader = informer.NewReader(d.Client.Scheme(), s.requests, s.clusters, s.access)

	placing, err := resources(d, statusresource.Config[*v1alpha1.ClusterRequest]{Set: s.place, Written: s.placed}, s.claimed, keeper{s, s.unreleased})
	if err != nil {
		return nil, err
	}
	s.claimed.Owner, err = d.NewFramework(framework.Config{
		Name: "scheduler", Source: s.claimed.Source(s.requests, "to place"), Resources: placing,
		// Requests are placed one after the other, so that no two of them are given the last room.
		Workers: 1,
		Watches: []framework.Watch{{Source: s.clusters, Map: s.waitingFor}, {Source: s.access, Map: requestOfAccess}, {Source: s.requests, Map: s.waitingBeside}},
	})
	if err != nil {
		return nil, err
	}
	counting, err := resources(d, statusresource.Config[*v1alpha1.Cluster]{Set: s.count}, s.used, keeper{s, s.unretired})
	if err != nil {
		return nil, err
	}
	s.used.Owner, err = d.NewFramework(framework.Config{
		Name: "cluster-usage", Source: s.used.Source(s.clusters, "to count"), Resources: counting,
		Watches: []framework.Watch{{Source: s.requests, Map: s.clusterOf}, {Source: s.access, Map: s.clusterOf}},
	})
	if err != nil {
		return nil, err
	}
	return []*framework.Framework{s.claimed.Owner, s.used.Owner}, nil
}

// resources are a claim, a status, and what holds a deletion up.
func resources[O client.Object](d *operator.Dependencies, config statusresource.Config[O], claim *claims.Claims, last framework.Resource) ([]framework.Resource, error) {
	config.Custom, config.Client, config.Logger = true, d.Client, d.Logger
	status, err := statusresource.New(config)
	return []framework.Resource{claim.Resource(), status, last}, err
}

// The functions below are the maps of the watches. An error of the reader is that a source is not synced: then everything is
// going to be reconciled anyway.

// waitingFor returns the requests that may be bound to a Cluster that has changed.
func (s *scheduler) waitingFor(ctx context.Context, obj any) []informer.Key {
	cluster, ok := obj.(*v1alpha1.Cluster)
	if !ok {
		return nil
	}
	return s.waiting(ctx, cluster.Spec.Purposes...)
}

// waitingBeside returns the requests that may be bound now that another one has changed, and so may have made room.
func (s *scheduler) waitingBeside(ctx context.Context, obj any) []informer.Key {
	request, ok := obj.(*v1alpha1.ClusterRequest)
	if !ok || request.Status.ClusterRef == nil || request.DeletionTimestamp == nil {
		return nil
	}
	return s.waiting(ctx, request.Spec.Purpose)
}

// waiting returns the requests of all providers, for one of these purposes, that have no Cluster.
func (s *scheduler) waiting(ctx context.Context, purposes ...string) []informer.Key {
	list := &v1alpha1.ClusterRequestList{}
	if err := s.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
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

// clusterOf returns the Cluster that a ClusterRequest is bound to, or that an AccessRequest has access to.
func (s *scheduler) clusterOf(_ context.Context, obj any) []informer.Key {
	var ref *v1alpha1.LocalObjectReference
	switch o := obj.(type) {
	case *v1alpha1.ClusterRequest:
		ref = o.Status.ClusterRef
	case *v1alpha1.AccessRequest:
		ref = o.Status.ClusterRef
	}
	if ref == nil {
		return nil
	}
	return []informer.Key{{Namespace: s.layout.Clusters, Name: ref.Name}}
}
