package serverside

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Apply applies u, which becomes what the server made of it. Another UID than that of the stored object is a conflict.
func Apply(ctx context.Context, c client.Client, u *unstructured.Unstructured, options ...client.ApplyOption) error {
	gvk, name := u.GroupVersionKind(), u.GetName()
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), options...)
	if replaced(err) {
		resource := schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}
		return apierrors.NewConflict(resource, name, errors.New("it was replaced by another object of its name"))
	}
	return err
}

// replaced tells whether the server refused an apply because the object has another UID, which it calls invalid if there is an
// object, and a conflict if there is none.
func replaced(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}
