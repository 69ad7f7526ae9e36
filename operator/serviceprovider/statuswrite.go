package serviceprovider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"

	"github.com/operatorkit/operatorkit/internal/statusmap"
	"github.com/operatorkit/operatorkit/operator/internal/claims"
	"github.com/operatorkit/operatorkit/resource/statusresource"
)

// lastWrite is how long a process that is being stopped takes to write a status. It ends before another process may have the lease.
const lastWrite = 3 * time.Second

// rewritten takes note of that the author has written the status, which was given to the author so: all that differs from what was written
// is written in the end, with the conditions that have changed since.
func (r *APIReconciler[T, C]) rewritten(ctx context.Context, o *object[T], given map[string]any) error {
	if err := r.refresh(ctx, o); err != nil {
		return err
	}
	now := r.empty()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.raw.Object, now); err != nil {
		return fmt.Errorf("read it as a %T: %w", now, err)
	}
	written, err := statusmap.Of(now)
	if err != nil {
		return err
	}
	if conditions, ok := given["conditions"]; ok {
		written["conditions"] = conditions
	} else {
		delete(written, "conditions")
	}
	o.before = written
	return nil
}

// writeStatus writes what the reconciliation has changed in the status, if anything, in one request. Everything else stays as it is: what
// others have written, and what the Go type does not know. That of an object whose status is another operator's is not written. When somebody else changes the object at the same moment it is written to what
// the object is then. It tells whether that has come about; an object that is gone needs none.
func (r *APIReconciler[T, C]) writeStatus(ctx context.Context, o *object[T]) (written bool, err error) {
	limit := r.timeout
	if ctx.Err() != nil {
		ctx, limit = context.WithoutCancel(ctx), lastWrite
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
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
		status := statusmap.Onto(theirs, o.before, after)
		if by := r.reporter(o.raw); by != "" {
			if !equality.Semantic.DeepEqual(theirs, status) {
				r.warn(ctx, o, ReasonStatusClaimed, "the status is written by %s: take the annotation %s off if that does not run any more", by, claims.Annotation)
			}
			return nil
		}
		changed.Object["status"] = status
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
