package story

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	postgres "github.com/operatorkit/operatorkit/examples/serviceprovider"
	"github.com/operatorkit/operatorkit/examples/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
)

// holds waits until something is so, and says so.
func (w *world) holds(ctx context.Context, what string, fact func(context.Context) error) error {
	return w.Until(ctx, what, func(ctx context.Context) (bool, error) {
		err := fact(ctx)
		return err == nil, err
	})
}

// merge changes an object by a merge patch.
func merge(ctx context.Context, in client.Client, o client.Object, document string) error {
	if err := in.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(document))); err != nil {
		return fmt.Errorf("change %T %s: %w", o, o.GetName(), err)
	}
	return nil
}

// forbidden returns nil for a refusal because of missing rights.
func forbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return errors.Join(errors.New("it is not forbidden"), err)
}

// gone returns nil for what does not exist.
func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(errors.New("it is not gone"), err)
}

// get reads a database as it is now.
func (w *world) get(ctx context.Context, db *v1alpha1.Postgres) (*v1alpha1.Postgres, *metav1.Condition, error) {
	now := &v1alpha1.Postgres{}
	if err := w.onboarding.Get(ctx, client.ObjectKeyFromObject(db), now); err != nil {
		return nil, nil, err
	}
	c := meta.FindStatusCondition(now.Conditions, serviceprovider.ServiceProviderConditionReady)
	if c == nil {
		return nil, nil, fmt.Errorf("%s says nothing yet", db.Name)
	}
	return now, c, nil
}

// says tells whether a database gives a reason for not being ready.
func (w *world) says(ctx context.Context, db *v1alpha1.Postgres, reason string) error {
	_, c, err := w.get(ctx, db)
	if err == nil && (c.Status != metav1.ConditionFalse || c.Reason != reason) {
		err = fmt.Errorf("%s says %s: %s", db.Name, c.Reason, c.Message)
	}
	return err
}

// readySince returns when a database became ready.
func (w *world) readySince(ctx context.Context, db *v1alpha1.Postgres) (since metav1.Time, err error) {
	_, c, err := w.get(ctx, db)
	if err != nil {
		return since, err
	}
	if c.Status != metav1.ConditionTrue {
		return since, fmt.Errorf("%s is not ready: %s: %s", db.Name, c.Reason, c.Message)
	}
	return c.LastTransitionTime, nil
}

// ready tells whether a database is ready with an image, and whether what it says is so in the clusters.
func (w *world) ready(ctx context.Context, db *v1alpha1.Postgres, image string) error {
	now, c, err := w.get(ctx, db)
	if err != nil {
		return err
	}
	if c.Status != metav1.ConditionTrue || now.ObservedGeneration != now.Generation || now.Image != image {
		return fmt.Errorf("%s is not ready with image %s: %s: %s", db.Name, image, c.Reason, c.Message)
	}
	key := client.ObjectKey{Namespace: postgres.WorkloadNamespace(db.Namespace), Name: db.Name}
	pod, admin, connection := &corev1.Pod{}, &corev1.Secret{}, &corev1.Secret{}
	err = errors.Join(
		w.workload.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name + "-0"}, pod),
		w.workload.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name + "-admin"}, admin),
		w.workload.Get(ctx, key, &corev1.Service{}),
		w.mcp.Get(ctx, client.ObjectKey{Namespace: db.Namespace, Name: postgres.ConnectionName(db)}, connection),
	)
	switch {
	case err != nil:
		return err
	case pod.Status.Phase != corev1.PodRunning || pod.Spec.Containers[0].Image != image:
		return fmt.Errorf("the Pod of %s is %s with image %s", db.Name, pod.Status.Phase, pod.Spec.Containers[0].Image)
	case len(admin.Data["password"]) == 0 || !bytes.Equal(admin.Data["password"], connection.Data["password"]):
		return fmt.Errorf("the password of %s in mcp is not that in workload", db.Name)
	case string(connection.Data["host"]) != now.Host || now.Host != key.Name+"."+key.Namespace+".svc":
		return fmt.Errorf("%s is at %q, and in mcp at %q", db.Name, now.Host, connection.Data["host"])
	}
	return nil
}

// pulls tells whether a database pulls its image with a password.
func (w *world) pulls(ctx context.Context, db *v1alpha1.Postgres, password string) error {
	secret, set := &corev1.Secret{}, &appsv1.StatefulSet{}
	key := client.ObjectKey{Namespace: postgres.WorkloadNamespace(db.Namespace), Name: db.Name}
	if err := w.workload.Get(ctx, key, set); err != nil {
		return err
	}
	key.Name = set.Spec.Template.Spec.ImagePullSecrets[0].Name
	if err := w.workload.Get(ctx, key, secret); err != nil {
		return err
	}
	if !strings.Contains(string(secret.Data[corev1.DockerConfigJsonKey]), `"`+password+`"`) {
		return fmt.Errorf("the pull Secret %s has another password", key)
	}
	return nil
}

// nothingLeft tells whether nothing of a database is left in its clusters. The names of its objects begin with its own.
func (w *world) nothingLeft(ctx context.Context, db *v1alpha1.Postgres) error {
	var errs []error
	for _, in := range []struct {
		name      string
		client    client.Client
		namespace string
		kinds     []client.ObjectList
	}{
		{mcp, w.mcp, db.Namespace, []client.ObjectList{&corev1.SecretList{}}},
		{workload, w.workload, postgres.WorkloadNamespace(db.Namespace), []client.ObjectList{
			&appsv1.StatefulSetList{}, &appsv1.ControllerRevisionList{}, &corev1.PodList{}, &corev1.PersistentVolumeClaimList{},
			&corev1.ServiceList{}, &corev1.SecretList{},
		}},
	} {
		for _, kind := range in.kinds {
			if err := in.client.List(ctx, kind, client.InNamespace(in.namespace)); err != nil {
				return err
			}
			if n := meta.LenList(kind); n > 0 {
				errs = append(errs, fmt.Errorf("%s has %d objects in a %T of namespace %s", in.name, n, kind, in.namespace))
			}
		}
	}
	return errors.Join(errs...)
}
