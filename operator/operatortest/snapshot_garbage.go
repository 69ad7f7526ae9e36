package operatortest

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// passing returns what shows that a state is about to pass, without the operator
// doing anything: an object that the garbage collector has yet to take away, because
// it works on its deletion, or because none of its owners is there any more.
func (s *snapshots) passing(ctx context.Context, objects []*unstructured.Unstructured) (reason, err error) {
	there := make(map[types.UID]bool, len(objects))
	for _, object := range objects {
		there[object.GetUID()] = true
	}
	for _, object := range objects {
		name := object.GetKind() + " " + object.GetName()
		if object.GetDeletionTimestamp() != nil && slices.ContainsFunc(object.GetFinalizers(), isCollectors) {
			return fmt.Errorf("%s is still being deleted by the garbage collector", name), nil
		}
		owners := object.GetOwnerReferences()
		if len(owners) == 0 {
			continue
		}
		owned := false
		for _, owner := range owners {
			exists, err := s.exists(ctx, owner, object.GetNamespace(), there)
			if err != nil {
				return nil, fmt.Errorf("look for %s %s, the owner of %s: %w", owner.Kind, owner.Name, name, err)
			}
			owned = owned || exists
		}
		if !owned {
			return fmt.Errorf("%s is still there, although its owner %s %s is gone", name, owners[0].Kind, owners[0].Name), nil
		}
	}
	return nil, nil
}

func isCollectors(finalizer string) bool {
	return finalizer == metav1.FinalizerDeleteDependents || finalizer == metav1.FinalizerOrphanDependents
}

// exists returns whether an owner is there, or of a kind that the API server does not
// know, which keeps the garbage collector from deciding. What it learns it notes in
// there.
func (s *snapshots) exists(ctx context.Context, owner metav1.OwnerReference, namespace string, there map[types.UID]bool) (bool, error) {
	if exists, known := there[owner.UID]; known {
		return exists, nil
	}
	kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
	mapping, err := s.user.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	key := client.ObjectKey{Name: owner.Name}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		key.Namespace = namespace
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	if err := s.user.Get(ctx, key, object); err != nil && !apierrors.IsNotFound(err) {
		return false, err
	}
	there[owner.UID] = object.UID == owner.UID
	return there[owner.UID], nil
}
