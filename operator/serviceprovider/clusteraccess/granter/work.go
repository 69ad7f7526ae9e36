package granter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/context/resourcecanceledcontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/internal/claims"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/objectresource"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// work is what the resources of one reconciliation tell each other.
type work struct {
	key informer.Key
	// name is that of everything in the cluster.
	name string
	// provider is who asks, empty if the namespace is no provider's, and policy the name of the policy that allows it.
	provider, policy string
	// cluster is the Cluster, and on the connection to it. on is nil while nothing can be done there.
	cluster *v1alpha1.Cluster
	on      *target.Cluster
	objects *framework.TypedCRUDResource[*v1alpha1.AccessRequest, objectresource.State]
	// obstacle is why the request is not granted, or not as it should be; nil if nothing stands in the way.
	obstacle *obstacle
	// denied tells that what was granted is taken away.
	denied bool
	// abandoned tells that nothing is cleaned up in the cluster.
	abandoned bool
	// credentials are those that are there now, nil for none.
	credentials *credentials
	// claimed is the request after its cluster was noted in the status; nil if that was so before.
	claimed *v1alpha1.AccessRequest
	// foreign is who else grants the request; nil if nobody does. Nothing is done then.
	foreign error
	// fault is what is wrong with the policy, which is none of the requester's business. Rights stay as they are then.
	fault error
	// granted tells that the status says that access is granted.
	granted bool
	// err is the first error of a resource.
	err error
}

// foreign says who else grants a request, and nil if nobody does.
func foreign(ctx context.Context, ar *v1alpha1.AccessRequest) error {
	own := identity.From(ctx).Identity
	if holder := claims.Holder(ar.Status.Granter, own); holder != "" {
		return framework.Permanent(fmt.Errorf("it is granted by another granter, which is %s, and not by %s", holder, own))
	}
	return nil
}

// obstacle is the reason and the message of a condition.
type obstacle struct{ reason, message string }

func obstaclef(reason, format string, args ...any) *obstacle {
	return &obstacle{reason: reason, message: fmt.Sprintf(format, args...)}
}

// credentials are what a Secret says about itself.
type credentials struct {
	secret              string
	expiration, renewal time.Time
	serviceAccount      types.UID
	lifetime            time.Duration
	// oidc tells that there is no token: who uses them brings one of an issuer's.
	oidc bool
}

type workKey struct{}

func workOf(ctx context.Context) *work {
	w, _ := ctx.Value(workKey{}).(*work)
	return w
}

// begin prepares a reconciliation: it finds the cluster and decides what may be granted.
func (g *granter) begin(ctx context.Context, obj any) (context.Context, error) {
	ar, ok := obj.(*v1alpha1.AccessRequest)
	if !ok {
		return nil, framework.Permanent(fmt.Errorf("a %T is no AccessRequest", obj))
	}
	key := client.ObjectKeyFromObject(ar)
	w := &work{key: key, name: nameOf(ar)}
	if w.foreign = foreign(ctx, ar); w.foreign == nil {
		if err := g.prepare(ctx, w, ar); err != nil {
			return nil, err
		}
	}
	return context.WithValue(ctx, workKey{}, w), nil
}

func (g *granter) prepare(ctx context.Context, w *work, ar *v1alpha1.AccessRequest) error {
	name, missing, err := g.clusterOf(ctx, ar)
	if err != nil {
		return err
	}
	w.obstacle, w.provider = missing, g.config.Layout.Provider(ar.Namespace)
	if w.provider == "" && ar.DeletionTimestamp == nil {
		w.obstacle, w.denied = obstaclef(v1alpha1.ReasonNoProvider,
			"Namespace %s is no service provider's: ask for access in that of the provider.", ar.Namespace), true
	}
	if name == "" {
		w.denied = w.denied || missing.reason == v1alpha1.ReasonRequestDenied
		return nil
	}
	cluster, key := &v1alpha1.Cluster{}, client.ObjectKey{Namespace: g.config.Layout.Clusters, Name: name}
	switch err := g.reader.Get(ctx, key, cluster); {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("read Cluster %s: %w", key, err)
	case err != nil && w.denied:
	case err != nil:
		w.obstacle = obstaclef(v1alpha1.ReasonClusterMissing, "There is no Cluster %s: the platform has to list it.", name).in(ar)
	default:
		w.cluster = cluster
	}
	switch {
	case ar.DeletionTimestamp != nil && w.cluster != nil && v1alpha1.IsAbandoned(w.cluster):
		w.abandon()
		return nil
	case ar.DeletionTimestamp != nil, w.denied, w.cluster == nil:
	case w.cluster.DeletionTimestamp != nil:
		w.obstacle, w.denied = obstaclef(v1alpha1.ReasonClusterDeleting, "Cluster %s is being deleted.", name), true
	default:
		policy := g.config.Policy(w.cluster, ar)
		if err := policy.Validate(); err != nil {
			w.fault = framework.Permanent(err)
			w.obstacle = obstaclef(v1alpha1.ReasonPolicyInvalid, "The policy of the platform has a fault, of which those are told who run it: what was granted stays meanwhile.")
			if ar.Status.Phase != v1alpha1.PhaseGranted || ar.Status.ObservedGeneration != ar.Generation {
				return nil
			}
			break // its credentials are renewed
		}
		if err := policy.Check(&ar.Spec, g.reserved(ar)...); err != nil {
			w.obstacle, w.denied = obstaclef(v1alpha1.ReasonExceedsPolicy, "%s", sentence(err.Error())), true
		}
		w.policy = policy.Name
		g.identify(w, ar)
	}
	if ar.Status.ClusterRef == nil && (w.denied || ar.DeletionTimestamp != nil) {
		g.clusters.ReleaseAll(w.key) // Nothing was ever made in the cluster.
		return nil
	}
	if w.cluster != nil {
		if err := g.connect(w, ar); err != nil {
			return err
		}
	}
	if ar.DeletionTimestamp != nil && w.on == nil && v1alpha1.IsAbandoned(ar) {
		w.abandon()
	}
	return nil
}

// abandon has the access end without cleaning up in the cluster.
func (w *work) abandon() { w.abandoned, w.obstacle = true, nil }

// reserved are the namespaces that no pattern of a policy includes, as far as a request asks for rights in them: they are the platform's,
// which may be one of its own clusters.
func (g *granter) reserved(ar *v1alpha1.AccessRequest) []string {
	reserved := append([]string{g.config.Namespace, metav1.NamespaceSystem, g.config.Layout.Clusters}, g.config.ReservedNamespaces...)
	for _, namespace := range g.sortedNamespaces(ar) {
		if g.config.Layout.Provider(namespace) != "" {
			reserved = append(reserved, namespace)
		}
	}
	return reserved
}

// in adds how to let go of a cluster if a deletion waits for it.
func (o *obstacle) in(ar *v1alpha1.AccessRequest) *obstacle {
	if ar.DeletionTimestamp != nil {
		o.message += fmt.Sprintf(" If the cluster is gone for good, annotate the AccessRequest with %s=true.", v1alpha1.AbandonAnnotation)
	}
	return o
}

// connect finds the way to the cluster.
func (g *granter) connect(w *work, ar *v1alpha1.AccessRequest) error {
	cluster := client.ObjectKeyFromObject(w.cluster)
	g.clusters.ReleaseAll(w.key, cluster)
	on, err := g.clusters.Acquire(cluster, w.key)
	if err != nil {
		return err
	}
	if err := on.Err(); err != nil {
		if !errors.Is(err, target.ErrUnreachable) {
			return err
		}
		// Its condition Ready says more, to the platform.
		unreachable := obstaclef(v1alpha1.ReasonClusterUnreachable, "Cluster %s can't be reached.", w.cluster.Name).in(ar)
		if w.obstacle != nil {
			w.obstacle.message += " " + unreachable.message
		} else {
			w.obstacle = unreachable
		}
		return nil
	}
	if err := on.Watch(w.key, watchedKinds()...); err != nil {
		return err
	}
	w.objects, err = g.objectsOn(on)
	if err != nil {
		return err
	}
	w.on = on
	return nil
}

// clusterOf returns the name of the Cluster that a request is for, or why there is none. The one that it was granted for
// stays, whatever becomes of the ClusterRequest, until all is taken away there.
func (g *granter) clusterOf(ctx context.Context, ar *v1alpha1.AccessRequest) (string, *obstacle, error) {
	switch {
	case ar.Spec.ClusterRef != nil:
		return ar.Spec.ClusterRef.Name, nil, nil
	case ar.Status.ClusterRef != nil:
		return ar.Status.ClusterRef.Name, nil, nil
	case ar.Spec.RequestRef == nil:
		return "", obstaclef(v1alpha1.ReasonRequestMissing, "The request names no cluster: set spec.clusterRef or spec.requestRef."), nil
	}
	name := ar.Spec.RequestRef.Name
	request := &v1alpha1.ClusterRequest{}
	err := g.reader.Get(ctx, client.ObjectKey{Namespace: ar.Namespace, Name: name}, request)
	says := cmp.Or(v1alpha1.Granted(request.Status.Conditions).Message, "it says no more.")
	switch {
	case client.IgnoreNotFound(err) != nil:
		return "", nil, fmt.Errorf("read ClusterRequest %s/%s: %w", ar.Namespace, name, err)
	case err != nil:
		return "", obstaclef(v1alpha1.ReasonRequestMissing, "There is no ClusterRequest %s in namespace %s.", name, ar.Namespace), nil
	case request.Status.Phase == v1alpha1.PhaseDenied:
		return "", obstaclef(v1alpha1.ReasonRequestDenied, "ClusterRequest %s is denied: %s", name, says), nil
	case request.Status.ClusterRef == nil:
		return "", obstaclef(v1alpha1.ReasonRequestPending, "ClusterRequest %s has no cluster yet: %s", name, says), nil
	}
	return request.Status.ClusterRef.Name, nil, nil
}

// unlessForeign skips a resource for a request that another granter grants.
func unlessForeign(r framework.Resource) framework.Resource {
	return framework.WrapSteps(r, func(ctx context.Context, _ framework.StepInfo, next func(context.Context) error) error {
		if workOf(ctx).foreign != nil {
			resourcecanceledcontext.SetCanceled(ctx)
			return nil
		}
		return next(ctx)
	})
}

// noting has the errors of a resource noted in place of ending the reconciliation, so that the status tells them; the
// resource check returns the first one at the end.
func noting(r framework.Resource) framework.Resource {
	return framework.WrapSteps(r, func(ctx context.Context, info framework.StepInfo, next func(context.Context) error) error {
		err := next(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if w := workOf(ctx); w.err == nil {
			w.err = fmt.Errorf("%s: %s: %w", info.Resource, info.Step, err)
		}
		resourcecanceledcontext.SetCanceled(ctx)
		return nil
	})
}
