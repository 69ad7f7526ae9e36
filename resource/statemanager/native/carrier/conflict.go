package carrier

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrConflict is in the chain of errors that say that an object belongs to somebody else, where no API server says so.
var ErrConflict = errors.New("somebody else manages the object")

// IsConflict tells whether an error says that somebody else manages an object, or a field of it. That an object has changed
// meanwhile is no such error.
func IsConflict(err error) bool {
	return errors.Is(err, ErrConflict) || apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}
