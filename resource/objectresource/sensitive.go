package objectresource

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework/plan"
)

// requestError says what was being done when the API server refused. Of a sensitive object it drops the server's own
// words, which may quote values; the reason, the code and what errors.Is and the functions of apierrors tell stay.
func requestError(doing string, it item, err error) error {
	if err == nil {
		return nil
	}
	var status apierrors.APIStatus
	if it.sensitive && errors.As(err, &status) {
		err = withoutWords(status.Status())
	}
	if apierrors.IsInvalid(err) && it.action != plan.Create {
		return fmt.Errorf("%s %s: %w (a field that can't be changed takes deleting the object first)", doing, it.key, err)
	}
	return fmt.Errorf("%s %s: %w", doing, it.key, err)
}

func withoutWords(s metav1.Status) error {
	message := fmt.Sprintf("the API server answered %d %s; the rest may quote sensitive values", s.Code, s.Reason)
	var details *metav1.StatusDetails
	if s.Details != nil {
		details = &metav1.StatusDetails{
			Name: s.Details.Name, Group: s.Details.Group, Kind: s.Details.Kind, UID: s.Details.UID,
			RetryAfterSeconds: s.Details.RetryAfterSeconds,
		}
		for _, cause := range s.Details.Causes {
			details.Causes = append(details.Causes, metav1.StatusCause{Type: cause.Type, Field: cause.Field})
			if cause.Field != "" {
				message += ", field " + cause.Field
			}
		}
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: s.Code, Reason: s.Reason, Message: message, Details: details,
	}}
}
