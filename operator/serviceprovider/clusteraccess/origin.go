package clusteraccess

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
)

// origin is what requests say of where their objects are: the kind, and the UID of the namespace kube-system of the onboarding cluster. Each is
// empty if it is not known.
type origin struct{ kind, onboarding string }

// served is the origin of the objects that access is asked for, as far as it is known, and the cluster that holds them, nil if nobody has said.
type served struct {
	mu sync.Mutex
	origin
	cluster *clusters.Cluster
}

// ServeKind says of which kind the objects are, before anything is asked for them. From then on requests for objects of other kinds are left
// alone, and have names of their own, although they carry the same marks: a service provider can have several APIs, each with Clusters of
// its own. What was asked for before the kind was known is taken over as it is; of an object that went while nothing ran it stays, until
// somebody deletes it, because it may be for an object of another kind. A serviceprovider.APIReconciler calls ServeKind when it is built;
// who has controllers of other sorts for several kinds calls it too. The error is one for which framework.IsInvalidConfig holds: the
// objects are of another kind already.
func (c *Clusters[D]) ServeKind(kind schema.GroupKind) error {
	c.served.mu.Lock()
	defer c.served.mu.Unlock()
	if is := c.served.kind; is != "" && is != kind.String() {
		return fmt.Errorf("%w: it asks for access for objects of kind %s: make another one for those of %s", framework.ErrInvalidConfig, is, kind)
	}
	c.served.kind = kind.String()
	return nil
}

// ServeOnboarding says which cluster holds the objects, before anything is asked for them. From then on requests for objects of other clusters
// are left alone, and have names of their own: a second installation of the service provider, with the same names and another onboarding
// cluster, takes nothing away from the first one. Requests that name no cluster are adopted when their object is reconciled, and are deleted
// by nothing else. A serviceprovider.APIReconciler calls ServeOnboarding when it is built. It takes the right to get the namespace kube-system
// of that cluster. The error is one for which framework.IsInvalidConfig holds: the objects are in another cluster already.
func (c *Clusters[D]) ServeOnboarding(cluster *clusters.Cluster) error {
	c.served.mu.Lock()
	defer c.served.mu.Unlock()
	if is := c.served.cluster; is != nil && is.RESTConfig().Host != cluster.RESTConfig().Host {
		return fmt.Errorf("%w: it asks for access for objects of cluster %q: make another one for those of cluster %q", framework.ErrInvalidConfig, is.ID(), cluster.ID())
	}
	c.served.cluster = cluster
	return nil
}

// known returns what is known of the origin, and the cluster to ask for the rest, nil for none.
func (s *served) known() (origin, *clusters.Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.origin, s.cluster
}

// read returns the origin. A UID that is not known yet is read from the onboarding cluster.
func (s *served) read(ctx context.Context) (origin, error) {
	if known, cluster := s.known(); cluster == nil || known.onboarding != "" {
		return known, nil
	}
	return s.confirm(ctx)
}

// confirm returns the origin, and an error if the onboarding cluster is another one than before.
func (s *served) confirm(ctx context.Context) (origin, error) {
	known, cluster := s.known()
	if cluster == nil {
		return known, nil
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := cluster.Client().Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, namespace); err != nil {
		return known, fmt.Errorf("identify cluster %q by the UID of its namespace %s, which takes the right to get it: %w", cluster.ID(), metav1.NamespaceSystem, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.onboarding != "" && s.onboarding != string(namespace.UID) {
		return known, fmt.Errorf("cluster %q is another one than when the provider started: its namespace %s had the UID %s and has %s: restart the provider if that is right",
			cluster.ID(), metav1.NamespaceSystem, s.onboarding, namespace.UID)
	}
	s.onboarding = string(namespace.UID)
	return s.origin, nil
}

// originOf returns what a request says.
func originOf(request client.Object) origin {
	return origin{request.GetAnnotations()[KindAnnotation], request.GetAnnotations()[OnboardingAnnotation]}
}

// adopts reports whether a request is for an object of this origin, or may be: it says nothing else. Only what is known of the origin counts.
func (o origin) adopts(request client.Object) bool {
	says := originOf(request)
	return (says.kind == o.kind || says.kind == "" || o.kind == "") && (says.onboarding == o.onboarding || says.onboarding == "" || o.onboarding == "")
}

// isNamedBy reports whether a request names all that is known of the origin.
func (o origin) isNamedBy(request client.Object) bool {
	says := originOf(request)
	return (o.kind == "" || says.kind == o.kind) && (o.onboarding == "" || says.onboarding == o.onboarding)
}

// serves is adopts, but for requests that name no onboarding cluster, neither by an annotation nor by their name: those may be for an object
// of the same name in another one.
func (c *Clusters[D]) serves(o origin, of reconcile.Request, request client.Object) bool {
	named := o.onboarding == "" || originOf(request).onboarding == o.onboarding
	return o.adopts(request) && (named || request.GetName() == c.config.meta(of, request.GetLabels()[AccessLabel], o).Name)
}
