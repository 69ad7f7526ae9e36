package serviceprovider

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
	clustersv1alpha1 "github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// API is implemented by the types of the objects that users create in the onboarding cluster. They are pointers.
type API interface {
	client.Object
	Status
}

// Status is what the status of every API type has. StatusOf implements it.
type Status interface {
	// GetStatus returns a pointer to the whole status.
	GetStatus() any
	// GetConditions returns the conditions, which may be changed. They stand in the field status.conditions.
	GetConditions() *[]metav1.Condition
	// SetPhase sets the phase, see StatusPhaseReady and others.
	SetPhase(string)
	// SetObservedGeneration sets the generation of the object that the status is about.
	SetObservedGeneration(int64)
}

// Config is implemented by the type of the provider's configuration, one object of which is kept in the platform cluster.
type Config interface {
	client.Object
	// PollInterval is after which time an object is reconciled again although nothing has changed, to mend what others did
	// to its clusters. 0 is never.
	PollInterval() time.Duration
}

// Reconciler is what the author of a provider writes. Its functions are called for different objects at the same time, never
// twice at once for one object, and have to be idempotent. The object and the config are theirs. Of what they change in the
// object only the status is written, when they have returned, with an error too.
//
// A result with RequeueAfter asks for another call after that time. An error, or a panic, is tried again with backoff;
// framework.Permanent marks one for which that is useless.
//
// It may implement SecretWatcher, ConfigMapWatcher and PartialDeleter too.
type Reconciler[T API, C Config] interface {
	// CreateOrUpdate is called when the object or something that it depends on may have changed, with access to its clusters. If
	// it says nothing in the condition Ready, the object is ready when there is neither an error nor a RequeueAfter.
	CreateOrUpdate(ctx context.Context, obj T, config C, clusters ClusterContext) (ctrl.Result, error)
	// Delete is called when the object is being deleted, with access to its clusters, until it returns neither an error nor a
	// RequeueAfter. Then the access is taken away. The config is the one that is there, or the last that was there, or the
	// one that the builder was given: a deletion goes on without a config. An object that has vanished because its finalizers were removed is
	// given as this process last saw it; after a restart all that is known of it is its name and namespace.
	Delete(ctx context.Context, obj T, config C, clusters ClusterContext) (ctrl.Result, error)
}

// PartialDeleter is implemented by Reconcilers that can clean up without some of the clusters: those that are gone for good and
// were let go by LetGoAnnotation.
type PartialDeleter[T API, C Config] interface {
	// DeletePartially is called in place of Delete when clusters were let go. In clusters they are nil. Without this method
	// the deletion waits while another cluster is there.
	DeletePartially(ctx context.Context, obj T, config C, clusters ClusterContext) (ctrl.Result, error)
}

// SecretWatcher is implemented by Reconcilers that read Secrets of the platform cluster. The namespace is given to
// APIReconcilerBuilder.SecretNamespace.
type SecretWatcher[PC Config] interface {
	// IsReferencedSecret tells whether a change of the Secret concerns the objects: all are reconciled then. pc is the newest
	// config that is known, or the zero value (nil) while there is none. A panic counts as true. The arguments must not be
	// changed.
	IsReferencedSecret(ctx context.Context, secret *corev1.Secret, pc PC) bool
}

// ConfigMapWatcher is implemented by Reconcilers that read ConfigMaps of the platform cluster. The namespace is given to
// APIReconcilerBuilder.ConfigMapNamespace.
type ConfigMapWatcher[PC Config] interface {
	// IsReferencedConfigMap is to ConfigMaps what SecretWatcher.IsReferencedSecret is to Secrets.
	IsReferencedConfigMap(ctx context.Context, configMap *corev1.ConfigMap, pc PC) bool
}

// ClusterContext holds the clusters of one object.
type ClusterContext struct {
	// MCPCluster is the managed control plane of the object.
	MCPCluster *clusters.Cluster
	// MCPAccessSecretKey is the Secret in the platform cluster with the kubeconfig of the MCP.
	MCPAccessSecretKey client.ObjectKey
	// WorkloadCluster is the workload cluster of the object. It is nil without APIReconcilerBuilder.WorkloadCluster.
	WorkloadCluster *clusters.Cluster
	// WorkloadAccessSecretKey is the Secret in the platform cluster with the kubeconfig of the workload cluster.
	WorkloadAccessSecretKey client.ObjectKey
	// Additional are the clusters of APIReconcilerBuilder.AdditionalClusters, by id.
	Additional map[string]AdditionalCluster
}

// AdditionalCluster is a further cluster of an object.
type AdditionalCluster struct {
	Cluster *clusters.Cluster
	// AccessSecretKey is the Secret in the platform cluster with the kubeconfig.
	AccessSecretKey client.ObjectKey
}

// ClusterAccessProvider asks for access to the clusters of one object, and gives clients to them. Package clusteraccess has
// implementations. All functions are called for different objects at the same time.
type ClusterAccessProvider interface {
	// MCPCluster returns the MCP. It is called when Reconcile had nothing to wait for.
	MCPCluster(ctx context.Context, request reconcile.Request) (*clusters.Cluster, error)
	// MCPAccessRequest returns the request for access to the MCP, or an error for which apierrors.IsNotFound holds.
	MCPAccessRequest(ctx context.Context, request reconcile.Request) (*clustersv1alpha1.AccessRequest, error)
	// WorkloadCluster is MCPCluster for the workload cluster.
	WorkloadCluster(ctx context.Context, request reconcile.Request) (*clusters.Cluster, error)
	// WorkloadAccessRequest is MCPAccessRequest for the workload cluster.
	WorkloadAccessRequest(ctx context.Context, request reconcile.Request) (*clustersv1alpha1.AccessRequest, error)
	// Reconcile makes the requests for clusters and for access to them, or brings them up to date. A RequeueAfter says that
	// there is no access yet, and when to ask again.
	Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error)
	// ReconcileDelete deletes the requests. A RequeueAfter says that they are not gone yet, and when to ask again.
	ReconcileDelete(ctx context.Context, request reconcile.Request) (reconcile.Result, error)
}

// AdditionalAccessProvider is implemented by ClusterAccessProviders that know more clusters than the MCP and the workload
// cluster. Reconcile and ReconcileDelete are for all of them.
type AdditionalAccessProvider interface {
	ClusterAccessProvider
	// AdditionalCluster is MCPCluster for the cluster of that id.
	AdditionalCluster(ctx context.Context, request reconcile.Request, id string) (*clusters.Cluster, error)
	// AdditionalAccessRequest is MCPAccessRequest for the cluster of that id.
	AdditionalAccessRequest(ctx context.Context, request reconcile.Request, id string) (*clustersv1alpha1.AccessRequest, error)
}

// FixedAccessProvider is implemented by ClusterAccessProviders that have clusters which are not asked for. Objects don't wait for
// access to them; otherwise they are clusters as others are.
type FixedAccessProvider interface {
	ClusterAccessProvider
	// FixedCluster tells whether the cluster of that id (MCP, Workload or another) is not asked for, and in which Secret of the platform
	// cluster its kubeconfig is, if it is in one. It is called when the APIReconciler is built.
	FixedCluster(id string) (secret client.ObjectKey, isFixed bool)
}

// KindAccessProvider is implemented by ClusterAccessProviders that ask for access for the objects of one kind, so that several APIs of one
// service provider leave each other's access alone. Each API has a provider of its own then.
type KindAccessProvider interface {
	ClusterAccessProvider
	// ServeKind says of which kind the objects are. It is called when the APIReconciler is built, which fails with the error if they are of
	// another kind already.
	ServeKind(kind schema.GroupKind) error
}

// OnboardingAccessProvider is implemented by ClusterAccessProviders that ask for access for the objects of one onboarding cluster, so that a second
// installation with the same names and another onboarding cluster leaves its requests alone.
type OnboardingAccessProvider interface {
	ClusterAccessProvider
	// ServeOnboarding says in which cluster the objects are. It is called when the APIReconciler is built, which fails with the error if they
	// are in another one already.
	ServeOnboarding(cluster *clusters.Cluster) error
}

// AccessNotifier is implemented by ClusterAccessProviders that notice when access is granted, denied or gone. Without it, access is
// looked at again when Reconcile says so.
type AccessNotifier interface {
	// Changes reconciles the objects that a change concerns. It is called once, by APIReconciler.SetupWithManager.
	Changes() source.Source
}
