package keyed

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
)

// Faults are the errors of things that fail each for itself.
//
//	return keyed.Each(ctx, change, keyed.NewFaults(isRefused), func(it item) error { return write(ctx, it) })
type Faults struct {
	alone func(error) bool
	errs  []error
}

// NewFaults returns those that there are already. Alone tells of an error that is neither permanent nor the answer of an API server
// whether it concerns one thing only.
func NewFaults(alone func(error) bool, errs ...error) *Faults { return &Faults{alone, errs} }

// Add takes note of an error, if there is one. Stop is true when the other things would fail as well: the context has ended, or
// nobody answers, or not now.
func (f *Faults) Add(ctx context.Context, err error) (stop bool) {
	if err == nil {
		return false
	}
	f.errs = append(f.errs, err)
	return ctx.Err() != nil || !f.concernsOne(err)
}

// Err makes one error of all, with framework.Partial.
func (f *Faults) Err() error { return framework.Partial(f.errs...) }

func (f *Faults) concernsOne(err error) bool {
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

// isRefusal tells whether an answer without a reason is about what was asked, such as that of a webhook that says no with a message alone,
// or of an apply that does not go with the schema; and not that nobody has answered.
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

// Each does something with each thing, also when one fails, and returns all errors.
func Each[K Key, I Item[K]](ctx context.Context, s State[K, I], faults *Faults, do func(I) error) error {
	for _, it := range s.Items {
		if faults.Add(ctx, do(it)) {
			break
		}
	}
	return faults.Err()
}
