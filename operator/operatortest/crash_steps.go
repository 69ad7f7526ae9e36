package operatortest

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Create is a step that creates copies of the objects in the run's namespace, in
// the order given. Cluster-scoped objects do not fit: they have no namespace.
func Create(objects ...client.Object) Step {
	return forEach(objects, func(ctx context.Context, user client.Client, object client.Object) error {
		if err := user.Create(ctx, object); err != nil {
			return fmt.Errorf("create %s: %w", describe(user, object), err)
		}
		return nil
	})
}

// Delete is a step that deletes the objects of these types and names from the run's
// namespace, leaving what they own to the garbage collector. It does not wait.
func Delete(objects ...client.Object) Step {
	return forEach(objects, func(ctx context.Context, user client.Client, object client.Object) error {
		if err := user.Delete(ctx, object); err != nil {
			return fmt.Errorf("delete %s: %w", describe(user, object), err)
		}
		return nil
	})
}

// Patch is a step that changes an object of this type and name in the run's namespace, by a JSON merge patch.
func Patch(object client.Object, patch string) Step {
	return forEach([]client.Object{object}, func(ctx context.Context, user client.Client, object client.Object) error {
		if err := user.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			return fmt.Errorf("patch %s: %w", describe(user, object), err)
		}
		return nil
	})
}

// TakeFinalizers is a step that takes all finalizers off the objects of these types and names in the run's namespace, as far as they are there:
// whoever may patch an object may do that. What is being deleted goes at once.
func TakeFinalizers(objects ...client.Object) Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		for _, object := range objects {
			if err := Patch(object, `{"metadata":{"finalizers":null}}`)(ctx, user, namespace); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		return nil
	}
}

// Ready is a step for [Phase.Until]: the status of the objects of these types and names in the run's namespace says Ready of their newest
// generation, as resource/statusresource writes it.
func Ready(objects ...client.Object) Step {
	return forEach(objects, func(ctx context.Context, user client.Client, object client.Object) error {
		if err := user.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return fmt.Errorf("get %s: %w", describe(user, object), err)
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return fmt.Errorf("read the status of %s: %w", describe(user, object), err)
		}
		var status struct {
			Status struct {
				ObservedGeneration int64              `json:"observedGeneration"`
				Conditions         []metav1.Condition `json:"conditions"`
			} `json:"status"`
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &status); err != nil {
			return fmt.Errorf("read the status of %s: %w", describe(user, object), err)
		}
		ready := meta.FindStatusCondition(status.Status.Conditions, "Ready")
		switch {
		case ready == nil:
			return fmt.Errorf("%s does not say whether it is ready", describe(user, object))
		case status.Status.ObservedGeneration != object.GetGeneration():
			return fmt.Errorf("%s is at generation %d, and its status at %d", describe(user, object), object.GetGeneration(), status.Status.ObservedGeneration)
		case ready.Status != metav1.ConditionTrue:
			return fmt.Errorf("%s is not ready: %s: %s", describe(user, object), ready.Reason, ready.Message)
		}
		return nil
	})
}

// Gone is a step for [Phase.Until]: no object of these types and names is left in
// the run's namespace.
func Gone(objects ...client.Object) Step {
	return forEach(objects, func(ctx context.Context, user client.Client, object client.Object) error {
		err := user.Get(ctx, client.ObjectKeyFromObject(object), object)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("get %s: %w", describe(user, object), err)
		}
		return fmt.Errorf("%s is still there", describe(user, object))
	})
}

// All is a step that does several, also those after one that fails, and joins
// their errors.
func All(steps ...Step) Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		var errs []error
		for _, step := range steps {
			errs = append(errs, step(ctx, user, namespace))
		}
		return errors.Join(errs...)
	}
}

func forEach(objects []client.Object, do func(context.Context, client.Client, client.Object) error) Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		for _, object := range objects {
			object := object.DeepCopyObject().(client.Object)
			object.SetNamespace(namespace)
			if err := do(ctx, user, object); err != nil {
				return err
			}
		}
		return nil
	}
}

func describe(user client.Client, object client.Object) string {
	kind, err := user.GroupVersionKindFor(object)
	if err != nil {
		return fmt.Sprintf("%T %s", object, object.GetName())
	}
	return kind.Kind + " " + object.GetName()
}
