package framework

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/context/resourcecanceledcontext"
)

// RequeueAfter is returned by a resource instead of an error if the resource is not done yet and
// must be called again after a time, for example while something is created that no watch reports:
//
//	if !certificate.Issued() {
//		return framework.RequeueAfter(time.Minute)
//	}
//
// The rest of the resource is skipped, and the next resources continue. Nothing is logged as an
// error, counted or backed off. In a deletion the finalizer stays, and the deletion is waiting.
// Only the earliest of several requests counts, see requeuecontext. It may be wrapped. If a patch
// also failed for another reason (Partial), the result is that error.
func RequeueAfter(d time.Duration) error { return requeueAfter(d) }

type requeueAfter time.Duration

// Error implements error. It is only read if the resource is called outside a reconciliation.
func (d requeueAfter) Error() string {
	return fmt.Sprintf("not done yet, to be called again after %s", time.Duration(d))
}

func isRequeueAfter(err error) bool {
	_, ok := err.(requeueAfter) //nolint:errorlint // consistsOf looks into wrapped errors
	return ok
}

// callStep calls a step of a resource. A panic becomes an error, and a returned RequeueAfter is
// executed.
func callStep(ctx context.Context, step func(context.Context) error) error {
	err := recoveredIn(ctx, step)
	s := scopeOf(ctx)
	if s == nil || !consistsOf(err, isRequeueAfter) {
		return err
	}
	var after requeueAfter
	errors.As(err, &after)
	requeuecontext.SetAfter(ctx, time.Duration(after))
	resourcecanceledcontext.SetCanceled(ctx)
	if s.reconciliation.event == deleteEvent {
		finalizerskeptcontext.SetKept(ctx)
	}
	return nil
}
