package serviceprovider

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/internal/discreet"
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
	// fixed tells that the cluster is not asked for: its kubeconfig is in secret, if it is in one.
	fixed  bool
	secret client.ObjectKey
}

func mcpAccess(p ClusterAccessProvider) access {
	return access{id: MCP, request: p.MCPAccessRequest, cluster: p.MCPCluster, put: func(into *ClusterContext, c *clusters.Cluster, secret client.ObjectKey) {
		into.MCPCluster, into.MCPAccessSecretKey = c, secret
	}}
}

func workloadAccess(p ClusterAccessProvider) access {
	return access{id: Workload, request: p.WorkloadAccessRequest, cluster: p.WorkloadCluster, put: func(into *ClusterContext, c *clusters.Cluster, secret client.ObjectKey) {
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

// wait is what has to come before a reconciliation goes on. What it says is told to users.
type wait struct {
	after           time.Duration
	reason, message string
	// request is the access request that is waited for, nil if there is none.
	request *clustersv1alpha1.AccessRequest
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
	askAgain := waits(result) && len(gone) == 0
	found, w, err := r.have(ctx, request, gone, !askAgain)
	if w == nil && askAgain {
		w = &wait{reason: ReasonAccessPending, message: "waits for access to clusters"}
	}
	return found, w.noLaterThan(result.RequeueAfter), err
}

// have returns the clusters that an object has access to already, but for those that are gone, or what has to be waited for. Unless all are
// granted nothing is opened.
func (r *APIReconciler[T, C]) have(ctx context.Context, request ctrl.Request, gone letGo, open bool) (found ClusterContext, _ *wait, err error) {
	for _, a := range r.accesses {
		if gone.has(a.id) {
			continue
		}
		secret, w, err := r.granted(ctx, request, a)
		if err != nil || w != nil {
			return found, w, err
		}
		if !open {
			continue
		}
		c, err := a.cluster(ctx, request)
		if err != nil {
			return found, nil, discreet.Step(err, "get access to the %s cluster", a.id)
		}
		if c == nil {
			return found, nil, fmt.Errorf("get access to the %s cluster: the %T gives none, although its access request is granted", a.id, r.access)
		}
		a.put(&found, c, secret)
	}
	return found, nil, nil
}

// granted tells what access to a cluster waits for, if anything, and else which Secret has it.
func (r *APIReconciler[T, C]) granted(ctx context.Context, request ctrl.Request, a access) (secret client.ObjectKey, _ *wait, err error) {
	if a.fixed {
		return a.secret, nil, nil
	}
	ar, err := a.request(ctx, request)
	switch {
	case apierrors.IsNotFound(err), err == nil && ar == nil:
		return secret, pending(a, nil, "there is no access request yet"), nil
	case err != nil:
		return secret, nil, discreet.Step(err, "read the access request for the %s cluster", a.id)
	case ar.DeletionTimestamp != nil:
		return secret, &wait{reason: ReasonAccessLeaving, message: fmt.Sprintf(
			"access to the %s cluster is being taken away; it is asked for again when it is gone", a.id), request: ar}, nil
	case ar.Status.ObservedGeneration < ar.Generation && ar.Status.Phase != "":
		return secret, pending(a, ar, "what is asked for has changed, and was not looked at yet"), nil
	case ar.Status.Phase == clustersv1alpha1.PhaseDenied:
		return secret, &wait{reason: ReasonAccessDenied, message: fmt.Sprintf("access to the %s cluster is denied: %s", a.id, why(ar)), request: ar}, nil
	case ar.Status.Phase != clustersv1alpha1.PhaseGranted:
		return secret, pending(a, ar, why(ar)), nil
	case ar.Status.SecretRef == nil:
		return secret, pending(a, ar, "there are no credentials"), nil
	}
	return client.ObjectKey{Namespace: ar.Namespace, Name: ar.Status.SecretRef.Name}, nil, nil
}

func pending(a access, ar *clustersv1alpha1.AccessRequest, why string) *wait {
	return &wait{reason: ReasonAccessPending, message: fmt.Sprintf("waits for access to the %s cluster: %s", a.id, why), request: ar}
}

// why is the reason that an access request gives. What it says is for the provider, and is not told to users.
func why(ar *clustersv1alpha1.AccessRequest) string {
	return cmp.Or(clustersv1alpha1.Granted(ar.Status.Conditions).Reason, "it was not looked at yet")
}

// tellWait tells in the status what an object waits for, by an event that it is denied, and in the log what the access request says, which
// is the provider's alone.
func (r *APIReconciler[T, C]) tellWait(ctx context.Context, o *object[T], w *wait, tell func(obj API, reason, message string)) ctrl.Result {
	before := meta.FindStatusCondition(*o.obj.GetConditions(), ServiceProviderConditionReady)
	if news := before == nil || before.Reason != w.reason || before.Message != w.message; news && w.request != nil {
		says := clustersv1alpha1.Granted(w.request.Status.Conditions).Message
		log.FromContext(ctx).Info(w.message, "object", o.request.String(), "accessRequest", keyOf(w.request).String(), "says", says)
	}
	if w.reason == ReasonAccessDenied { // nobody may look at the object again before somebody changes what is denied
		r.recorder.warn(ctx, o.obj, w.reason, "%s", w.message)
	}
	tell(o.obj, w.reason, w.message)
	return ctrl.Result{RequeueAfter: w.after}
}

// noLaterThan sets when to look again.
func (w *wait) noLaterThan(after time.Duration) *wait {
	if w != nil {
		w.after = cmp.Or(max(after, 0), accessPause)
	}
	return w
}

// waits tells whether a result asks for another call.
func waits(result ctrl.Result) bool { return !result.IsZero() }
