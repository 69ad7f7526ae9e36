package serviceprovider

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
	clustersv1alpha1 "github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// The ids of the clusters that objects have, for LetGoAnnotation.
const (
	MCP      = "mcp"
	Workload = "workload"
)

// accessPause is when access is looked at again if its provider does not say.
const accessPause = 10 * time.Second

// access is the way to one cluster of an object.
type access struct {
	id      string
	request func(ctx context.Context, request reconcile.Request) (*clustersv1alpha1.AccessRequest, error)
	cluster func(ctx context.Context, request reconcile.Request) (*clusters.Cluster, error)
	// put puts the cluster where authors find it.
	put func(into *ClusterContext, c *clusters.Cluster, secret client.ObjectKey)
}

func mcpAccess(p ClusterAccessProvider) access {
	return access{MCP, p.MCPAccessRequest, p.MCPCluster, func(into *ClusterContext, c *clusters.Cluster, secret client.ObjectKey) {
		into.MCPCluster, into.MCPAccessSecretKey = c, secret
	}}
}

func workloadAccess(p ClusterAccessProvider) access {
	return access{Workload, p.WorkloadAccessRequest, p.WorkloadCluster, func(into *ClusterContext, c *clusters.Cluster, secret client.ObjectKey) {
		into.WorkloadCluster, into.WorkloadAccessSecretKey = c, secret
	}}
}

func additionalAccess(p AdditionalAccessProvider, id string) access {
	return access{
		id: id,
		request: func(ctx context.Context, request reconcile.Request) (*clustersv1alpha1.AccessRequest, error) {
			return p.AdditionalAccessRequest(ctx, request, id)
		},
		cluster: func(ctx context.Context, request reconcile.Request) (*clusters.Cluster, error) {
			return p.AdditionalCluster(ctx, request, id)
		},
		put: func(into *ClusterContext, c *clusters.Cluster, secret client.ObjectKey) {
			if into.Additional == nil {
				into.Additional = map[string]AdditionalCluster{}
			}
			into.Additional[id] = AdditionalCluster{Cluster: c, AccessSecretKey: secret}
		},
	}
}

// wait is what has to come before a reconciliation goes on.
type wait struct {
	after           time.Duration
	reason, message string
}

// acquire returns the clusters of an object, or what has to be waited for. Clusters that were let go are neither waited for
// nor returned.
func (r *APIReconciler[T, C]) acquire(ctx context.Context, request ctrl.Request, gone letGo) (found ClusterContext, _ *wait, err error) {
	ctx, cancel := r.limited(ctx)
	defer cancel()
	result, err := r.access.Reconcile(ctx, request)
	if err != nil && len(gone) == 0 {
		return found, nil, fmt.Errorf("ask for access to clusters: %w", err)
	}
	for _, a := range r.accesses {
		if gone.has(a.id) {
			continue
		}
		secret, w, err := r.granted(ctx, request, a)
		if err != nil || w != nil {
			return found, w.noLaterThan(result.RequeueAfter), err
		}
		if waits(result) && len(gone) == 0 {
			continue
		}
		c, err := a.cluster(ctx, request)
		if err != nil {
			return found, nil, fmt.Errorf("get access to the %s cluster: %w", a.id, err)
		}
		if c == nil {
			return found, nil, fmt.Errorf("get access to the %s cluster: the %T gives none, although its access request is granted", a.id, r.access)
		}
		a.put(&found, c, secret)
	}
	if waits(result) && len(gone) == 0 {
		w := &wait{reason: ReasonAccessPending, message: "waits for access to clusters"}
		return found, w.noLaterThan(result.RequeueAfter), nil
	}
	return found, nil, nil
}

// granted tells what access to a cluster waits for, if anything, and else which Secret has it.
func (r *APIReconciler[T, C]) granted(ctx context.Context, request ctrl.Request, a access) (secret client.ObjectKey, _ *wait, err error) {
	ar, err := a.request(ctx, request)
	switch {
	case apierrors.IsNotFound(err), err == nil && ar == nil:
		return secret, pending(a, "there is no access request yet"), nil
	case err != nil:
		return secret, nil, fmt.Errorf("read the access request for the %s cluster: %w", a.id, err)
	case ar.DeletionTimestamp != nil:
		return secret, &wait{reason: ReasonAccessLeaving, message: fmt.Sprintf(
			"access to the %s cluster is being taken away (%s %s); it is asked for again when it is gone", a.id, clustersv1alpha1.AccessRequestKind, keyOf(ar))}, nil
	case ar.Status.ObservedGeneration < ar.Generation && ar.Status.Phase != "":
		return secret, pending(a, fmt.Sprintf("%s %s: what is asked for has changed, and was not looked at yet", clustersv1alpha1.AccessRequestKind, keyOf(ar))), nil
	case ar.Status.Phase == clustersv1alpha1.PhaseDenied:
		return secret, &wait{reason: ReasonAccessDenied, message: fmt.Sprintf(
			"access to the %s cluster is denied (%s %s): %s", a.id, clustersv1alpha1.AccessRequestKind, keyOf(ar), why(ar))}, nil
	case ar.Status.Phase != clustersv1alpha1.PhaseGranted:
		return secret, pending(a, fmt.Sprintf("%s %s: %s", clustersv1alpha1.AccessRequestKind, keyOf(ar), why(ar))), nil
	case ar.Status.SecretRef == nil:
		return secret, pending(a, fmt.Sprintf("%s %s names no Secret", clustersv1alpha1.AccessRequestKind, keyOf(ar))), nil
	}
	return client.ObjectKey{Namespace: ar.Namespace, Name: ar.Status.SecretRef.Name}, nil, nil
}

func pending(a access, why string) *wait {
	return &wait{reason: ReasonAccessPending, message: fmt.Sprintf("waits for access to the %s cluster: %s", a.id, why)}
}

// why is what an access request says.
func why(ar *clustersv1alpha1.AccessRequest) string {
	if c := meta.FindStatusCondition(ar.Status.Conditions, clustersv1alpha1.ConditionGranted); c != nil && c.Message != "" {
		return c.Message
	}
	return "it says no more"
}

// noLaterThan sets when to look again.
func (w *wait) noLaterThan(after time.Duration) *wait {
	if w == nil {
		return nil
	}
	w.after = accessPause
	if after > 0 {
		w.after = after
	}
	return w
}

func (w *wait) result() ctrl.Result { return ctrl.Result{RequeueAfter: w.after} }

// waits tells whether a result asks for another call.
func waits(result ctrl.Result) bool { return !result.IsZero() }
