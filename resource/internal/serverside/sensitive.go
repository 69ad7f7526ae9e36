package serverside

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WithoutWords is an error of an API server without its words, which may quote values: the reason, the code, the fields, and what
// errors.Is and the functions of apierrors tell stay. Another error is returned as it is.
func WithoutWords(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	s := status.Status()
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
