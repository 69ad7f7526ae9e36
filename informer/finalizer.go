package informer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxFinalizerAttempts is how often a finalizer's patch is tried when other clients change the list
// at the same moment.
const maxFinalizerAttempts = 10

// patchOp is an operation of a JSON patch (RFC 6902).
type patchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// versionPath is the path by which a JSON patch is conditional on a version.
const versionPath = "/metadata/resourceVersion"

const finalizersPath = "/metadata/finalizers"

// AddFinalizer implements [FinalizerStore] by a JSON patch that applies only to the version that
// was read. It sends nothing if obj already has the finalizer.
func (k *Kubernetes) AddFinalizer(ctx context.Context, obj any, finalizer string) (any, error) {
	seen, err := k.object(obj)
	if err != nil {
		return nil, fmt.Errorf("add finalizer %s: %w", finalizer, err)
	}
	stored, err := k.patchFinalizers(ctx, seen, ofVersion, func(current client.Object) ([]string, error) {
		finalizers := current.GetFinalizers()
		if current.GetDeletionTimestamp() != nil {
			return nil, k.conflict(current, "it is being deleted")
		}
		if slices.Contains(finalizers, finalizer) {
			return finalizers, nil
		}
		return append(slices.Clone(finalizers), finalizer), nil
	})
	if err != nil {
		return nil, fmt.Errorf("add finalizer %s to %s %s: %w", finalizer, k.gvk.Kind, client.ObjectKeyFromObject(seen), err)
	}
	return stored, nil
}

// RemoveFinalizer implements [FinalizerStore] by a JSON patch that applies only while the list of
// finalizers is unchanged, whatever else is written meanwhile. If obj does not have the finalizer,
// it is read from the API server, because obj may be old.
func (k *Kubernetes) RemoveFinalizer(ctx context.Context, obj any, finalizer string) error {
	seen, err := k.object(obj)
	if err != nil {
		return fmt.Errorf("remove finalizer %s: %w", finalizer, err)
	}
	key, uid := client.ObjectKeyFromObject(seen), seen.GetUID()
	if !slices.Contains(seen.GetFinalizers(), finalizer) {
		seen, err = k.getLive(ctx, key)
	}
	if err == nil && seen.GetUID() == uid {
		_, err = k.patchFinalizers(ctx, seen, withFinalizers, func(current client.Object) ([]string, error) {
			others := slices.Clone(current.GetFinalizers())
			return slices.DeleteFunc(others, func(f string) bool { return f == finalizer }), nil
		})
	}
	switch {
	case err == nil, apierrors.IsNotFound(err), isReplaced(err):
		return nil
	}
	return fmt.Errorf("remove finalizer %s from %s %s: %w", finalizer, k.gvk.Kind, key, err)
}

// ofVersion makes a patch apply only to the version of the object that was read.
func ofVersion(seen client.Object) []patchOp {
	return []patchOp{
		{Op: "add", Path: "/metadata/uid", Value: seen.GetUID()},
		{Op: "add", Path: versionPath, Value: seen.GetResourceVersion()},
	}
}

// withFinalizers makes a patch apply to an object with the finalizers that were read, in any
// version.
func withFinalizers(seen client.Object) []patchOp {
	return []patchOp{
		{Op: "test", Path: "/metadata/uid", Value: seen.GetUID()},
		{Op: "test", Path: finalizersPath, Value: seen.GetFinalizers()},
	}
}

// patchFinalizers gives the object that was read the finalizers that wanted returns, and returns
// the result. If the condition no longer holds, it starts over with the current object.
func (k *Kubernetes) patchFinalizers(
	ctx context.Context, seen client.Object, condition func(seen client.Object) []patchOp, wanted func(client.Object) ([]string, error),
) (client.Object, error) {
	key, uid := client.ObjectKeyFromObject(seen), seen.GetUID()
	for range maxFinalizerAttempts {
		finalizers, err := wanted(seen)
		if err != nil || slices.Equal(finalizers, seen.GetFinalizers()) {
			return seen, err
		}
		patched, refusal := k.patch(ctx, key, append(condition(seen), patchOp{Op: "add", Path: finalizersPath, Value: finalizers}))
		// A failed test is answered with 422, and so is an object that does not validate.
		if !apierrors.IsConflict(refusal) && !apierrors.IsInvalid(refusal) {
			return patched, refusal
		}
		live, err := k.getLive(ctx, key)
		switch {
		case err != nil:
			return nil, err
		case live.GetUID() != uid:
			return nil, replacedError{k.conflict(seen, "another object has its name now")}
		case apierrors.IsInvalid(refusal) && slices.Equal(live.GetFinalizers(), seen.GetFinalizers()):
			return nil, refusal // No test has failed.
		}
		seen = live
	}
	return nil, k.conflict(seen, "its finalizers kept changing")
}

func (k *Kubernetes) patch(ctx context.Context, key Key, ops []patchOp) (client.Object, error) {
	data, err := json.Marshal(ops)
	if err != nil {
		return nil, err
	}
	target, err := k.newObject()
	if err != nil {
		return nil, err
	}
	target.SetNamespace(key.Namespace)
	target.SetName(key.Name)
	if err := k.client.Patch(ctx, target, client.RawPatch(types.JSONPatchType, data)); err != nil {
		return nil, err
	}
	return k.prepare.answer(target), nil
}

// object checks that obj is one of this source's.
func (k *Kubernetes) object(obj any) (client.Object, error) {
	o, ok := obj.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is not a Kubernetes object", obj)
	}
	return o, nil
}

func (k *Kubernetes) conflict(obj client.Object, reason string) error {
	plural, _ := meta.UnsafeGuessKindToResource(k.gvk)
	return apierrors.NewConflict(plural.GroupResource(), obj.GetName(), errors.New(reason))
}

// replacedError is a conflict that no retry can resolve, since the object it was about is gone.
type replacedError struct{ error }

func (e replacedError) Unwrap() error { return e.error }

func isReplaced(err error) bool {
	var replaced replacedError
	return errors.As(err, &replaced)
}
