package serviceset

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// OperationRequisites say which ServiceSet is looked at.
type OperationRequisites struct {
	// ObjectKey is the name and the namespace of the ServiceSet: see [ObjectKey].
	ObjectKey client.ObjectKey
	// MCS is the owner of the services, nil if that is the ClusterDeployment.
	MCS *v1alpha1.MultiClusterService
	// CD is the cluster, nil for the management cluster.
	CD *v1alpha1.ClusterDeployment
	// SystemNamespace is the namespace of the ServiceSets of the management cluster.
	SystemNamespace string
}

// Operation is what has to be done with a ServiceSet, and why.
type Operation struct {
	// Operation is what has to be done.
	Operation v1alpha1.ServiceSetOperation
	// ServiceSet is how the set should be. If there is nothing to do, it is the one that there is.
	ServiceSet *v1alpha1.ServiceSet
	// Before is the set that there is, nil if there is none.
	Before *v1alpha1.ServiceSet
	// Resolution says what becomes of each service, and why. It is nil for a set that is being deleted.
	Resolution *Resolution
}

// GetServiceSetWithOperation returns how a ServiceSet should be, and whether it has to be created, updated or left alone.
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

// ComputeOperation reads a ServiceSet and all that it depends on, resolves the services of its owner (see [Resolve]) and
// builds the set (see [Builder]). There is nothing to do when the sets mean the same, and when the set is being deleted. It
// writes nothing, and changes neither the arguments nor what it reads.
//
// Errors: ErrNoOwner, a *GraphError for what the owner has to mend, an error for which apierrors.IsNotFound holds when
// the provider does not exist, and those of the reader and of the builder.
func ComputeOperation(ctx context.Context, c client.Reader, req OperationRequisites) (*Operation, error) {
	s := subject{req.SystemNamespace, req.MCS, req.CD}
	owner, err := s.owner(nil)
	if err != nil {
		return nil, err
	}
	set, err := readSet(ctx, c, req.ObjectKey)
	if err != nil {
		return nil, err
	}
	if set.DeletionTimestamp != nil {
		return &Operation{Operation: v1alpha1.ServiceSetOperationNone, ServiceSet: set, Before: set}, nil
	}
	provider, err := s.provider(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", &owner, err)
	}
	in, err := s.input(ctx, c, owner.Services, set)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", &owner, err)
	}
	return s.operate(in, set, provider)
}

// operate resolves the services of an owner and builds its set from the one that there is, or from an empty one.
func (s subject) operate(in Input, set *v1alpha1.ServiceSet, provider *v1alpha1.StateManagementProvider) (*Operation, error) {
	resolution, err := Resolve(in)
	if err != nil {
		return nil, fmt.Errorf("resolve the services of %s: %w", &in.Owner, err)
	}
	built, err := NewBuilder(s.cd, set, &provider.Spec.Selector).WithMultiClusterService(s.mcs).
		WithServicesToDeploy(resolution.Services).WithServicesToRemove(resolution.Removing).Build()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", &in.Owner, err)
	}
	switch {
	case set.UID == "":
		return &Operation{Operation: v1alpha1.ServiceSetOperationCreate, ServiceSet: built, Resolution: resolution}, nil
	case sameSet(set, built):
		return &Operation{Operation: v1alpha1.ServiceSetOperationNone, ServiceSet: set, Before: set, Resolution: resolution}, nil
	}
	return &Operation{Operation: v1alpha1.ServiceSetOperationUpdate, ServiceSet: built, Before: set, Resolution: resolution}, nil
}

// readSet reads a ServiceSet, or makes an empty one.
func readSet(ctx context.Context, c client.Reader, key client.ObjectKey) (*v1alpha1.ServiceSet, error) {
	set := &v1alpha1.ServiceSet{}
	err := c.Get(ctx, key, set)
	if apierrors.IsNotFound(err) {
		set.Namespace, set.Name = key.Namespace, key.Name
		return set, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ServiceSet %s: %w", key, err)
	}
	return set, nil
}

// provider reads the StateManagementProvider.
func (s subject) provider(ctx context.Context, c client.Reader) (*v1alpha1.StateManagementProvider, error) {
	var spec *v1alpha1.ServiceSpec
	if s.mcs != nil {
		spec = &s.mcs.Spec.ServiceSpec
	} else {
		spec = &s.cd.Spec.ServiceSpec
	}
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
