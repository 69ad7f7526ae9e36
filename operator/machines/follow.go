package machines

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment"
)

// followPeriod is the time between two writes of a status while a plan is carried out.
const followPeriod = time.Second

type followerKey struct{}

// follower writes into a status how far a plan is.
type follower struct {
	*serviceFramework
	state *serviceState
	tally *deployment.Tally
	// told says that there is news.
	told chan struct{}
}

// follow returns a context with which news about a plan come into the status of its service, at most once in followPeriod, and at the
// end, with the reason if it failed. The caller calls end.
func (f *serviceFramework) follow(ctx context.Context, state *serviceState) (following context.Context, end func()) {
	w := &follower{serviceFramework: f, state: state, tally: deployment.NewTally(state.work.Plan), told: make(chan struct{}, 1)}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		w.run(ctx, over)
	}()
	return context.WithValue(ctx, followerKey{}, w), func() {
		close(over)
		<-ended
	}
}

// event tells those who follow the plan of a context.
func event(ctx context.Context, e deployment.ProgressEvent) {
	w, ok := ctx.Value(followerKey{}).(*follower)
	if !ok {
		return
	}
	w.tally.Event(e)
	select {
	case w.told <- struct{}{}:
	default:
	}
}

func (w *follower) run(ctx context.Context, over <-chan struct{}) {
	pause := time.NewTicker(followPeriod)
	defer pause.Stop()
	for {
		select {
		case <-over:
			w.write(ctx)
			return
		case <-pause.C:
			w.write(ctx)
		}
	}
}

// write writes how far the plan is, if there is news. A status that can't be written is left to the next write.
func (w *follower) write(ctx context.Context) {
	select {
	case <-w.told:
	default:
		return
	}
	svc := &v1alpha1.MachineService{}
	err := w.reader.Get(ctx, w.state.key, svc)
	if err != nil || svc.Generation != svc.Status.ObservedGeneration || w.claims.Refusal(svc) != nil {
		return
	}
	state := *w.state
	state.progress, state.failure = w.tally.String(), w.failures.last(svc)
	told := svc.DeepCopy()
	status := &told.Status
	status.Conditions = statuses.SetConditions(status.Conditions, verdictOf(svc, status, &state).conditions(svc.Generation))
	err = statuses.Write(ctx, w.d.Client, svc, told)
	if err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		w.d.Logger.LogCtx(ctx, "level", "warning", "message", "the progress of a service can't be written", "service", w.state.key.String(), "error", err.Error())
	}
}
