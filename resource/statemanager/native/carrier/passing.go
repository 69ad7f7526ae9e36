package carrier

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Passing reports whether an error of a request says nothing against what was sent, so that the same may succeed later without a change of
// the service: there was no answer, the API server or a webhook is in trouble, a quota is used up, or the namespace is being deleted.
func Passing(err error) bool {
	var transport *url.Error
	if errors.As(err, &transport) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || Refused(err) {
		return false
	}
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), exceedsQuota(err):
		return true
	case apierrors.ReasonForError(err) == metav1.StatusReasonInternalError:
		// It may be about the object too: an API server says so of a field that it does not know. A proxy in trouble has an answer of its own.
		message := status.Status().Message
		return strings.Contains(message, "failed calling webhook ") || strings.Contains(message, "conversion webhook for ") ||
			apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
	}
	return status.Status().Code >= http.StatusInternalServerError || apierrors.IsTooManyRequests(err)
}

// exceedsQuota reports whether an API server refuses an object because of a quota.
func exceedsQuota(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota: ")
}
