package serviceprovider

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/informer"
)

func namespaceNamed(name string) *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	namespace.Name = name
	return namespace
}

// serves tells whether an object is in a namespace that is served. The namespace is read from the API server, as the object is.
func (r *APIReconciler[T, C]) serves(ctx context.Context, obj client.Object) (bool, error) {
	leaves := obj.GetDeletionTimestamp() != nil && (hasAny(obj, r.finalizers.work) || hasAny(obj, r.finalizers.access))
	if r.namespacePredicate == nil || obj.GetNamespace() == "" || leaves {
		return true, nil
	}
	namespace := namespaceNamed(obj.GetNamespace())
	err := r.onboarding.Client().Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read namespace %s from cluster %q: %w", namespace.Name, r.onboarding.ID(), err)
	}
	return r.namespacePredicate(namespace), nil
}

// namespaceChanged has the objects of a namespace reconciled that was changed: it may be served from now on.
func (r *APIReconciler[T, C]) namespaceChanged(objects *informer.Kubernetes) func(context.Context, informer.Event, queue) {
	return func(_ context.Context, e informer.Event, queue queue) {
		if e.Type != informer.Updated || !edited(e) {
			return
		}
		for _, key := range objects.Keys() {
			if key.Namespace == e.Key.Name {
				queue.Add(reconcile.Request{NamespacedName: key})
			}
		}
	}
}
