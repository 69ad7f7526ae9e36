package serviceset

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// OperationRequisites say which ServiceSet is looked at.
type OperationRequisites struct {
	// ObjectKey is the name and the namespace of the ServiceSet if there is none yet: see [ObjectKey].
	ObjectKey client.ObjectKey
	// MCS is the owner of the services, nil if that is the ClusterDeployment.
	MCS *v1alpha1.MultiClusterService
	// CD is the cluster, nil for the management cluster.
	CD *v1alpha1.ClusterDeployment
	// SystemNamespace is the namespace of the ServiceSets of the management cluster.
	SystemNamespace string
}

// Operation is what has to be done with a ServiceSet, and why. What is not to be written is shared with the reader and must
// not be changed.
type Operation struct {
	// Operation is what has to be done.
	Operation v1alpha1.ServiceSetOperation
	// ServiceSet is how the set should be. If there is nothing to do, or if it is to be deleted, it is the one that there is, nil if
	// there is none.
	ServiceSet *v1alpha1.ServiceSet
	// Before is the set that there is, nil if there is none.
	Before *v1alpha1.ServiceSet
	// Suspended tells that the StateManagementProvider is suspended: nobody carries the set out.
	Suspended bool
	// Resolution says what becomes of each service, and why. It is nil for a set that is being deleted,
	// and for the sets of a cluster that is.
	Resolution *Resolution
}

// GetServiceSetWithOperation returns how a ServiceSet should be, and whether it has to be created, updated, deleted or left alone.
// It is [ComputeOperation] without the reasons.
func GetServiceSetWithOperation(
	ctx context.Context, c client.Reader, operationReq OperationRequisites,
) (*v1alpha1.ServiceSet, v1alpha1.ServiceSetOperation, error) {
	operation, err := ComputeOperation(ctx, c, operationReq)
	if err != nil {
		return nil, v1alpha1.ServiceSetOperationNone, err
	}
	return operation.ServiceSet, operation.Operation, nil
}

// ComputeOperation works out what has to be done with the ServiceSet of one owner: it is the answer that [ComputeClusterOperations]
// has for it, with MCS and CD as they are given, whatever the reader knows of them. There is nothing to do when the sets mean the same, when
// the set is being deleted, and when the owner wants nothing on the cluster and has nothing there: then ServiceSet is nil. It writes
// nothing, and changes neither the arguments nor what it reads.
//
// Errors: ErrNoOwner, a *GraphError or a *DependencyError for what the owner has to mend, an error for which apierrors.IsNotFound holds when
// the provider does not exist, what else is the Err of an [OwnerOperation], and those of the reader.
func ComputeOperation(ctx context.Context, c client.Reader, req OperationRequisites) (*Operation, error) {
	at := site{req.SystemNamespace, req.CD, &req}
	owner, err := at.owner(req.MCS, nil)
	if err != nil {
		return nil, err
	}
	operations, err := at.operations(ctx, c)
	if err != nil {
		return nil, err
	}
	for i := range operations {
		if o := &operations[i]; o.Owner.is(&owner) {
			return o.Operation, o.Err
		}
	}
	there, err := readSet(ctx, c, req.ObjectKey)
	if err != nil || there == nil {
		return nothing(nil, nil), err
	}
	if err := NewBuilder(req.CD, there, nil).WithMultiClusterService(req.MCS).setTarget(there.DeepCopy()); err != nil {
		return nil, fmt.Errorf("ServiceSet %s: %w", req.ObjectKey, err)
	}
	return nothing(there, nil), nil
}

// build makes the set of an owner, and compares it with the one that there is, nil if there is none.
func build(before *v1alpha1.ServiceSet, resolution *Resolution, builder *Builder) (*Operation, error) {
	after, err := builder.WithServicesToDeploy(resolution.Services).WithServicesToRemove(resolution.Removing).Build()
	if err != nil {
		return nil, err
	}
	stamp(before, after)
	if before == nil {
		return &Operation{Operation: v1alpha1.ServiceSetOperationCreate, ServiceSet: after, Resolution: resolution}, nil
	}
	return replace(before, after, resolution), nil
}

// replace updates a set, unless nothing changes.
func replace(before, after *v1alpha1.ServiceSet, resolution *Resolution) *Operation {
	if sameSet(before, after) {
		return nothing(before, resolution)
	}
	return &Operation{Operation: v1alpha1.ServiceSetOperationUpdate, ServiceSet: after, Before: before, Resolution: resolution}
}

// nothing leaves a set as it is.
func nothing(set *v1alpha1.ServiceSet, resolution *Resolution) *Operation {
	return &Operation{Operation: v1alpha1.ServiceSetOperationNone, ServiceSet: set, Before: set, Resolution: resolution}
}

// readSet reads a ServiceSet. It is nil if there is none.
func readSet(ctx context.Context, c client.Reader, key client.ObjectKey) (*v1alpha1.ServiceSet, error) {
	set := &v1alpha1.ServiceSet{}
	err := c.Get(ctx, key, set)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ServiceSet %s: %w", key, err)
	}
	return set, nil
}

func newSet(key client.ObjectKey) *v1alpha1.ServiceSet {
	return &v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}

// spec returns the services of mcs, or else of the cluster.
func (at site) spec(mcs *v1alpha1.MultiClusterService) *v1alpha1.ServiceSpec {
	if mcs != nil {
		return &mcs.Spec.ServiceSpec
	}
	return &at.cd.Spec.ServiceSpec
}

// readProvider reads the StateManagementProvider of services.
func readProvider(ctx context.Context, c client.Reader, spec *v1alpha1.ServiceSpec) (*v1alpha1.StateManagementProvider, error) {
	config, err := StateManagementProviderConfigFromServiceSpec(*spec)
	if err != nil {
		return nil, err
	}
	provider := &v1alpha1.StateManagementProvider{}
	err = c.Get(ctx, client.ObjectKey{Name: config.Name}, provider)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("StateManagementProvider %s does not exist: create it, or name another one in serviceSpec.provider: %w", config.Name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read StateManagementProvider %s: %w", config.Name, err)
	}
	return provider, nil
}
