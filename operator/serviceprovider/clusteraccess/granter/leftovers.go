package granter

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/objectresource"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// clusterLabel is, on what the granter makes in a cluster, the UID of the Cluster that it was made for.
const clusterLabel = "clusters.operatorkit.io/cluster"

// leftovers takes away what was granted in a Cluster to AccessRequests that went without being let go. A service provider can take the
// granter's finalizer off its own, and to a granter that did not run meanwhile nothing tells of them but what they left.
type leftovers struct{ *granter }

// leftover is what is left in a cluster of one AccessRequest.
type leftover struct {
	request *v1alpha1.AccessRequest
	objects objectresource.State
	on      *framework.TypedCRUDResource[*v1alpha1.AccessRequest, objectresource.State]
}

// newLeftovers makes the framework that takes away what is left in Clusters. It is apart from that of their health, which is one
// granter's of several: what each has left only it knows.
func (g *granter) newLeftovers(d *operator.Dependencies) (*framework.Framework, error) {
	return d.NewFramework(framework.Config{
		Name: "cluster-leftovers", Source: g.known, Resources: []framework.Resource{&leftovers{g}}, DisableFinalizer: true,
		Watches: []framework.Watch{{Source: g.clusters.Notices(), Map: clusterOfNotice}},
	})
}

// Name implements framework.Resource.
func (*leftovers) Name() string { return "leftovers" }

// EnsureCreated implements framework.Resource.
func (l *leftovers) EnsureCreated(ctx context.Context, obj any) error {
	requeuecontext.SetAfter(ctx, jitter(l.config.CheckInterval))
	return l.EnsureDeleted(ctx, obj)
}

// EnsureDeleted implements framework.Resource.
func (l *leftovers) EnsureDeleted(ctx context.Context, obj any) error {
	cluster := obj.(*v1alpha1.Cluster)
	ctx = l.asGranter(ctx)
	found, err := l.find(ctx, cluster)
	errs := []error{err}
	for _, left := range found {
		if err := left.on.ApplyDeleteChange(ctx, left.request, left.objects); err != nil {
			errs = append(errs, fmt.Errorf("take away what is left of AccessRequest %s: %w", client.ObjectKeyFromObject(left.request), err))
			continue
		}
		framework.Recorder(ctx, l.recorder).Event(cluster, corev1.EventTypeWarning, "LeftAccess", fmt.Sprintf(
			"AccessRequest %s is gone, and what was granted to it in the cluster was still there: it is taken away.", client.ObjectKeyFromObject(left.request)))
	}
	return errors.Join(errs...)
}

// Plan implements framework.Planner.
func (l *leftovers) Plan(ctx context.Context, _ plan.Event, obj any) ([]plan.Change, error) {
	found, err := l.find(l.asGranter(ctx), obj.(*v1alpha1.Cluster))
	var changes []plan.Change
	for _, left := range found {
		changes = append(changes, left.objects.Changes()...)
	}
	return changes, err
}

// asGranter returns a context in which the framework that grants is at work, whose marks are on what it has made.
func (l *leftovers) asGranter(ctx context.Context) context.Context {
	scope := &identity.Scope{Identity: identity.From(ctx).Identity}
	scope.Framework, scope.FormerFrameworks = frameworkName, nil
	return identity.NewContext(ctx, scope)
}

// find returns what is left in a cluster that answers. Of one that the platform has abandoned nothing is looked at.
func (l *leftovers) find(ctx context.Context, cluster *v1alpha1.Cluster) ([]leftover, error) {
	if v1alpha1.IsAbandoned(cluster) {
		return nil, nil
	}
	key := client.ObjectKeyFromObject(cluster)
	on, err := l.clusters.Acquire(key, healthUser(key))
	if err != nil || on.Err() != nil { // a notice tells when it answers
		return nil, err
	}
	objects, err := l.objectsOn(on)
	if err != nil {
		return nil, err
	}
	owners, err := l.owners(ctx, on, cluster.UID)
	if err != nil {
		return nil, err
	}
	var found []leftover
	for owner := range owners {
		if known, _, err := l.requests.Get(owner); err == nil && isGranted(known, cluster) {
			continue
		}
		left := leftover{request: &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: owner.Name}}, on: objects}
		there, err := objects.GetCurrentState(ctx, left.request)
		if err != nil {
			return nil, err
		}
		// The API server is asked behind that: a request of this name that comes now has noted the Cluster before anything is made for it.
		living := &v1alpha1.AccessRequest{}
		if err := l.client.Get(ctx, owner, living); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read AccessRequest %s, of which there is something in Cluster %s: %w", owner, cluster.Name, err)
		} else if err == nil && isGranted(living, cluster) {
			continue
		}
		patch, err := objects.NewDeletePatch(ctx, left.request, there, objectresource.State{})
		if err != nil {
			return nil, err
		}
		if remove, ok := patch.DeleteChange(); ok {
			left.objects = remove
			found = append(found, left)
		}
	}
	return found, nil
}

// isGranted tells whether something is an AccessRequest that may have access to a cluster.
func isGranted(obj any, cluster *v1alpha1.Cluster) bool {
	ar, ok := obj.(*v1alpha1.AccessRequest)
	return ok && ar.Status.ClusterRef != nil && ar.Status.ClusterRef.Name == cluster.Name
}

// owners are the AccessRequests that the marks name of what was made for a Cluster.
func (l *leftovers) owners(ctx context.Context, on *target.Cluster, cluster types.UID) (map[informer.Key]bool, error) {
	owners, ownersOf := map[informer.Key]bool{}, objectresource.OwnerMap(accessRequestKind)
	for _, kind := range watchedKinds() {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersionKind)
		if err := on.Client().List(ctx, list, client.MatchingLabels(granted), client.MatchingLabels{clusterLabel: string(cluster)}); err != nil {
			return nil, fmt.Errorf("list what was granted, of kind %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			for _, owner := range ownersOf(ctx, &list.Items[i]) {
				owners[owner] = true
			}
		}
	}
	return owners, nil
}
