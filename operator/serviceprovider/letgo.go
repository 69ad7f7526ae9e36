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
	"github.com/operatorkit/operatorkit/operator/serviceprovider/internal/redact"
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
type letGo []access

func (l letGo) has(id string) bool {
	return slices.ContainsFunc(l, func(a access) bool { return a.id == id })
}

// String names them.
func (l letGo) String() string { return strings.Join(idsOf(l), ", ") }

func idsOf(all []access) (ids []string) {
	for _, a := range all {
		ids = append(ids, a.id)
	}
	return ids
}

// letGo reads the annotation. Ids that are unknown, and those of clusters that are there, count for nothing, and events name them.
func (r *APIReconciler[T, C]) letGo(ctx context.Context, o *object[T]) (letGo, error) {
	named := o.raw.GetAnnotations()[LetGoAnnotation]
	if named == "" {
		return nil, nil
	}
	limited, cancel := r.limited(ctx)
	defer cancel()
	all, err := r.asked(limited, o.request)
	if err != nil {
		return nil, err
	}
	var gone letGo
	var unknown []string
	for id := range strings.SplitSeq(named, ",") {
		id = strings.TrimSpace(id)
		i := slices.IndexFunc(all, func(a access) bool { return a.id == id })
		if i < 0 && id != "" {
			unknown = append(unknown, id)
		}
		if i < 0 || gone.has(id) {
			continue
		}
		lost, err := r.isLost(ctx, o.request, all[i])
		if err != nil {
			return nil, err
		}
		if !lost {
			r.warn(ctx, o, ReasonClusterAnswers, "annotation %s names the %s cluster, which answers: it is cleaned up", LetGoAnnotation, id)
			continue
		}
		gone = append(gone, all[i])
	}
	if len(unknown) > 0 {
		r.warn(ctx, o, ReasonInvalidAnnotation, "annotation %s names no cluster of the object: %q; there are %q", LetGoAnnotation, unknown, idsOf(all))
	}
	return gone, nil
}

// isLost tells whether nothing can be cleaned up in a cluster: nobody grants access to it any more, or it does not answer.
func (r *APIReconciler[T, C]) isLost(ctx context.Context, request ctrl.Request, a access) (bool, error) {
	if ar := a.asked; !a.fixed && (ar == nil || ar.DeletionTimestamp != nil || ar.Status.Phase == clustersv1alpha1.PhaseDenied ||
		clustersv1alpha1.IsAbandoned(ar) || ar.Status.Phase == clustersv1alpha1.PhasePending && nothingMade(ar)) {
		return true, nil
	}
	ctx, cancel := r.limited(ctx)
	defer cancel()
	c, err := a.open(ctx, request)
	if err == nil && c != nil {
		err = c.Client().Get(ctx, client.ObjectKey{Name: metav1.NamespaceDefault}, namespaceNamed(metav1.NamespaceDefault))
	}
	switch {
	case err == nil, apierrors.ReasonForError(err) != metav1.StatusReasonUnknown && c != nil:
		return false, nil
	case silent(err, c):
		return true, nil
	}
	return false, redact.Wrap(err, "look whether the %s cluster answers", a.id)
}

// nothingMade tells whether nothing was ever made in a cluster for a request: the one that access is granted to stays in its status.
func nothingMade(ar *clustersv1alpha1.AccessRequest) bool {
	return ar.Status.ClusterRef == nil && ar.Status.SecretRef == nil
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

// left says what a deletion waits for when clusters were let go and the author can't clean up the others without them.
func (r *APIReconciler[T, C]) left(gone letGo) error {
	left := slices.DeleteFunc(slices.Clone(r.accesses), func(a access) bool { return gone.has(a.id) })
	if _, can := r.author.(PartialDeleter[T, C]); can || len(gone) == 0 || len(left) == 0 {
		return nil
	}
	return &wait{after: accessPause, reason: ReasonClustersLeft, message: fmt.Sprintf(
		"the annotation %s lets go of %s, and the provider can't clean up %s without it: ask the platform to let go of that too, or wait until all answer",
		LetGoAnnotation, gone, letGo(left))}
}

// abandon tells whoever grants access that it has nothing to clean up in clusters that are gone.
func (r *APIReconciler[T, C]) abandon(ctx context.Context, gone letGo) error {
	ctx, cancel := r.limited(ctx)
	defer cancel()
	for _, a := range gone {
		if a.asked == nil || clustersv1alpha1.IsAbandoned(a.asked) {
			continue
		}
		changed := a.asked.DeepCopy()
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, clustersv1alpha1.AbandonAnnotation, "true")
		err := r.platform.Client().Patch(ctx, changed, client.MergeFromWithOptions(a.asked, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) {
			err = fmt.Errorf("%w: %w", errChanged, err)
		}
		if client.IgnoreNotFound(err) != nil {
			return redact.Wrap(err, "abandon the access request for the %s cluster", a.id)
		}
	}
	return nil
}
