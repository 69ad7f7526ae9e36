package clusteraccess

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
)

// onboarding is the cluster that holds the objects. It is identified by the UID of its namespace kube-system.
type onboarding struct {
	mu      sync.Mutex
	cluster *clusters.Cluster
	uid     types.UID
}

// ServeOnboarding says which cluster holds the objects, before anything is asked for them. From then on requests for objects of other clusters
// are left alone, and have names of their own: a second installation of the service provider, with the same names and another onboarding
// cluster, takes nothing away from the first one. Requests that name no cluster are adopted when their object is reconciled, and are deleted
// by nothing else. A serviceprovider.APIReconciler calls ServeOnboarding when it is built. It takes the right to get the namespace kube-system
// of that cluster. The error is one for which framework.IsInvalidConfig holds: the objects are in another cluster already.
func (c *Clusters[D]) ServeOnboarding(cluster *clusters.Cluster) error {
	c.onboarding.mu.Lock()
	defer c.onboarding.mu.Unlock()
	if c.onboarding.cluster != nil && c.onboarding.cluster.RESTConfig().Host != cluster.RESTConfig().Host {
		return fmt.Errorf("%w: it asks for access for objects of cluster %q: make another one for those of cluster %q",
			framework.ErrInvalidConfig, c.onboarding.cluster.ID(), cluster.ID())
	}
	c.onboarding.cluster = cluster
	return nil
}

// known returns the UID of the cluster, empty if there is none or if it was not read yet.
func (o *onboarding) known() types.UID {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.uid
}

// read returns the UID of the cluster, empty if there is none.
func (o *onboarding) read(ctx context.Context) (types.UID, error) {
	o.mu.Lock()
	cluster, uid := o.cluster, o.uid
	o.mu.Unlock()
	if cluster == nil || uid != "" {
		return uid, nil
	}
	return o.confirm(ctx)
}

// confirm reads the UID from the cluster, and returns an error if it is another one than before.
func (o *onboarding) confirm(ctx context.Context) (types.UID, error) {
	o.mu.Lock()
	cluster := o.cluster
	o.mu.Unlock()
	if cluster == nil {
		return "", nil
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := cluster.Client().Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, namespace); err != nil {
		return "", fmt.Errorf("identify cluster %q by the UID of its namespace %s, which takes the right to get it: %w", cluster.ID(), metav1.NamespaceSystem, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.uid != "" && o.uid != namespace.UID {
		return "", fmt.Errorf("cluster %q is another one than when the provider started: its namespace %s had the UID %s and has %s: restart the provider if that is right",
			cluster.ID(), metav1.NamespaceSystem, o.uid, namespace.UID)
	}
	o.uid = namespace.UID
	return o.uid, nil
}
