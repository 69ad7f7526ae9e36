package serviceprovider

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/context/secretscontext"
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

// warn writes an event on an object. Events that say the same as before are the business of what writes them: it counts them.
func (r *APIReconciler[T, C]) warn(ctx context.Context, o *object[T], reason, format string, args ...any) {
	if r.recorder != nil && !o.gone {
		r.recorder.Event(o.obj, corev1.EventTypeWarning, reason, cut.Text(secretscontext.Scrub(ctx, fmt.Sprintf(format, args...)), messageLimit))
	}
}
