package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
)

// The reasons of the condition Ready that are the provider's own.
const (
	// ReasonVersionUnknown: the PostgresConfig has no image for the version.
	ReasonVersionUnknown = "VersionUnknown"
	// ReasonPullSecretUnusable: the Secret for pulling images is not there, or is not one.
	ReasonPullSecretUnusable = "PullSecretUnusable"
	// ReasonStarting: the database is not running yet, or not with the newest image.
	ReasonStarting = "Starting"
)

// pause is after what time a database that starts or stops is looked at again.
const pause = time.Second

// reconciler is the provider's own logic. It is called when everything that it needs is there: the config, and access to both
// clusters.
type reconciler struct {
	// platform reads the pull Secret, which is in namespace.
	platform  client.Reader
	namespace string
}

// CreateOrUpdate implements serviceprovider.Reconciler.
func (r *reconciler) CreateOrUpdate(ctx context.Context, db *v1alpha1.Postgres, config *v1alpha1.PostgresConfig, found serviceprovider.ClusterContext) (ctrl.Result, error) {
	image, ok := config.ImageOf(db.Spec.Version)
	if !ok {
		serviceprovider.StatusProgressing(db, ReasonVersionUnknown, fmt.Sprintf("version %s is not offered", db.Spec.Version))
		return ctrl.Result{}, nil
	}
	pull, err := r.pullSecret(ctx, config.Spec.PullSecret)
	if err != nil {
		return ctrl.Result{}, err
	}
	if pull == nil { // its arrival reconciles the database
		serviceprovider.StatusProgressing(db, ReasonPullSecretUnusable, fmt.Sprintf(
			"there is no Secret %s of the type %s in namespace %s of the platform cluster", config.Spec.PullSecret, corev1.SecretTypeDockerConfigJson, r.namespace))
		return ctrl.Result{}, nil
	}
	password, err := ensurePassword(ctx, found.WorkloadCluster, db)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := apply(ctx, found.WorkloadCluster, newPullSecret(db, pull), newService(db), newStatefulSet(db, image)); err != nil {
		return ctrl.Result{}, err
	}
	if err := apply(ctx, found.MCPCluster, newConnection(db, password)); err != nil {
		return ctrl.Result{}, err
	}
	db.Host, db.Image = host(db), image
	running, err := runs(ctx, found.WorkloadCluster, db)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !running {
		serviceprovider.StatusProgressing(db, ReasonStarting, "the database is starting with image "+image)
		return ctrl.Result{RequeueAfter: pause}, nil
	}
	serviceprovider.StatusReady(db)
	return ctrl.Result{}, nil
}

// Delete implements serviceprovider.Reconciler. It is called again until nothing is left.
func (r *reconciler) Delete(ctx context.Context, db *v1alpha1.Postgres, _ *v1alpha1.PostgresConfig, found serviceprovider.ClusterContext) (ctrl.Result, error) {
	left := 0
	for _, in := range []struct {
		cluster *clusters.Cluster
		objects []client.Object
	}{{found.MCPCluster, inMCP(db)}, {found.WorkloadCluster, inWorkload(db)}} {
		for _, o := range in.objects {
			err := in.cluster.Client().Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationForeground))
			switch {
			case err == nil:
				left++
			case !apierrors.IsNotFound(err):
				return ctrl.Result{}, fmt.Errorf("delete %T %s/%s: %w", o, o.GetNamespace(), o.GetName(), err)
			}
		}
	}
	if left > 0 {
		serviceprovider.StatusTerminatingWithReason(db, "", "the database is being shut down")
		return ctrl.Result{RequeueAfter: pause}, nil
	}
	return ctrl.Result{}, nil
}

// IsReferencedSecret implements serviceprovider.SecretWatcher.
func (r *reconciler) IsReferencedSecret(_ context.Context, secret *corev1.Secret, config *v1alpha1.PostgresConfig) bool {
	return config != nil && secret.Name == config.Spec.PullSecret
}

// pullSecret returns what images are pulled with, nil if there is no such Secret.
func (r *reconciler) pullSecret(ctx context.Context, name string) ([]byte, error) {
	secret := &corev1.Secret{}
	err := r.platform.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the pull Secret %s: %w", name, err)
	}
	if secret.Type != corev1.SecretTypeDockerConfigJson {
		return nil, nil
	}
	return secret.Data[corev1.DockerConfigJsonKey], nil
}

// ensurePassword returns the password of a database, which is chosen once and kept beside it.
func ensurePassword(ctx context.Context, workload *clusters.Cluster, db *v1alpha1.Postgres) (string, error) {
	secret := adminSecret(db)
	err := workload.Client().Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if apierrors.IsNotFound(err) {
		secret.Data = map[string][]byte{passwordKey: []byte(rand.Text())}
		err = workload.Client().Create(ctx, secret)
	}
	if err != nil {
		return "", fmt.Errorf("keep the password in Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return string(secret.Data[passwordKey]), nil
}

// apply makes objects of a cluster as they should be, whatever others have done to them.
func apply(ctx context.Context, to *clusters.Cluster, objects ...runtime.ApplyConfiguration) error {
	for _, o := range objects {
		if err := to.Client().Apply(ctx, o, client.FieldOwner(Name+"-provider"), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply to cluster %q: %w", to.ID(), err)
		}
	}
	return nil
}

// runs tells whether a database runs as its StatefulSet says.
func runs(ctx context.Context, workload *clusters.Cluster, db *v1alpha1.Postgres) (bool, error) {
	set := statefulSet(db)
	if err := workload.Client().Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		return false, fmt.Errorf("read StatefulSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	s := set.Status
	return s.ObservedGeneration == set.Generation && s.UpdatedReplicas == replicas && s.ReadyReplicas == replicas &&
		s.CurrentRevision == s.UpdateRevision, nil
}
