package granter

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/context/resourcecanceledcontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// neededNamespaces is the resource that makes the namespaces of roles and service accounts. They are never deleted: others may
// have put something there.
type neededNamespaces struct{ *granter }

type namespaceList []*corev1.Namespace

// Name implements framework.TypedCRUDResourceOps.
func (n *neededNamespaces) Name() string { return "namespaces" }

// GetCurrentState implements framework.TypedCRUDResourceOps. What is there is not the granter's.
func (n *neededNamespaces) GetCurrentState(context.Context, *v1alpha1.AccessRequest) (namespaceList, error) {
	return nil, nil
}

// GetDesiredState implements framework.TypedCRUDResourceOps. It returns those that are lacking.
func (n *neededNamespaces) GetDesiredState(ctx context.Context, ar *v1alpha1.AccessRequest) (namespaceList, error) {
	w := workOf(ctx)
	if w.on == nil || w.denied || ar.DeletionTimestamp != nil {
		resourcecanceledcontext.SetCanceled(ctx)
		return nil, nil
	}
	var lacking namespaceList
	for _, name := range n.sortedNamespaces(ar) {
		namespace := &metav1.PartialObjectMetadata{}
		namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		switch err := w.on.Client().Get(ctx, client.ObjectKey{Name: name}, namespace); {
		case client.IgnoreNotFound(err) != nil:
			return nil, fmt.Errorf("read namespace %s of %s: %w", name, w.cluster.Name, err)
		case err != nil:
			lacking = append(lacking, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	}
	return lacking, nil
}

// NewUpdatePatch implements framework.TypedCRUDResourceOps.
func (n *neededNamespaces) NewUpdatePatch(_ context.Context, _ *v1alpha1.AccessRequest, _, lacking namespaceList) (*framework.TypedPatch[namespaceList], error) {
	if len(lacking) == 0 {
		return nil, nil
	}
	patch := framework.NewTypedPatch[namespaceList]()
	patch.SetCreateChange(lacking)
	return patch, nil
}

// NewDeletePatch implements framework.TypedCRUDResourceOps.
func (n *neededNamespaces) NewDeletePatch(context.Context, *v1alpha1.AccessRequest, namespaceList, namespaceList) (*framework.TypedPatch[namespaceList], error) {
	return nil, nil
}

// ApplyCreateChange implements framework.TypedCRUDResourceOps.
func (n *neededNamespaces) ApplyCreateChange(ctx context.Context, _ *v1alpha1.AccessRequest, lacking namespaceList) error {
	w := workOf(ctx)
	for _, namespace := range lacking {
		if err := w.on.Client().Create(ctx, namespace.DeepCopy()); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("create namespace %s in %s: %w", namespace.Name, w.cluster.Name, err)
		}
	}
	return nil
}

// ApplyUpdateChange implements framework.TypedCRUDResourceOps. Namespaces stay as they are.
func (n *neededNamespaces) ApplyUpdateChange(context.Context, *v1alpha1.AccessRequest, namespaceList) error {
	return nil
}

// ApplyDeleteChange implements framework.TypedCRUDResourceOps. Namespaces stay.
func (n *neededNamespaces) ApplyDeleteChange(context.Context, *v1alpha1.AccessRequest, namespaceList) error {
	return nil
}
