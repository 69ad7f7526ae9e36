package keyed

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
)

// faults are the errors of things that fail each for itself.
type faults struct {
	alone func(error) bool
	errs  []error
}

// faults collects errors in addition to those there are already.
func (e *Engine[O, K, C]) faults(errs ...error) *faults {
	return &faults{func(err error) bool { return errors.As(err, new(*RefusedError[K])) || e.Config.Alone(err) }, errs}
}

// add adds an error, if there is one. Stop is true when the other things would fail as well: the
// context has ended, or nobody answers, or not now.
func (f *faults) add(ctx context.Context, err error) (stop bool) {
	if err == nil {
		return false
	}
	f.errs = append(f.errs, err)
	return ctx.Err() != nil || !f.concernsOne(err)
}

// err joins the errors with framework.Partial.
func (f *faults) err() error { return framework.Partial(f.errs...) }

func (f *faults) concernsOne(err error) bool {
	if framework.IsPermanent(err) || f.alone(err) {
		return true
	}
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonUnknown:
		return isRefusal(err)
	case metav1.StatusReasonUnauthorized, metav1.StatusReasonTimeout, metav1.StatusReasonServerTimeout,
		metav1.StatusReasonTooManyRequests, metav1.StatusReasonServiceUnavailable:
		return false
	}
	return true
}

// isRefusal tells whether an answer without a reason is about what was asked, such as that of a
// webhook that says no with a message alone, or of an apply that does not go with the schema; and
// not that nobody has answered.
func isRefusal(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	switch answer.Status().Code {
	case 0, http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return false
	}
	return true
}

// RefusedError says that a thing is desired which exists and is not the resource's own.
type RefusedError[K Key] struct {
	// Key names the thing.
	Key K
	// Reason says who owns it.
	Reason string
	// Adoptable is true if Config.Adopt would have allowed it.
	Adoptable bool
}

// Error implements error.
func (e *RefusedError[K]) Error() string {
	mend := "delete it or choose another name"
	if e.Adoptable {
		mend += ", or set Adopt to take it over"
	}
	return fmt.Sprintf("refusing to take over %s: %s: %s", e.Key, e.Reason, mend)
}
