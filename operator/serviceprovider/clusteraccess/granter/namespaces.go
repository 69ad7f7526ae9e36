package granter

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// neededNamespaces is the resource that makes the namespaces of roles and service accounts. They stay as they are and are never deleted:
// others may have put something there.
type neededNamespaces struct{ *granter }

// Name implements framework.Resource.
func (n *neededNamespaces) Name() string { return "namespaces" }

// EnsureCreated implements framework.Resource.
func (n *neededNamespaces) EnsureCreated(ctx context.Context, obj any) error {
	w := workOf(ctx)
	lacking, err := n.lacking(ctx, obj)
	for _, namespace := range lacking {
		if err := w.on.Client().Create(ctx, namespace); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("create namespace %s in %s: %w", namespace.Name, w.cluster.Name, err)
		}
	}
	return err
}

// EnsureDeleted implements framework.Resource.
func (n *neededNamespaces) EnsureDeleted(context.Context, any) error { return nil }

// Plan implements framework.Planner.
func (n *neededNamespaces) Plan(ctx context.Context, _ plan.Event, obj any) (changes []plan.Change, err error) {
	lacking, err := n.lacking(ctx, obj)
	for _, namespace := range lacking {
		changes = append(changes, plan.Describe(plan.Create, namespace, nil)...)
	}
	return changes, err
}

// lacking are the namespaces that are not there.
func (n *neededNamespaces) lacking(ctx context.Context, obj any) (lacking []*corev1.Namespace, err error) {
	w, ar := workOf(ctx), obj.(*v1alpha1.AccessRequest)
	if w.on == nil || w.denied || w.fault != nil || ar.DeletionTimestamp != nil {
		return nil, nil
	}
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
