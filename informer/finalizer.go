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

// maxFinalizerAttempts is how often a finalizer's patch is tried when others change the list at the same moment.
const maxFinalizerAttempts = 10

// patchOp is an operation of a JSON patch (RFC 6902).
type patchOp struct {
	Op   string `json:"op"`
	Path string `json:"path"`
	// Value must be there even if it is null: a test for null passes when the path is missing.
	Value any `json:"value"`
}

const (
	uidPath        = "/metadata/uid"
	finalizersPath = "/metadata/finalizers"
)

// AddFinalizer implements [FinalizerStore] by a JSON patch that applies only while the object and its list of finalizers
// are as they were seen. It sends nothing when obj has the finalizer already.
func (k *Kubernetes) AddFinalizer(ctx context.Context, obj any, finalizer string) (any, error) {
	seen, err := k.object(obj)
	if err != nil {
		return nil, fmt.Errorf("add finalizer %s: %w", finalizer, err)
	}
	stored, err := k.patchFinalizers(ctx, seen, func(current client.Object) ([]patchOp, error) {
		if current.GetDeletionTimestamp() != nil {
			return nil, k.conflict(current, "it is being deleted")
		}
		if slices.Contains(current.GetFinalizers(), finalizer) {
			return nil, nil
		}
		return addition(current.GetFinalizers(), finalizer), nil
	})
	if err != nil {
		return nil, fmt.Errorf("add finalizer %s to %s %s: %w", finalizer, k.gvk.Kind, client.ObjectKeyFromObject(seen), err)
	}
	return stored, nil
}

// RemoveFinalizer implements [FinalizerStore] by a JSON patch that applies only while the finalizer is where it was seen.
// When obj does not have it, the API server is asked, because obj may be old.
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
		_, err = k.patchFinalizers(ctx, seen, func(current client.Object) ([]patchOp, error) {
			return removal(current.GetFinalizers(), finalizer), nil
		})
	}
	switch {
	case err == nil, apierrors.IsNotFound(err), isReplaced(err):
		return nil
	}
	return fmt.Errorf("remove finalizer %s from %s %s: %w", finalizer, k.gvk.Kind, key, err)
}

// patchFinalizers applies the operations that plan returns for the object as it was seen, together with a test of its
// UID, and returns the result. When the server refuses because the object has changed, it starts over with the object as
// it is now. No operations mean that nothing is left to do.
func (k *Kubernetes) patchFinalizers(ctx context.Context, seen client.Object, plan func(client.Object) ([]patchOp, error)) (client.Object, error) {
	key, uid := client.ObjectKeyFromObject(seen), seen.GetUID()
	for range maxFinalizerAttempts {
		ops, err := plan(seen)
		if err != nil {
			return nil, err
		}
		if len(ops) == 0 {
			return seen, nil
		}
		patched, patchErr := k.patch(ctx, key, append([]patchOp{{Op: "test", Path: uidPath, Value: uid}}, ops...))
		if patchErr == nil {
			return patched, nil
		}
		// A failed test is answered as 422, and so is an object that does not validate.
		if !apierrors.IsInvalid(patchErr) && !apierrors.IsConflict(patchErr) {
			return nil, patchErr
		}
		live, err := k.getLive(ctx, key)
		if err != nil {
			return nil, err
		}
		if live.GetUID() != uid {
			return nil, replacedError{k.conflict(seen, "another object has its name now")}
		}
		deleted := live.GetDeletionTimestamp() != nil && seen.GetDeletionTimestamp() == nil
		if apierrors.IsInvalid(patchErr) && slices.Equal(live.GetFinalizers(), seen.GetFinalizers()) && !deleted {
			return nil, patchErr // It is as it was seen: no test has failed.
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

// addition appends a finalizer, provided that the list is the one that was seen.
func addition(seen []string, finalizer string) []patchOp {
	if len(seen) == 0 {
		return []patchOp{
			{Op: "test", Path: finalizersPath, Value: nil},
			{Op: "add", Path: finalizersPath, Value: []string{finalizer}},
		}
	}
	return []patchOp{
		{Op: "test", Path: finalizersPath, Value: seen},
		{Op: "add", Path: finalizersPath + "/-", Value: finalizer},
	}
}

// removal removes a finalizer, provided that it is where it was seen. It is empty when there is none.
func removal(seen []string, finalizer string) []patchOp {
	i := slices.Index(seen, finalizer)
	if i < 0 {
		return nil
	}
	path := fmt.Sprintf("%s/%d", finalizersPath, i)
	return []patchOp{
		{Op: "test", Path: path, Value: finalizer},
		{Op: "remove", Path: path},
	}
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
