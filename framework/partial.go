package framework

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cenkalti/backoff/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// toldErrors is the number of errors in the text of a partial error.
const toldErrors = 20

// Partial joins the errors of a step that handles many things, if some failed and the others
// succeeded: each thing fails alone. It is nil without any error. A CRUD resource continues after
// it:
//
//   - NewUpdatePatch and NewDeletePatch may return a patch together with it, for the things that
//     did not fail. The patch is applied, and the plan has both the patch and the error.
//   - If a create change returns it, the update change is still applied. If the create or the
//     update change returns it, the delete change is not applied. Neither is the delete change of a
//     patch that NewUpdatePatch returned with it. Nothing is deleted before its replacement exists.
//
// The resource ends with all the errors. errors.Is and errors.As find each of them in the result.
// There are two exceptions, which hold only if they hold for all errors: that it is permanent, and
// the reason given by an API server, such as a conflict.
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

// IsPartial reports whether an error was made by Partial, also if it was wrapped since.
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

// Is implements the method that errors.Is uses.
func (e *partialError) Is(target error) bool {
	if _, permanent := target.(*backoff.PermanentError); permanent {
		// Partial marks the whole error if all errors are permanent.
		return false
	}
	return slices.ContainsFunc(e.errs, func(err error) bool { return errors.Is(err, target) })
}

// As implements the method that errors.As uses.
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
