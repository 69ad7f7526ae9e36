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

// namespaces is the resource that makes the namespaces of roles and service accounts. They are never deleted: others may
// have put something there.
type namespaces struct{ *granter }

type namespaceList []*corev1.Namespace

// Name implements framework.TypedCRUDResourceOps.
func (n *namespaces) Name() string { return "namespaces" }

// GetCurrentState implements framework.TypedCRUDResourceOps.
func (n *namespaces) GetCurrentState(ctx context.Context, ar *v1alpha1.AccessRequest) (namespaceList, error) {
	w := workOf(ctx)
	if w.on == nil || w.denied || ar.DeletionTimestamp != nil {
		resourcecanceledcontext.SetCanceled(ctx)
		return nil, nil
	}
	var list namespaceList
	for _, name := range n.sortedNamespaces(ar) {
		namespace := &metav1.PartialObjectMetadata{}
		namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		err := w.on.Client().Get(ctx, client.ObjectKey{Name: name}, namespace)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read namespace %s of %s: %w", name, w.cluster.Name, err)
		}
		if err == nil {
			list = append(list, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	}
	return list, nil
}

// GetDesiredState implements framework.TypedCRUDResourceOps.
func (n *namespaces) GetDesiredState(_ context.Context, ar *v1alpha1.AccessRequest) (namespaceList, error) {
	var list namespaceList
	for _, name := range n.sortedNamespaces(ar) {
		list = append(list, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return list, nil
}

// NewUpdatePatch implements framework.TypedCRUDResourceOps.
func (n *namespaces) NewUpdatePatch(_ context.Context, _ *v1alpha1.AccessRequest, current, desired namespaceList) (*framework.TypedPatch[namespaceList], error) {
	have := map[string]bool{}
	for _, namespace := range current {
		have[namespace.Name] = true
	}
	var lacking namespaceList
	for _, namespace := range desired {
		if !have[namespace.Name] {
			lacking = append(lacking, namespace)
		}
	}
	if len(lacking) == 0 {
		return nil, nil
	}
	patch := framework.NewTypedPatch[namespaceList]()
	patch.SetCreateChange(lacking)
	return patch, nil
}

// NewDeletePatch implements framework.TypedCRUDResourceOps.
func (n *namespaces) NewDeletePatch(context.Context, *v1alpha1.AccessRequest, namespaceList, namespaceList) (*framework.TypedPatch[namespaceList], error) {
	return nil, nil
}

// ApplyCreateChange implements framework.TypedCRUDResourceOps.
func (n *namespaces) ApplyCreateChange(ctx context.Context, _ *v1alpha1.AccessRequest, lacking namespaceList) error {
	w := workOf(ctx)
	for _, namespace := range lacking {
		if err := w.on.Client().Create(ctx, namespace.DeepCopy()); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("create namespace %s in %s: %w", namespace.Name, w.cluster.Name, err)
		}
	}
	return nil
}

// ApplyUpdateChange implements framework.TypedCRUDResourceOps. Namespaces stay as they are.
func (n *namespaces) ApplyUpdateChange(context.Context, *v1alpha1.AccessRequest, namespaceList) error {
	return nil
}

// ApplyDeleteChange implements framework.TypedCRUDResourceOps. Namespaces stay.
func (n *namespaces) ApplyDeleteChange(context.Context, *v1alpha1.AccessRequest, namespaceList) error {
	return nil
}
