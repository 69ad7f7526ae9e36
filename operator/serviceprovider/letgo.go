package serviceprovider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/internal/discreet"
	clustersv1alpha1 "github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// LetGoAnnotation names clusters that are gone for good, on an object that is being deleted. They are separated by commas: "mcp",
// "workload" and the ids of additional ones. Nothing is cleaned up there, and their access requests are abandoned. An event says so.
//
// Those who may annotate objects could keep their workloads by it, for nobody. So it counts for a cluster that does not answer, or to which
// there is no access: it was never given, is denied, being taken away, or abandoned by the platform (clustersv1alpha1.AbandonAnnotation on the
// AccessRequest). Credentials that the cluster refuses are no such proof, because whoever rules there can bring that about, and they are
// made anew. Of any other cluster an event says that it is cleaned up.
//
// A Reconciler that is no PartialDeleter can't clean up the others without those that are let go: the object waits until all are gone, or
// until the one that is let go is there again.
const LetGoAnnotation = "serviceprovider.operatorkit.io/let-go"

// letGo are clusters that are gone for good.
type letGo []lostCluster

// lostCluster is one of them, and the access request for it, nil if there is none.
type lostCluster struct {
	id      string
	request *clustersv1alpha1.AccessRequest
}

func (l letGo) has(id string) bool {
	return slices.ContainsFunc(l, func(lost lostCluster) bool { return lost.id == id })
}

// String names them.
func (l letGo) String() string {
	var ids []string
	for _, lost := range l {
		ids = append(ids, lost.id)
	}
	return strings.Join(ids, ", ")
}

// letGo reads the annotation. Ids that are unknown, and those of clusters that are there, count for nothing, and events name them.
func (r *APIReconciler[T, C]) letGo(ctx context.Context, o *object[T]) (letGo, error) {
	var gone letGo
	var unknown, known []string
	for id := range strings.SplitSeq(o.raw.GetAnnotations()[LetGoAnnotation], ",") {
		id = strings.TrimSpace(id)
		i := slices.IndexFunc(r.accesses, func(a access) bool { return a.id == id })
		if i < 0 && id != "" {
			unknown = append(unknown, id)
		}
		if i < 0 || gone.has(id) {
			continue
		}
		asked, lost, err := r.isLost(ctx, o.request, r.accesses[i])
		if err != nil {
			return nil, err
		}
		if !lost {
			r.recorder.warn(ctx, o.obj, ReasonClusterAnswers, "annotation %s names the %s cluster, which answers: it is cleaned up", LetGoAnnotation, id)
			continue
		}
		gone = append(gone, lostCluster{id, asked})
	}
	if len(unknown) > 0 {
		for _, a := range r.accesses {
			known = append(known, a.id)
		}
		r.recorder.warn(ctx, o.obj, ReasonInvalidAnnotation, "annotation %s names no cluster of the object: %q; there are %q", LetGoAnnotation, unknown, known)
	}
	return gone, nil
}

// isLost tells whether nothing can be cleaned up in a cluster: nobody grants access to it any more, or it does not answer.
// asked is the access request, nil if there is none.
func (r *APIReconciler[T, C]) isLost(ctx context.Context, request ctrl.Request, a access) (asked *clustersv1alpha1.AccessRequest, lost bool, err error) {
	limited, cancel := r.limited(ctx)
	defer cancel()
	if !a.fixed {
		asked, err = a.request(limited, request)
		switch {
		case apierrors.IsNotFound(err), err == nil && asked == nil:
			return nil, true, nil
		case err != nil:
			return nil, false, discreet.Step(err, "read the access request for the %s cluster", a.id)
		case asked.DeletionTimestamp != nil, asked.Status.Phase == clustersv1alpha1.PhaseDenied, clustersv1alpha1.IsAbandoned(asked),
			neverGranted(asked):
			return asked, true, nil
		}
	}
	c, err := a.cluster(limited, request)
	if err == nil && c != nil {
		err = c.Client().Get(limited, client.ObjectKey{Name: metav1.NamespaceDefault}, namespaceNamed(metav1.NamespaceDefault))
	}
	switch {
	case err == nil, apierrors.ReasonForError(err) != metav1.StatusReasonUnknown && c != nil:
		return asked, false, nil
	case silent(err, c):
		return asked, true, nil
	}
	return asked, false, discreet.Step(err, "look whether the %s cluster answers", a.id)
}

// neverGranted tells whether nothing was ever made in a cluster for a request: the one that access is granted to stays in its status.
func neverGranted(ar *clustersv1alpha1.AccessRequest) bool {
	return ar.Status.Phase == clustersv1alpha1.PhasePending && ar.Status.ClusterRef == nil && ar.Status.SecretRef == nil
}

// silent tells whether an error says that a cluster does not answer. One that refuses our credentials does, and that we don't run says
// nothing of it.
func silent(err error, c *clusters.Cluster) bool {
	var told *target.UnreachableError
	if errors.As(err, &told) {
		return told.State != target.CredentialRefused
	}
	return !errors.Is(err, target.ErrNotRunning) && !errors.Is(err, target.ErrReleased) && unreachable(err, []*clusters.Cluster{c}) != nil
}

// left is what a deletion waits for when clusters were let go and the author can't clean up the others without them, nil for nothing.
func (r *APIReconciler[T, C]) left(gone letGo) *wait {
	var left []string
	for _, a := range r.accesses {
		if !gone.has(a.id) {
			left = append(left, a.id)
		}
	}
	if _, can := r.author.(PartialDeleter[T, C]); can || len(gone) == 0 || len(left) == 0 {
		return nil
	}
	w := &wait{reason: ReasonClustersLeft, message: fmt.Sprintf(
		"the annotation %s lets go of %s, and the provider can't clean up %s without it: ask the platform to let go of that too, or wait until all answer",
		LetGoAnnotation, gone, strings.Join(left, ", "))}
	return w.noLaterThan(0)
}

func (r *APIReconciler[T, C]) howToLetGo(w *wait) string {
	if w.reason != ReasonAccessLeaving && w.reason != ReasonAccessDenied {
		return ""
	}
	return fmt.Sprintf("; if the cluster is gone for good, name it in the annotation %s", LetGoAnnotation)
}

// abandon tells whoever grants access that it has nothing to clean up in clusters that are gone.
func (r *APIReconciler[T, C]) abandon(ctx context.Context, gone letGo) error {
	for _, g := range gone {
		if g.request == nil || clustersv1alpha1.IsAbandoned(g.request) {
			continue
		}
		limited, cancel := r.limited(ctx)
		defer cancel()
		changed := g.request.DeepCopy()
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, clustersv1alpha1.AbandonAnnotation, "true")
		err := r.platform.Client().Patch(limited, changed, client.MergeFromWithOptions(g.request, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) {
			err = fmt.Errorf("%w: %w", errChanged, err)
		}
		if client.IgnoreNotFound(err) != nil {
			return discreet.Step(err, "abandon the access request for the %s cluster", g.id)
		}
	}
	return nil
}
