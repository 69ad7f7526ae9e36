package carrier

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// Unanswered reports whether a request to the cluster got no answer. A request whose time was over may have got one: that of a webhook, for which
// the API server waits.
func Unanswered(err error) bool {
	if errors.Is(err, target.ErrUnreachable) || errors.Is(err, target.ErrReleased) || errors.Is(err, target.ErrNotRunning) ||
		errors.Is(err, context.Canceled) || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	var connection *net.OpError
	return !errors.Is(err, context.DeadlineExceeded) && (errors.As(err, &connection) || isRequest(err))
}

// isRequest reports whether an error is that of a request which was sent.
func isRequest(err error) bool {
	var request *url.Error
	return errors.As(err, &request) && request.Op != "parse"
}

// Passing reports whether an error of a request says nothing against what was sent, so that the same may succeed later without a change of
// the service: there was no answer, the API server or a webhook is in trouble, a quota is used up, or the namespace is being deleted.
func Passing(err error) bool {
	if Unanswered(err) || isRequest(err) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || Refused(err) {
		return false
	}
	switch {
	case Terminating(err), exceedsQuota(err):
		return true
	case apierrors.ReasonForError(err) == metav1.StatusReasonInternalError:
		// It may be about the object too: an API server says so of a field that it does not know. A proxy in trouble has an answer of its own.
		message := status.Status().Message
		return strings.Contains(message, "failed calling webhook ") || strings.Contains(message, "conversion webhook for ") ||
			apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
	}
	return status.Status().Code >= http.StatusInternalServerError || apierrors.IsTooManyRequests(err)
}

// elsewhere is how an API server itself begins when it refuses for reasons that lie elsewhere than in the content of an object. What a webhook
// says begins otherwise.
var elsewhere = regexp.MustCompile(`^[a-z0-9.-]+( "[^"]*")? is forbidden: ` +
	`(User "[^"]*" cannot |exceeded quota: |unable to create new content in namespace )`)

// Contentless reports whether the words of an API server have nothing of the content of an object in them, because it refuses for a right, a
// quota, or a namespace that is being deleted.
func Contentless(err error) bool { return refusedFor(err) != "" }

// Terminating reports whether an object can't be created because its namespace is being deleted.
func Terminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// exceedsQuota reports whether an API server refuses an object because of a quota.
func exceedsQuota(err error) bool { return refusedFor(err) == "exceeded quota: " }

// refusedFor returns which of the words of elsewhere an API server refuses an object with, or nothing.
func refusedFor(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	said := elsewhere.FindStringSubmatch(status.Status().Message)
	if said == nil {
		return ""
	}
	return said[2]
}
