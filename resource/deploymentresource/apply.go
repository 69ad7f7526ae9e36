package deploymentresource

import (
	"context"
	"errors"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// Apply implements worklist.Ops. It carries out the plan.
func (r *resource[O]) Apply(ctx context.Context, obj O, change State) error {
	ctx = api.WithResource(ctx, r.config.Name, r.config.FormerNames)
	err := change.work.run(ctx, func(e deployment.ProgressEvent) { r.config.Progress(ctx, obj, e) })
	r.config.Done(ctx, obj, change.work, err)
	switch {
	case errors.Is(err, deployment.ErrStalePlan):
		return &stale{err}
	case err != nil:
		return err
	}
	requeuecontext.SetAfter(ctx, 0)
	r.log(ctx, change)
	return nil
}

// log says what was done for a service, by kinds of changes, and none of the values.
func (r *resource[O]) log(ctx context.Context, change State) {
	done := plan.Plan{Resources: []plan.Resource{{Changes: change.Changes()}}}
	framework.Logger(ctx, r.config.Logger).LogCtx(ctx, "level", "info", "message", "carried out the plan for service "+change.work.Spec.Name,
		"strategy", change.work.Plan.Strategy, "change", done.Counts().String())
}

// stale is a plan that was made for another state. It is a conflict: the next try mends it.
type stale struct{ error }

// Status implements apierrors.APIStatus.
func (s *stale) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonConflict, Code: http.StatusConflict, Message: s.Error()}
}

// Unwrap returns the cause.
func (s *stale) Unwrap() error { return s.error }
