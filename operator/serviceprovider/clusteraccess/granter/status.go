package granter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/internal/cut"
	"github.com/operatorkit/operatorkit/operator/internal/claims"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/internal/redact"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statusresource"
)

// stillWorks is what is told of access that should have ended.
const stillWorks = "What was granted before still works in the cluster until it can be taken away there."

// maxMessage is how long the message of a condition or an event may be, in bytes.
const maxMessage = 1024

// claim notes the granter in the status before anything else is written there, so that other granters leave the request alone, and the
// cluster before anything is made in it, so that it is found again whatever happens. What was granted under a former name is taken over.
func (g *granter) claim(ctx context.Context, ar *v1alpha1.AccessRequest, _ *statusresource.Report) error {
	w := workOf(ctx)
	if w.foreign = foreign(ctx, ar); w.foreign != nil {
		return nil
	}
	if ar.Status.Granter != "" || ar.DeletionTimestamp == nil {
		ar.Status.Granter = claims.By(identity.From(ctx).Identity)
	}
	if w.on != nil && !w.denied && ar.Status.ClusterRef == nil && ar.DeletionTimestamp == nil {
		ar.Status.ClusterRef = &v1alpha1.LocalObjectReference{Name: w.cluster.Name}
		ar.Status.Phase = v1alpha1.PhasePending
	}
	return nil
}

// status makes the status of a request out of what the other resources did.
func (g *granter) status(ctx context.Context, ar *v1alpha1.AccessRequest, _ *statusresource.Report) error {
	w := workOf(ctx)
	s := &ar.Status
	found := w.obstacle
	if w.err != nil {
		found = obstaclef(v1alpha1.ReasonFailed, "%s", sentence(redact.Text(w.err)))
	}
	if found == nil && ar.DeletionTimestamp != nil {
		found = obstaclef(v1alpha1.ReasonRevoking, "The access is being taken away.")
	}
	if found == nil || w.denied && w.err == nil {
		// What is asked for now was looked at. Otherwise the status stays about what was granted before.
		s.ObservedGeneration = ar.Generation
	}
	s.Provider = w.provider
	lingers := g.tellLingering(w, ar)
	if lingers {
		found.message += " " + stillWorks
	}
	switch {
	case lingers: // this, and the time when the credentials run out, are still about what was granted
	case w.credentials == nil:
		s.Policy, s.ExpirationTime = "", nil
	case found == nil:
		s.Policy = w.policy
	}
	s.SecretRef, s.ServiceAccount, s.RenewalTime = nil, nil, nil
	valid := false
	if c := w.credentials; c != nil {
		s.SecretRef = &v1alpha1.LocalObjectReference{Name: c.secret}
		if !c.oidc {
			s.ServiceAccount = &v1alpha1.ServiceAccountReference{Namespace: g.config.Namespace, Name: w.name}
		}
		s.ExpirationTime, s.RenewalTime = timeOf(c.expiration), timeOf(c.renewal)
		valid = (c.oidc || g.config.Clock.Now().Before(c.expiration)) && ar.DeletionTimestamp == nil
	}
	condition := metav1.Condition{Type: v1alpha1.ConditionGranted, Status: metav1.ConditionFalse, ObservedGeneration: s.ObservedGeneration}
	switch {
	case w.denied:
		s.Phase = v1alpha1.PhaseDenied
	case valid && s.ObservedGeneration > 0:
		s.Phase, condition.Status, w.granted = v1alpha1.PhaseGranted, metav1.ConditionTrue, true
	default:
		s.Phase = v1alpha1.PhasePending
	}
	switch {
	case found != nil:
		condition.Reason, condition.Message = found.reason, cut.Text(found.message, maxMessage)
	case s.Phase == v1alpha1.PhaseGranted:
		condition.Reason, condition.Message = v1alpha1.ReasonGranted, fmt.Sprintf("The credentials for Cluster %s are in Secret %s.", w.cluster.Name, w.credentials.secret)
	default:
		condition.Reason, condition.Message = v1alpha1.ReasonRequestPending, "The credentials are not issued yet."
	}
	apimeta.SetStatusCondition(&s.Conditions, condition)
	return nil
}

// tellLingering tells in the status whether what was granted still works in the cluster although it should not.
func (g *granter) tellLingering(w *work, ar *v1alpha1.AccessRequest) bool {
	revoked := w.denied || ar.DeletionTimestamp != nil
	if !revoked || ar.Status.ClusterRef == nil || w.abandoned || w.on != nil && w.err == nil {
		apimeta.RemoveStatusCondition(&ar.Status.Conditions, v1alpha1.ConditionRevoked)
		return false
	}
	reason := v1alpha1.ReasonClusterUnreachable
	switch {
	case w.err != nil:
		reason = v1alpha1.ReasonFailed
	case w.cluster == nil:
		reason = v1alpha1.ReasonClusterMissing
	}
	apimeta.SetStatusCondition(&ar.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionRevoked, Status: metav1.ConditionFalse, Reason: reason, ObservedGeneration: ar.Generation,
		Message: stillWorks,
	})
	return true
}

func timeOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t.Local()}
}

// tell writes events on what has changed.
func (g *granter) tell(ctx context.Context, before, after *v1alpha1.AccessRequest) {
	was, is := v1alpha1.Granted(before.Status.Conditions), v1alpha1.Granted(after.Status.Conditions)
	if is.Reason == was.Reason && is.Status == was.Status {
		return
	}
	kind := corev1.EventTypeWarning
	if is.Status == metav1.ConditionTrue && is.Reason == v1alpha1.ReasonGranted || is.Reason == v1alpha1.ReasonRevoking || is.Reason == v1alpha1.ReasonRequestPending {
		kind = corev1.EventTypeNormal
	}
	framework.Recorder(ctx, g.recorder).Event(after, kind, is.Reason, is.Message)
}

// check is the last resource: it ends the reconciliation with the error that the others noted, and says when to look again.
type check struct{ *granter }

// Name implements framework.Resource.
func (c *check) Name() string { return "check" }

// EnsureCreated implements framework.Resource.
func (c *check) EnsureCreated(ctx context.Context, _ any) error {
	w := workOf(ctx)
	if w.foreign != nil {
		return w.foreign
	}
	c.lookAgain(ctx, w)
	if w.fault != nil && w.err != nil { // which may have to be tried again
		return errors.Join(w.fault, w.err)
	}
	return cmp.Or(w.fault, w.err)
}

// lookAgain says when to look again although nothing changes.
func (c *check) lookAgain(ctx context.Context, w *work) {
	now := c.config.Clock.Now()
	switch {
	case w.obstacle != nil && w.obstacle.reason == v1alpha1.ReasonAccountGone:
		requeuecontext.SetAfter(ctx, time.Second)
	case w.credentials == nil:
	case w.on != nil && w.err == nil:
		next := jitter(c.config.CheckInterval)
		if due := w.credentials.renewal.Sub(now); due < next && !w.credentials.oidc {
			next = max(due, time.Second)
		}
		requeuecontext.SetAfter(ctx, next)
	case w.granted && !w.credentials.oidc: // they can't be renewed now: the status says so when they have run out
		requeuecontext.SetAfter(ctx, max(w.credentials.expiration.Sub(now), time.Second))
	}
}

// EnsureDeleted implements framework.Resource. While the cluster can't be asked to forget the access, the request stays.
func (c *check) EnsureDeleted(ctx context.Context, obj any) error {
	w := workOf(ctx)
	if w.foreign != nil || w.err != nil {
		return w.err
	}
	ar := obj.(*v1alpha1.AccessRequest)
	switch {
	case w.abandoned:
		framework.Recorder(ctx, c.recorder).Event(ar, corev1.EventTypeWarning, "Abandoned", fmt.Sprintf(
			"The access to Cluster %s ends without cleaning up there now, because of the annotation %s: what was made there under the name %s stays until the cluster answers, or for good.",
			clusterName(ar), v1alpha1.AbandonAnnotation, w.name))
	case w.on == nil && ar.Status.ClusterRef != nil:
		finalizerskeptcontext.SetKept(ctx)
	}
	return nil
}

// Plan implements framework.Planner.
func (c *check) Plan(ctx context.Context, _ plan.Event, _ any) ([]plan.Change, error) {
	w := workOf(ctx)
	return nil, cmp.Or(w.foreign, w.fault, w.err)
}

func clusterName(ar *v1alpha1.AccessRequest) string {
	if ar.Status.ClusterRef != nil {
		return ar.Status.ClusterRef.Name
	}
	return "(none)"
}

// sentence makes the text of an error a sentence for people.
func sentence(text string) string {
	if first, size := utf8.DecodeRuneInString(text); size > 0 {
		text = string(unicode.ToUpper(first)) + text[size:]
	}
	if strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}
