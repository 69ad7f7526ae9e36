package serviceprovider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/internal/redact"
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
	id   string
	read func(ctx context.Context, request reconcile.Request) (*clustersv1alpha1.AccessRequest, error)
	open func(ctx context.Context, request reconcile.Request) (*clusters.Cluster, error)
	// put puts the cluster where authors find it.
	put func(into *ClusterContext, c *clusters.Cluster, secret client.ObjectKey)
	// fixed tells that the cluster is not asked for: its kubeconfig is in secret, if it is in one.
	fixed  bool
	secret client.ObjectKey
	// asked is the access request of an object, nil if there is none. APIReconciler.asked sets it.
	asked *clustersv1alpha1.AccessRequest
}

func mcpAccess(p ClusterAccessProvider) access {
	return access{id: MCP, read: p.MCPAccessRequest, open: p.MCPCluster, put: func(into *ClusterContext, c *clusters.Cluster, secret client.ObjectKey) {
		into.MCPCluster, into.MCPAccessSecretKey = c, secret
	}}
}

func workloadAccess(p ClusterAccessProvider) access {
	return access{id: Workload, read: p.WorkloadAccessRequest, open: p.WorkloadCluster, put: func(into *ClusterContext, c *clusters.Cluster, secret client.ObjectKey) {
		into.WorkloadCluster, into.WorkloadAccessSecretKey = c, secret
	}}
}

func additionalAccess(p AdditionalAccessProvider, id string) access {
	return access{
		id: id,
		read: func(ctx context.Context, request reconcile.Request) (*clustersv1alpha1.AccessRequest, error) {
			return p.AdditionalAccessRequest(ctx, request, id)
		},
		open: func(ctx context.Context, request reconcile.Request) (*clusters.Cluster, error) {
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

// wait is what has to come before a reconciliation goes on. It ends the reconciliation as an error does, and is none: the status says what is
// waited for, and the object is reconciled again after some time, or after a change if that is zero.
type wait struct {
	after           time.Duration
	reason, message string
	// asked is the access request that is waited for, nil if there is none.
	asked *clustersv1alpha1.AccessRequest
}

// Error implements error.
func (w *wait) Error() string { return w.message }

// acquire finds the clusters of an object, or says what has to be waited for. Clusters that were let go are neither waited for nor found. Nothing
// is asked for an object that has vanished.
func (r *APIReconciler[T, C]) acquire(ctx context.Context, o *object[T], gone letGo) error {
	var result ctrl.Result
	if !o.gone {
		var err error
		if result, err = r.access.Reconcile(ctx, o.request); err != nil && len(gone) == 0 {
			return fmt.Errorf("ask for access to clusters: %w", err)
		}
	}
	pending := waits(result) && len(gone) == 0
	found, err := r.have(ctx, o.request, gone, !pending)
	if o.clusters = found; err == nil && pending {
		err = &wait{reason: ReasonAccessPending, message: "waits for access to clusters"}
	}
	var w *wait
	if errors.As(err, &w) {
		w.after = cmp.Or(max(result.RequeueAfter, 0), accessPause)
	}
	return err
}

// asked returns the ways to the clusters of an object, with what is asked for.
func (r *APIReconciler[T, C]) asked(ctx context.Context, request ctrl.Request) ([]access, error) {
	all := slices.Clone(r.accesses)
	for i := range all {
		if all[i].fixed {
			continue
		}
		ar, err := all[i].read(ctx, request)
		if client.IgnoreNotFound(err) != nil {
			return nil, redact.Wrap(err, "read the access request for the %s cluster", all[i].id)
		}
		if err == nil {
			all[i].asked = ar
		}
	}
	return all, nil
}

// have returns the clusters that an object has access to already, but for those that are gone, or what has to be waited for. Unless all are
// granted nothing is opened.
func (r *APIReconciler[T, C]) have(ctx context.Context, request ctrl.Request, gone letGo, open bool) (found ClusterContext, err error) {
	all, err := r.asked(ctx, request)
	if err != nil {
		return found, err
	}
	all = slices.DeleteFunc(all, func(a access) bool { return gone.has(a.id) })
	for _, a := range all {
		if w := a.missing(); w != nil {
			return found, w
		}
	}
	if !open {
		return found, nil
	}
	for _, a := range all {
		c, err := a.open(ctx, request)
		if err != nil {
			return found, redact.Wrap(err, "get access to the %s cluster", a.id)
		}
		if c == nil {
			return found, fmt.Errorf("get access to the %s cluster: the %T gives none, although its access request is granted", a.id, r.access)
		}
		secret := a.secret
		if !a.fixed {
			secret = client.ObjectKey{Namespace: a.asked.Namespace, Name: a.asked.Status.SecretRef.Name}
		}
		a.put(&found, c, secret)
	}
	return found, nil
}

// missing is what access to a cluster waits for, nil for nothing.
func (a access) missing() *wait {
	ar, cluster := a.asked, "access to the "+a.id+" cluster"
	reason, message := ReasonAccessPending, "waits for "+cluster+": "
	switch {
	case a.fixed:
		return nil
	case ar == nil:
		message += "there is no access request yet"
	case ar.DeletionTimestamp != nil:
		reason, message = ReasonAccessLeaving, cluster+" is being taken away; it is asked for again when it is gone"
	case ar.Status.ObservedGeneration < ar.Generation && ar.Status.Phase != "":
		message += "what is asked for has changed, and was not looked at yet"
	case ar.Status.Phase == clustersv1alpha1.PhaseDenied:
		reason, message = ReasonAccessDenied, cluster+" is denied: "+why(ar)
	case ar.Status.Phase != clustersv1alpha1.PhaseGranted:
		message += why(ar)
	case ar.Status.SecretRef == nil:
		message += "there are no credentials"
	default:
		return nil
	}
	return &wait{after: accessPause, reason: reason, message: message, asked: ar}
}

// why is the reason that an access request gives. What it says is for the provider, and is not told to users.
func why(ar *clustersv1alpha1.AccessRequest) string {
	return cmp.Or(clustersv1alpha1.Granted(ar.Status.Conditions).Reason, "it was not looked at yet")
}

// tellWait tells in the status what an object waits for, by an event that it is denied, and in the log what the access request says, which
// is the provider's alone.
func (r *APIReconciler[T, C]) tellWait(ctx context.Context, o *object[T], w *wait) ctrl.Result {
	message := w.message
	if o.raw.GetDeletionTimestamp() != nil && (w.reason == ReasonAccessLeaving || w.reason == ReasonAccessDenied) {
		message += fmt.Sprintf("; if the cluster is gone for good, name it in the annotation %s", LetGoAnnotation)
	}
	before := meta.FindStatusCondition(*o.obj.GetConditions(), ServiceProviderConditionReady)
	if news := before == nil || before.Reason != w.reason || before.Message != message; news && w.asked != nil {
		says := clustersv1alpha1.Granted(w.asked.Status.Conditions).Message
		log.FromContext(ctx).Info(message, "object", o.request.String(), "accessRequest", keyOf(w.asked).String(), "says", says)
	}
	if w.reason == ReasonAccessDenied { // nobody may look at the object again before somebody changes what is denied
		r.warn(ctx, o, w.reason, "%s", message)
	}
	o.says(w.reason, message)
	return ctrl.Result{RequeueAfter: w.after}
}

// waits tells whether a result asks for another call.
func waits(result ctrl.Result) bool { return !result.IsZero() }
