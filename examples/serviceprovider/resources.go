package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/examples/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
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

// provider is the provider's own logic: what a database consists of, in which cluster.
type provider struct {
	// platform reads the pull Secret, which is in namespace.
	platform  client.Reader
	namespace string
}

// resources are what a database is made of, in this order.
func (p *provider) resources(logger micrologger.Logger) (*serviceprovider.Resources[*v1alpha1.Postgres, *v1alpha1.PostgresConfig], error) {
	var made []framework.Resource
	for _, ops := range []*placed{
		{
			name: "workload", cluster: func(found serviceprovider.ClusterContext) *clusters.Cluster { return found.WorkloadCluster },
			names: inWorkload, desired: p.workload,
		},
		{
			name: "mcp", cluster: func(found serviceprovider.ClusterContext) *clusters.Cluster { return found.MCPCluster },
			names: inMCP, desired: p.mcp,
		},
	} {
		r, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[*v1alpha1.Postgres, []change]{Logger: logger, Ops: ops})
		if err != nil {
			return nil, err
		}
		made = append(made, r)
	}
	set, err := framework.NewResourceSet(framework.ResourceSetConfig{
		Name: "v1", Handles: framework.HandlesType[*v1alpha1.Postgres], Resources: append(made, running{}),
	})
	if err != nil {
		return nil, err
	}
	router, err := framework.NewResourceRouter(framework.ResourceRouterConfig{Logger: logger, ResourceSets: []*framework.ResourceSet{set}})
	if err != nil {
		return nil, err
	}
	refers := func(_ context.Context, secret *corev1.Secret, config *v1alpha1.PostgresConfig) bool {
		return config != nil && secret.Name == config.Spec.PullSecret
	}
	return serviceprovider.FromResources[*v1alpha1.Postgres, *v1alpha1.PostgresConfig](router).ReferTo(refers), nil
}

// workload is what a database has in its workload cluster. While something of it is not known, the object says so, and nothing
// is changed.
func (p *provider) workload(ctx context.Context, db *v1alpha1.Postgres, found serviceprovider.ClusterContext) ([]runtime.ApplyConfiguration, error) {
	config, _ := serviceprovider.ConfigFrom[*v1alpha1.PostgresConfig](ctx)
	image, ok := config.ImageOf(db.Spec.Version)
	if !ok {
		lacks(ctx, ReasonVersionUnknown, fmt.Sprintf("version %s is not offered", db.Spec.Version))
		return nil, nil
	}
	pull, err := p.pullSecret(ctx, config.Spec.PullSecret)
	if err != nil {
		return nil, err
	}
	if pull == nil { // its arrival reconciles the database
		lacks(ctx, ReasonPullSecretUnusable,
			fmt.Sprintf("the provider has no Secret of the type %s with which to pull images", corev1.SecretTypeDockerConfigJson))
		return nil, nil
	}
	password, err := passwordOf(ctx, found.WorkloadCluster, db)
	if err != nil {
		return nil, err
	}
	return []runtime.ApplyConfiguration{
		newAdminSecret(db, password), newPullSecret(db, pull), newService(db), newStatefulSet(db, image),
	}, nil
}

// mcp is what a database has in its MCP. A plan of one that is not in its workload cluster yet shows another password than it will have,
// if it showed passwords.
func (p *provider) mcp(ctx context.Context, db *v1alpha1.Postgres, found serviceprovider.ClusterContext) ([]runtime.ApplyConfiguration, error) {
	password, err := passwordOf(ctx, found.WorkloadCluster, db)
	if err != nil {
		return nil, err
	}
	return []runtime.ApplyConfiguration{newConnection(db, password)}, nil
}

// lacks ends the reconciliation, and has the object say why.
func lacks(ctx context.Context, reason, message string) {
	if status, ok := serviceprovider.ObjectFrom[*v1alpha1.Postgres](ctx); ok {
		serviceprovider.StatusProgressing(status, reason, message)
	}
	reconciliationcanceledcontext.SetCanceled(ctx)
}

// pullSecret returns what images are pulled with, nil if there is no such Secret.
func (p *provider) pullSecret(ctx context.Context, name string) ([]byte, error) {
	secret := &corev1.Secret{}
	err := p.platform.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: name}, secret)
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

// passwordOf returns the password of a database, which is chosen once and kept beside it.
func passwordOf(ctx context.Context, workload *clusters.Cluster, db *v1alpha1.Postgres) (string, error) {
	secret := adminSecret(db)
	err := workload.Client().Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if apierrors.IsNotFound(err) {
		return rand.Text(), nil
	}
	if err != nil {
		return "", fmt.Errorf("read the password in Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return string(secret.Data[passwordKey]), nil
}

// running is a resource that changes nothing: it has the object say whether its database runs.
type running struct{}

// Name implements framework.Resource.
func (running) Name() string { return "running" }

// EnsureCreated implements framework.Resource.
func (running) EnsureCreated(ctx context.Context, obj any) error {
	db := obj.(*v1alpha1.Postgres)
	found, _ := serviceprovider.ClustersFrom(ctx)
	status, ok := serviceprovider.ObjectFrom[*v1alpha1.Postgres](ctx)
	if !ok {
		return nil
	}
	set := statefulSet(db)
	if err := found.WorkloadCluster.Client().Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		return fmt.Errorf("read StatefulSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	image := set.Spec.Template.Spec.Containers[0].Image
	status.Host, status.Image = host(db), image
	if s := set.Status; s.ObservedGeneration == set.Generation && s.UpdatedReplicas == replicas && s.ReadyReplicas == replicas &&
		s.CurrentRevision == s.UpdateRevision {
		serviceprovider.StatusReady(status)
		return nil
	}
	serviceprovider.StatusProgressing(status, ReasonStarting, "the database is starting with image "+image)
	requeuecontext.SetAfter(ctx, pause)
	return nil
}

// EnsureDeleted implements framework.Resource.
func (running) EnsureDeleted(context.Context, any) error { return nil }

// Plan implements framework.Planner.
func (running) Plan(context.Context, plan.Event, any) ([]plan.Change, error) { return nil, nil }

// foreground has an object go when all that belongs to it is gone.
const foreground = client.PropagationPolicy(metav1.DeletePropagationForeground)
