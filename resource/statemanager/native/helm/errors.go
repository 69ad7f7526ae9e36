package helm

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// unknownKindError is for an object of a kind that the cluster does not have.
type unknownKindError struct {
	object string
	kind   schema.GroupVersionKind
	err    error
}

// Error implements error.
func (e *unknownKindError) Error() string {
	return fmt.Sprintf("%s: the cluster has no kind %s of %s: is there a service it depends on, or a definition that is missing?",
		e.object, e.kind.Kind, e.kind.GroupVersion())
}

// Unwrap returns what the mapper said.
func (e *unknownKindError) Unwrap() error { return e.err }

// deletingError is for an object, or a namespace, that has to be gone first.
type deletingError struct{ object string }

// Error implements error.
func (e *deletingError) Error() string { return e.object + " is being deleted" }

// waits tells whether an error is something that passes without anybody doing something about the service, and makes the result say what
// it waits for.
func waits(err error, result *carrier.Result) bool {
	var unknown *unknownKindError
	var deleting *deletingError
	message := ""
	switch {
	case errors.As(err, &unknown):
		message = fmt.Sprintf("waits for the kind %s of %s, which %s needs", unknown.kind.Kind, unknown.kind.GroupVersion(), unknown.object)
		result.Missing = []schema.GroupVersionKind{unknown.kind}
	case errors.As(err, &deleting):
		message = fmt.Sprintf("waits until %s is gone: it is being deleted", deleting.object)
		result.Requeue = retryWaiting
	default:
		return false
	}
	result.Changes, result.Payload = nil, nil
	result.Health = carrier.Health{Phase: v1alpha1.ServiceStateProvisioning, Message: message}
	return true
}

// hookError is for a hook that failed or did not end in time.
type hookError struct {
	object, reason string
}

// Error implements error.
func (e *hookError) Error() string { return fmt.Sprintf("hook %s %s", e.object, e.reason) }

// final tells whether an operation failed for a reason that is the chart's, so that there is no point in trying it again as it is.
// What the network or an API server in trouble answers is none.
func final(err error) bool {
	var hook *hookError
	if errors.As(err, &hook) {
		return true
	}
	var refused *refusedError
	if errors.As(err, &refused) {
		return true
	}
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) && !carrier.Terminating(err)
}

// refusedError is for an object that stays refused with the definition that came before it.
type refusedError struct{ error }

// Unwrap returns the refusal.
func (e *refusedError) Unwrap() error { return e.error }
