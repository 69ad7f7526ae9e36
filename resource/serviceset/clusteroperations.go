package serviceset

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// OwnerOperation is what has to be done with the ServiceSet that one owner has, or should have, on a cluster.
type OwnerOperation struct {
	// Owner is whose ServiceSet it is. It lists no services when it wants none on this cluster any more.
	Owner Owner
	// Key is the namespace and the name of the ServiceSet.
	Key client.ObjectKey
	// Operation is what has to be done, nil if Err is set.
	Operation *Operation
	// Err says why the owner's services can't be resolved: see [ComputeOperation]. The set stays as it is.
	Err error
}

// ComputeClusterOperations reads all that concerns the services of a cluster, whoever owns them, and works out what has to
// be done with each ServiceSet of it, in the order of precedence of the owners. Without cd it is about the management
// cluster. It writes nothing.
//
// An owner that lists no services, does not select the cluster any more, is being deleted, or is gone, and still has a
// ServiceSet, gives its services up in the order in which they depend on each other, those that another owner takes over
// without a gap; the operation is to delete the set when it is empty. When the cluster itself is being deleted, all its
// sets are to be deleted at once, and the state manager minds the order.
//
// What is wrong with one owner is the Err of its operation; the others are worked out all the same. The error is that of the
// reader.
func ComputeClusterOperations(
	ctx context.Context, c client.Reader, systemNamespace string, cd *v1alpha1.ClusterDeployment,
) ([]OwnerOperation, error) {
	s := subject{systemNamespace: systemNamespace, cd: cd}
	sets, err := s.sets(ctx, c)
	if err != nil {
		return nil, err
	}
	if cd != nil && cd.DeletionTimestamp != nil {
		return deletions(sets), nil
	}
	known, chains, err := readTemplates(ctx, c, s.namespace())
	if err != nil {
		return nil, err
	}
	candidates, err := s.candidates(ctx, c, sets)
	if err != nil {
		return nil, err
	}
	all := make([]Owner, len(candidates))
	for i := range candidates {
		all[i] = candidates[i].owner
	}
	operations := make([]OwnerOperation, 0, len(candidates))
	for i := range candidates {
		in := Input{Owner: all[i], Others: slices.Concat(all[:i], all[i+1:]), Templates: known, Chains: chains}
		operation, err := candidates[i].operation(ctx, c, in)
		if operation == nil && err == nil {
			continue
		}
		operations = append(operations, OwnerOperation{Owner: all[i], Key: candidates[i].key, Operation: operation, Err: err})
	}
	return operations, nil
}

// deletions deletes all sets of a cluster.
func deletions(sets map[string]*v1alpha1.ServiceSet) []OwnerOperation {
	operations := make([]OwnerOperation, 0, len(sets))
	for name, set := range sets {
		owner := Owner{Kind: v1alpha1.MultiClusterServiceKind, Key: client.ObjectKey{Name: name}, Set: set}
		if name == "" {
			owner.Kind, owner.Key = v1alpha1.ClusterDeploymentKind, client.ObjectKey{Namespace: set.Namespace, Name: set.Spec.Cluster}
		}
		operations = append(operations, OwnerOperation{
			Owner: owner, Key: client.ObjectKeyFromObject(set), Operation: deletionOf(set),
		})
	}
	slices.SortFunc(operations, func(a, b OwnerOperation) int { return compareOwners(&a.Owner, &b.Owner) })
	return operations
}

// deletionOf deletes a set, unless that is under way.
func deletionOf(set *v1alpha1.ServiceSet) *Operation {
	operation := &Operation{Operation: v1alpha1.ServiceSetOperationDelete, ServiceSet: set, Before: set}
	if set.DeletionTimestamp != nil {
		operation.Operation = v1alpha1.ServiceSetOperationNone
	}
	return operation
}

// candidate is an owner that has, or should have, a ServiceSet on a cluster.
type candidate struct {
	subject

	owner Owner
	key   client.ObjectKey
}

// candidates returns the owners of a cluster by precedence, those included that only have a set left.
func (s subject) candidates(ctx context.Context, c client.Reader, sets map[string]*v1alpha1.ServiceSet) ([]candidate, error) {
	list := &v1alpha1.MultiClusterServiceList{}
	if err := c.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the MultiClusterServices: %w", err)
	}
	var found []candidate
	add := func(owner Owner, mcs *v1alpha1.MultiClusterService) {
		own := subject{s.systemNamespace, mcs, s.cd}
		key := ObjectKey(s.systemNamespace, s.cd, mcs)
		if mcs == nil && owner.Kind == v1alpha1.MultiClusterServiceKind {
			key = client.ObjectKeyFromObject(owner.Set)
		}
		found = append(found, candidate{own, owner, key})
	}
	for i := range list.Items {
		mcs := &list.Items[i]
		if s.selected(mcs) {
			add(MultiClusterServiceOwner(mcs, sets[mcs.Name]), mcs)
			delete(sets, mcs.Name)
		}
	}
	if s.cd != nil {
		add(ClusterDeploymentOwner(s.cd, sets[""]), nil)
		delete(sets, "")
	}
	for name, set := range sets {
		add(Owner{Kind: v1alpha1.MultiClusterServiceKind, Key: client.ObjectKey{Name: name}, Set: set}, nil)
	}
	slices.SortFunc(found, func(a, b candidate) int { return compareOwners(&a.owner, &b.owner) })
	return found, nil
}

// operation works out what has to be done with the owner's set. It is nil for an owner that has nothing and wants nothing.
func (o *candidate) operation(ctx context.Context, c client.Reader, in Input) (*Operation, error) {
	set := in.Owner.Set
	switch {
	case set != nil && set.DeletionTimestamp != nil:
		return deletionOf(set), nil
	case set == nil && len(in.Owner.Services) == 0:
		return nil, nil
	case len(in.Owner.Services) == 0:
		return withdraw(in)
	case set == nil:
		set = &v1alpha1.ServiceSet{}
		set.Namespace, set.Name = o.key.Namespace, o.key.Name
	}
	provider, err := o.provider(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", &in.Owner, err)
	}
	return o.operate(in, set, provider)
}

// withdraw takes away what an owner has that does not want anything any more.
func withdraw(in Input) (*Operation, error) {
	resolution, err := Resolve(in)
	if err != nil {
		return nil, fmt.Errorf("withdraw the services of %s: %w", &in.Owner, err)
	}
	before := in.Owner.Set
	if len(resolution.Services)+len(resolution.Removing) == 0 {
		operation := deletionOf(before)
		operation.Resolution = resolution
		return operation, nil
	}
	set := before.DeepCopy()
	set.Spec.Services, set.Spec.Removing = resolution.Services, resolution.Removing
	if sameSet(before, set) {
		return &Operation{Operation: v1alpha1.ServiceSetOperationNone, ServiceSet: before, Before: before, Resolution: resolution}, nil
	}
	return &Operation{Operation: v1alpha1.ServiceSetOperationUpdate, ServiceSet: set.DeepCopy(), Before: before, Resolution: resolution}, nil
}
