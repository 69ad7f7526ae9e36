package worklist

import (
	"errors"

	"github.com/cenkalti/backoff/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Failures makes an error of what went wrong with several things. All that is in the chain is found there, but for two things: it
// is no conflict, of which nobody would be told, and it is nothing permanent, because something of it is worth another try.
func Failures(err error) error { return &failures{err} }

type failures struct{ error }

// Is implements what errors.Is asks for.
func (f *failures) Is(target error) bool {
	if _, permanent := target.(*backoff.PermanentError); permanent {
		return false
	}
	return errors.Is(f.error, target)
}

// As implements what errors.As asks for.
func (f *failures) As(target any) bool {
	switch target.(type) {
	case **backoff.PermanentError, *apierrors.APIStatus:
		return false
	}
	return errors.As(f.error, target)
}
