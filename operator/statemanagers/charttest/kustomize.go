package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// applyTries is how often objects are applied for which something is missing still: a namespace, or the kind.
const applyTries = 20

// kustomizeReference is `kustomize build | kubectl apply --server-side --prune -f -`.
type kustomizeReference struct {
	cluster   *cluster
	namespace string
	// applied are the objects of the version that was put last.
	applied []*unstructured.Unstructured
}

// build builds a kustomization, and puts objects that belong into a namespace and say none into that of the service.
func (k *kustomizeReference) build(v *version) ([]*unstructured.Unstructured, error) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), v.path)
	if err != nil {
		return nil, err
	}
	text, err := built.AsYaml()
	if err != nil {
		return nil, err
	}
	return parse(string(text))
}

// place puts an object into the namespace if it belongs into one and says none.
func (k *kustomizeReference) place(u *unstructured.Unstructured) error {
	namespaced, err := k.cluster.client.IsObjectNamespaced(u)
	if err == nil && namespaced && u.GetNamespace() == "" {
		u.SetNamespace(k.namespace)
	}
	return err
}

func (k *kustomizeReference) put(ctx context.Context, v *version) error {
	wanted, err := k.build(v)
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: k.namespace}}
	if err := k.cluster.client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	missing := wanted
	for try := 1; len(missing) > 0; try++ {
		var later []*unstructured.Unstructured
		var failed []error
		for _, u := range missing {
			err := k.place(u)
			if err == nil {
				err = k.cluster.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), client.FieldOwner("kubectl"), client.ForceOwnership)
			}
			if err != nil {
				later, failed = append(later, u), append(failed, fmt.Errorf("apply %s: %w", keyOf(u), err))
			}
		}
		if try == applyTries || slices.ContainsFunc(failed, apierrors.IsInvalid) {
			return errors.Join(failed...)
		}
		if missing = later; len(missing) > 0 {
			if err := pause(ctx, look); err != nil {
				return err
			}
		}
	}
	stays := map[key]bool{}
	for _, u := range wanted {
		stays[keyOf(u)] = true
	}
	err = k.delete(ctx, slices.DeleteFunc(k.applied, func(u *unstructured.Unstructured) bool { return stays[keyOf(u)] }))
	k.applied = wanted
	return err
}

func (k *kustomizeReference) desired(context.Context) ([]*unstructured.Unstructured, error) {
	return k.applied, nil
}

func (k *kustomizeReference) madeUp(context.Context, *version) (madeUp, error) { return nil, nil }

func (k *kustomizeReference) remove(ctx context.Context) error { return k.delete(ctx, k.applied) }

// delete deletes objects, the last ones first.
func (k *kustomizeReference) delete(ctx context.Context, gone []*unstructured.Unstructured) error {
	for _, u := range slices.Backward(gone) {
		err := k.cluster.client.Delete(ctx, u.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s: %w", keyOf(u), err)
		}
	}
	return nil
}
