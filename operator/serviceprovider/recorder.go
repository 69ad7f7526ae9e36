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
