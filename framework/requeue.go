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

// RequeueAfter is what a resource returns in place of an error when it is not done yet, and is to be
// called again after a time, such as while something is made that no watch tells about:
//
//	if !certificate.Issued() {
//		return framework.RequeueAfter(time.Minute)
//	}
//
// The rest of the resource is skipped, and the resources after it go on. Nothing is logged as an error,
// counted or backed off. In a deletion the finalizer stays, and the deletion is waiting. Of several that
// ask the earliest counts, see requeuecontext. It may be wrapped. Where a patch has failed for something
// else too (Partial), that is the error.
func RequeueAfter(d time.Duration) error { return requeueAfter(d) }

type requeueAfter time.Duration

// Error implements error. It is read where somebody else than a reconciliation calls the resource.
func (d requeueAfter) Error() string {
	return fmt.Sprintf("not done yet, to be called again after %s", time.Duration(d))
}

func isRequeueAfter(err error) bool {
	_, ok := err.(requeueAfter) //nolint:errorlint // every looks into what is wrapped
	return ok
}

// asked calls a step of a resource and carries out that it asks for another call.
func asked(ctx context.Context, step func(context.Context) error) error {
	err := recoveredIn(ctx, step)
	s := scopeOf(ctx)
	if s == nil || !every(err, isRequeueAfter) {
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
