package serviceprovider

import (
	"context"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/cut"
	"github.com/operatorkit/operatorkit/operator/internal/claims"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/internal/discreet"
)

// The reasons of the events that the runtime writes on objects, besides those of the condition Ready.
const (
	// ReasonInvalidAnnotation: an annotation has a value that means nothing.
	ReasonInvalidAnnotation = "InvalidAnnotation"
	// ReasonStatusClaimed: another operator writes the status, which says something else than this one would.
	ReasonStatusClaimed = "StatusClaimed"
	// ReasonClusterLetGo: a cluster was not cleaned up because LetGoAnnotation says that it is gone.
	ReasonClusterLetGo = "ClusterLetGo"
	// ReasonClusterAnswers: a cluster that LetGoAnnotation says is gone is there, and is cleaned up.
	ReasonClusterAnswers = "ClusterAnswers"
)

// recorder writes events, once there is something to write them with. Events that say the same as before are the business of
// what writes them: it counts them.
type recorder struct {
	to atomic.Pointer[framework.EventRecorder]
}

func (r *recorder) set(to framework.EventRecorder) { r.to.Store(&to) }

func (r *recorder) isSet() bool { return r.to.Load() != nil }

func (r *recorder) warn(ctx context.Context, obj runtime.Object, reason, format string, args ...any) {
	if to := r.to.Load(); to != nil {
		(*to).Event(obj, corev1.EventTypeWarning, reason, cut.Text(secretscontext.Scrub(ctx, fmt.Sprintf(format, args...)), messageLimit))
	}
}

// failed tells of an error, as far as users are told.
func (r *recorder) failed(ctx context.Context, obj runtime.Object, err error) {
	r.warn(ctx, obj, ReasonReconcileFailed, "%s", discreet.Text(err))
}

// waits tells of access that is denied: nobody may look at the object again before somebody changes what is denied.
func (r *recorder) waits(ctx context.Context, obj runtime.Object, w *wait) {
	if w.reason == ReasonAccessDenied {
		r.warn(ctx, obj, w.reason, "%s", w.message)
	}
}

// statusClaimed tells who writes the status of an object.
func (r *recorder) statusClaimed(ctx context.Context, obj runtime.Object, by string) {
	r.warn(ctx, obj, ReasonStatusClaimed, "the status is written by %s: take the annotation %s off if that does not run any more", by, claims.Annotation)
}

// letGo tells of clusters that are not cleaned up.
func (r *recorder) letGo(ctx context.Context, obj runtime.Object, gone letGo) {
	r.warn(ctx, obj, ReasonClusterLetGo, "not cleaned up, because the annotation %s says that it is gone for good: %s", LetGoAnnotation, gone)
}
