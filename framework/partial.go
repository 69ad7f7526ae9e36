package framework

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cenkalti/backoff/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// toldErrors is how many of the errors in a partial one its text holds.
const toldErrors = 20

// Partial makes one error of those of a step that looks after many things, of which some failed and the others were seen to: each
// thing fails alone. It is nil without any error. A CRUD resource goes on after it:
//
//   - NewUpdatePatch and NewDeletePatch may return a patch with it, for the things that did not fail. The patch is applied, and is
//     in the plan, beside the error.
//   - After that of a create change, the update change is applied; the delete change is not, after either of these, nor is that of
//     a patch of NewUpdatePatch beside which it stands: nothing is taken away before its replacement stands.
//
// The resource ends with all the errors. Each of them is found in it by errors.Is and errors.As, but for two things, which hold for
// it only if they do for all: that it is permanent, and what an API server gave as the reason, such as a conflict.
func Partial(errs ...error) error {
	errs = slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	partial := &partialError{errs}
	if !slices.ContainsFunc(errs, func(err error) bool { return !IsPermanent(err) }) {
		return Permanent(partial)
	}
	return partial
}

// IsPartial tells whether an error was made by Partial, also when it was wrapped since.
func IsPartial(err error) bool {
	var partial *partialError
	return errors.As(err, &partial)
}

type partialError struct{ errs []error }

// Error implements error.
func (e *partialError) Error() string {
	texts := make([]string, 0, min(len(e.errs), toldErrors)+1)
	for _, err := range e.errs[:min(len(e.errs), toldErrors)] {
		texts = append(texts, err.Error())
	}
	if more := len(e.errs) - toldErrors; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more errors", more))
	}
	return strings.Join(texts, "; ")
}

// Is implements what errors.Is asks for.
func (e *partialError) Is(target error) bool {
	if _, permanent := target.(*backoff.PermanentError); permanent {
		return false // Partial says it of those of which it holds.
	}
	return slices.ContainsFunc(e.errs, func(err error) bool { return errors.Is(err, target) })
}

// As implements what errors.As asks for.
func (e *partialError) As(target any) bool {
	switch target.(type) {
	case **backoff.PermanentError:
		return false
	case *apierrors.APIStatus:
		reason := apierrors.ReasonForError(e.errs[0])
		if slices.ContainsFunc(e.errs, func(err error) bool { return apierrors.ReasonForError(err) != reason }) {
			return false
		}
	}
	return slices.ContainsFunc(e.errs, func(err error) bool { return errors.As(err, target) })
}
