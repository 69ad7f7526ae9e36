package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/internal/serverside"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// ConflictError says that fields of an object are managed by somebody else.
type ConflictError struct {
	// Object is the object, and where it comes from.
	Object string
	// Managers are the field managers that have the fields.
	Managers []string
	// Fields are the fields.
	Fields []string
}

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s: %s is managed by %s: leave the field out of the manifest, or let the other one go",
		e.Object, strings.Join(shorten(e.Fields), ", "), strings.Join(e.Managers, ", "))
}

// RefusedError says that an object is there and belongs to somebody else.
type RefusedError struct {
	// Object is the object, and where it comes from.
	Object string
	// Owner says whose it is.
	Owner string
}

// Error implements error.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s: it is there, and belongs to %s: rename it here, or take it away there", e.Object, e.Owner)
}

// Unwrap returns carrier.ErrConflict.
func (e *RefusedError) Unwrap() error { return carrier.ErrConflict }

// shown is how many fields, objects or faults a message names.
const shown = 5

func shorten(names []string) []string {
	if len(names) <= shown {
		return names
	}
	return append(slices.Clone(names[:shown]), fmt.Sprintf("%d more", len(names)-shown))
}

// fault says what was being done with an object when the API server refused. Of a sensitive one the server's own words are
// dropped, which may quote values.
func fault(doing string, m manifest, err error) error {
	if conflict := conflictOf(m, err); conflict != nil {
		return conflict
	}
	immutable := carrier.Immutable(err)
	if m.Sensitive {
		err = wordless(err)
	}
	changes := doing != "create" && doing != "replace"
	switch {
	case meta.IsNoMatchError(err):
		gvk := m.Object.GroupVersionKind()
		return fmt.Errorf("%s %s: the cluster has no kind %s in %s: install what defines it before (%w)", doing, m, gvk.Kind, gvk.GroupVersion(), err)
	case immutable && changes:
		return framework.Permanent(fmt.Errorf("%s %s: %w (delete the object, or give it another name, or name its kind in replaceKinds)", doing, m, err))
	case apierrors.IsInvalid(err) && changes:
		return fmt.Errorf("%s %s: %w (for a field that can't be changed, delete the object, or give it another name)", doing, m, err)
	}
	return fmt.Errorf("%s %s: %w", doing, m, err)
}

// conflictOf makes a ConflictError of the answer of an API server, if it is one.
func conflictOf(m manifest, err error) error {
	var status apierrors.APIStatus
	if !apierrors.IsConflict(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	conflict := &ConflictError{Object: m.String()}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		conflict.Fields = append(conflict.Fields, strings.TrimPrefix(cause.Field, "."))
		// The message is: conflict with "kubectl-create" using v1.
		if parts := strings.SplitN(cause.Message, `"`, 3); len(parts) == 3 && !slices.Contains(conflict.Managers, parts[1]) {
			conflict.Managers = append(conflict.Managers, parts[1])
		}
	}
	if len(conflict.Fields) == 0 {
		return nil
	}
	return conflict
}

// wordless is serverside.WithoutWords, but for words that have nothing to do with the content of an object: they stay.
func wordless(err error) error {
	if carrier.Contentless(err) {
		return err
	}
	return serverside.WithoutWords(err)
}

// join is errors.Join for a list that may be long.
func join(faults []error) error {
	if len(faults) <= shown {
		return errors.Join(faults...)
	}
	return errors.Join(append(slices.Clone(faults[:shown]), fmt.Errorf("and %d more objects", len(faults)-shown))...)
}
