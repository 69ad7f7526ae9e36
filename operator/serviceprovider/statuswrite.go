package serviceprovider

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"

	"github.com/operatorkit/operatorkit/internal/statusmap"
	"github.com/operatorkit/operatorkit/resource/statusresource"
)

// lastWrite is how long a process that is being stopped takes to write a status. It ends before another process may have the lease.
const lastWrite = 3 * time.Second

// writeStatus writes what the reconciliation has changed in the status, if anything, in one request. Everything else stays as it is: what
// others have written, and what the Go type does not know. When somebody else changes the object at the same moment it is written to what
// the object is then. It tells whether that has come about; an object that is gone needs none.
func (r *APIReconciler[T, C]) writeStatus(ctx context.Context, o *object[T]) (written bool, err error) {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
		defer cancel()
	}
	after, err := statusmap.Of(o.obj)
	if err != nil {
		return false, err
	}
	err = retry.OnError(retry.DefaultBackoff, apierrors.IsConflict, func() error {
		if o.gone {
			return nil
		}
		theirs, err := statusmap.Of(o.raw)
		if err != nil {
			return err
		}
		changed := o.raw.DeepCopy()
		changed.Object["status"] = statusmap.Onto(theirs, o.before, after)
		_, err = statusresource.Write(ctx, r.onboarding.Client(), o.raw, changed)
		if !apierrors.IsConflict(err) {
			return err
		}
		return errors.Join(err, r.refresh(ctx, o))
	})
	switch {
	case o.gone, apierrors.IsNotFound(err):
		return true, nil
	case apierrors.IsConflict(err):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, nil
}
