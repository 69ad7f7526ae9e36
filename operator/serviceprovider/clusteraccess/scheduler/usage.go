package scheduler

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statusresource"
)

// counts returns how many requests of all providers each Cluster has. The source knows what this operator has written (informer.Writes).
func (s *scheduler) counts(ctx context.Context) (map[string]int, error) {
	list := &v1alpha1.ClusterRequestList{}
	if err := s.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the ClusterRequests: %w", err)
	}
	counts := map[string]int{}
	for i := range list.Items {
		if ref := list.Items[i].Status.ClusterRef; ref != nil {
			counts[ref.Name]++
		}
	}
	return counts, nil
}

// count makes the status of a Cluster, as far as it is the scheduler's.
func (s *scheduler) count(ctx context.Context, c *v1alpha1.Cluster, _ *statusresource.Report) error {
	if s.used.HolderOf(c) != "" {
		return nil
	}
	counts, err := s.counts(ctx)
	c.Status.Requests = int32(counts[c.Name])
	return err
}

// accessTo returns the names of the AccessRequests that refer to a ClusterRequest.
func (s *scheduler) accessTo(ctx context.Context, r *v1alpha1.ClusterRequest) ([]string, error) {
	access, err := s.accessThat(ctx, func(ar *v1alpha1.AccessRequest) bool {
		return ar.Namespace == r.Namespace && ar.Spec.RequestRef != nil && ar.Spec.RequestRef.Name == r.Name
	})
	var names []string
	for _, key := range access {
		names = append(names, key.Name)
	}
	return names, err
}

// accessThat returns the AccessRequests of all namespaces for which a condition holds.
func (s *scheduler) accessThat(ctx context.Context, holds func(*v1alpha1.AccessRequest) bool) ([]client.ObjectKey, error) {
	list := &v1alpha1.AccessRequestList{}
	if err := s.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the AccessRequests: %w", err)
	}
	var keys []client.ObjectKey
	for i := range list.Items {
		if holds(&list.Items[i]) {
			keys = append(keys, client.ObjectKeyFromObject(&list.Items[i]))
		}
	}
	return keys, nil
}

// keeper is a resource that keeps an object while something uses it.
type keeper struct {
	*scheduler
	isUsed func(ctx context.Context, obj any) (bool, error)
}

// Name implements framework.Resource.
func (keeper) Name() string { return "users" }

// EnsureCreated implements framework.Resource.
func (keeper) EnsureCreated(context.Context, any) error { return nil }

// EnsureDeleted implements framework.Resource. What a source lacks may use the object too, and may come to the source while it is looked for.
func (k keeper) EnsureDeleted(ctx context.Context, obj any) error {
	used, err := k.isUsed(ctx, obj)
	if err == nil && !used {
		for _, source := range []*informer.Kubernetes{k.access, k.requests} {
			var hasAll bool
			if hasAll, err = source.HasAll(ctx); err != nil || !hasAll {
				finalizerskeptcontext.SetKept(ctx)
				return err
			}
		}
		used, err = k.isUsed(ctx, obj)
	}
	if used {
		finalizerskeptcontext.SetKept(ctx)
	}
	return err
}

// Plan implements framework.Planner.
func (keeper) Plan(context.Context, plan.Event, any) ([]plan.Change, error) { return nil, nil }

// unreleased tells whether an AccessRequest refers to a ClusterRequest.
func (s *scheduler) unreleased(ctx context.Context, obj any) (bool, error) {
	users, err := s.accessTo(ctx, obj.(*v1alpha1.ClusterRequest))
	return len(users) > 0, err
}

// unretired tells whether anything is bound to a Cluster, also to people.
func (s *scheduler) unretired(ctx context.Context, obj any) (bool, error) {
	c := obj.(*v1alpha1.Cluster)
	access, err := s.accessThat(ctx, func(ar *v1alpha1.AccessRequest) bool {
		return ar.Status.ClusterRef != nil && ar.Status.ClusterRef.Name == c.Name
	})
	if err != nil {
		return false, err
	}
	counts, err := s.counts(ctx)
	if err != nil || len(access) == 0 && counts[c.Name] == 0 {
		return false, err
	}
	var users []string
	for _, key := range access {
		users = append(users, key.String())
	}
	framework.Recorder(ctx, s.recorder).Event(c, corev1.EventTypeWarning, v1alpha1.ReasonInUse, fmt.Sprintf(
		"The deletion waits for %d ClusterRequests and %d AccessRequests (%s).", counts[c.Name], len(users), some(users)))
	return true, nil
}
