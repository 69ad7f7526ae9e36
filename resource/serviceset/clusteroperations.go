package serviceset

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// OwnerOperation is what has to be done with the ServiceSet that one owner has, or should have, on a cluster.
type OwnerOperation struct {
	// Owner is whose ServiceSet it is. It lists no services when it wants none on this cluster any more. A set that belongs to
	// nobody, because its owner has another one, is its own owner.
	Owner Owner
	// Key is the namespace and the name of the ServiceSet.
	Key client.ObjectKey
	// Operation is what has to be done, nil if Err is set.
	Operation *Operation
	// Err says why nothing can be done: see [ComputeClusterOperations]. The set stays as it is.
	Err error
}

// ComputeClusterOperations reads all that concerns the services of a cluster, whoever owns them, and works out what has to
// be done with each ServiceSet of it, in the order of precedence of the owners. Without cd it is about the management
// cluster. It writes nothing, and changes neither cd nor what it reads. It is safe for concurrent use. The operations may be
// carried out in any order.
//
// An owner that lists no services, does not select the cluster any more, is being deleted, or is gone, and still has a
// ServiceSet, gives its services up in the order in which they depend on each other, those that another owner takes over
// without a gap; the operation is to delete the set when it is empty. When the cluster itself is being deleted, all its
// sets are to be deleted at once, and the state manager minds the order; only the set of a MultiClusterService that others depend on
// waits until theirs are gone. A set that is being deleted is left alone. Of an owner that wants nothing and has nothing there is no
// operation.
//
// What is wrong with one owner is the Err of its operation; the others are worked out all the same: what [ComputeOperation]
// fails for; a clusterSelector that can't be read, also that of one that it depends on; a set that somebody else controls; a second set of the same owner. The
// error is that of the reader.
func ComputeClusterOperations(
	ctx context.Context, c client.Reader, systemNamespace string, cd *v1alpha1.ClusterDeployment,
) ([]OwnerOperation, error) {
	return site{systemNamespace, cd, nil}.operations(ctx, c)
}

// operations works out what has to be done with each ServiceSet of a site.
func (at site) operations(ctx context.Context, c client.Reader) ([]OwnerOperation, error) {
	candidates, err := at.candidates(ctx, c)
	if err != nil {
		return nil, err
	}
	known, chains, err := readTemplates(ctx, c, at.namespace())
	if err != nil {
		return nil, err
	}
	owners := make([]*Owner, len(candidates))
	for i := range candidates {
		owners[i] = &candidates[i].Owner
	}
	cluster := newCluster(owners, known, chains)
	operations := make([]OwnerOperation, 0, len(candidates))
	// What is found to be wrong with one owner is told to those who wait for it, in a second round.
	for found := true; found; {
		found, operations = false, operations[:0]
		for i := range candidates {
			o := &candidates[i]
			if o.Set == nil && len(o.Services) == 0 {
				continue
			}
			operation, err := o.operation(ctx, c, at, cluster)
			if err != nil && cluster.faults[&o.Owner] == nil {
				cluster.faults[&o.Owner], found = err, true
			}
			operations = append(operations, OwnerOperation{Owner: o.Owner, Key: o.key, Operation: operation, Err: err})
		}
	}
	return operations, nil
}

// operation works out what has to be done with the set of a candidate.
func (o *candidate) operation(ctx context.Context, c client.Reader, at site, cluster *cluster) (*Operation, error) {
	switch {
	case o.isLeaving():
		return nothing(o.Set, nil), nil
	case at.isLeaving() && cluster.hasDependentSets(&o.Owner):
		return nothing(o.Set, nil), nil
	case at.isLeaving():
		return o.remove(nil)
	case o.fault != nil:
		return nil, o.fault
	case len(o.Services) == 0:
		return o.withdraw(ctx, c, at, cluster)
	}
	provider, err := readProvider(ctx, c, at.spec(o.mcs))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", &o.Owner, err)
	}
	r, err := cluster.resolver(&o.Owner)
	if err != nil {
		return nil, fmt.Errorf("resolve the services of %s: %w", &o.Owner, err)
	}
	set := o.there
	if set == nil {
		set = newSet(o.key)
	}
	operation, err := build(o.there, r.Resolution, NewBuilder(at.cd, set, &provider.Spec.Selector).WithMultiClusterService(o.mcs))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", &o.Owner, err)
	}
	operation.Suspended = provider.Spec.Suspend
	return operation, nil
}

// withdraw takes away what an owner has that does not want anything any more, and at last the set.
func (o *candidate) withdraw(ctx context.Context, c client.Reader, at site, cluster *cluster) (*Operation, error) {
	r, err := cluster.resolver(&o.Owner)
	if err != nil {
		return nil, fmt.Errorf("withdraw the services of %s: %w", &o.Owner, err)
	}
	if len(o.Set.Spec.Services)+len(r.Services)+len(r.Removing) == 0 {
		return o.remove(r.Resolution)
	}
	if err := o.checkController(); err != nil {
		return nil, err
	}
	after := *o.Set
	after.Spec.Services, after.Spec.Removing = r.Services, r.Removing
	withdrawn, err := at.relabel(ctx, c, after.DeepCopy())
	if err != nil {
		return nil, fmt.Errorf("withdraw the services of %s: %w", &o.Owner, err)
	}
	stamp(o.Set, withdrawn)
	return replace(o.Set, withdrawn, r.Resolution), nil
}

// relabel returns a set with the labels by which its provider finds it, which somebody may have taken off: without them nobody takes away
// what is in it. Without a provider, or with a selector that no labels fulfil, the set is returned as it is.
func (at site) relabel(ctx context.Context, c client.Reader, set *v1alpha1.ServiceSet) (*v1alpha1.ServiceSet, error) {
	of := v1alpha1.ServiceSpec{Provider: v1alpha1.StateManagementProviderConfig{Name: set.Spec.Provider.Name}}
	provider, err := readProvider(ctx, c, &of)
	if err != nil {
		return set, client.IgnoreNotFound(err)
	}
	labelled := set.DeepCopy()
	if NewBuilder(at.cd, set, &provider.Spec.Selector).setLabels(labelled) != nil {
		return set, nil
	}
	return labelled, nil
}

// remove deletes the set.
func (o *candidate) remove(resolution *Resolution) (*Operation, error) {
	if err := o.checkController(); err != nil {
		return nil, err
	}
	return &Operation{
		Operation: v1alpha1.ServiceSetOperationDelete, ServiceSet: o.Set, Before: o.Set, Resolution: resolution,
	}, nil
}
