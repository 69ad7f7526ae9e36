package operatortest

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
