// Package redact tells errors to people who have no part in the platform: what was being done, and what kind of error it was. The
// errors of clients are full of addresses, namespaces, and names of accounts and Secrets of the platform; these are in logs, in the
// platform's own objects and on its page, and in no status that others read.
package redact

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// wrapped is an error whose cause is not told.
type wrapped struct {
	what  string
	cause error
}

// Error implements error.
func (w *wrapped) Error() string { return w.what + ": " + w.cause.Error() }

// Unwrap returns the cause.
func (w *wrapped) Unwrap() error { return w.cause }

// Wrap returns an error with a cause, as fmt.Errorf("…: %w", cause) does. Text tells what was being done, and of the cause only the kind.
func Wrap(cause error, format string, args ...any) error {
	return &wrapped{what: fmt.Sprintf(format, args...), cause: cause}
}

// addresses are what is left of addresses in texts of which the parts are not known: URLs and IP addresses.
var addresses = regexp.MustCompile(`[a-z][a-z0-9+.-]*://[^\s"',;]+|\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b|\[[0-9a-fA-F]*:[0-9a-fA-F:.]*\](?::\d+)?`)

// Text returns the text of an error with the kind in place of each error of a client in it, and of each cause of a Wrap. What others have
// said in their own words is told as it is, but for addresses.
func Text(err error) string {
	if err == nil {
		return ""
	}
	return addresses.ReplaceAllString(without(err.Error(), err, map[string]bool{}), "(address)")
}

// without returns a text without what an error, and those that it wraps, say in it. An error that is not found there word for word can't be
// cut out: then nothing else of the text is told.
func without(text string, err error, done map[string]bool) string {
	if told := brief(err); told != "" {
		full := err.Error()
		if done[full] {
			return text
		}
		done[full] = true
		if full == "" || !strings.Contains(text, full) {
			return told
		}
		return strings.ReplaceAll(text, full, told)
	}
	switch wrapper := err.(type) { //nolint:errorlint // this walks through the errors that are wrapped
	case interface{ Unwrap() error }:
		if inner := wrapper.Unwrap(); inner != nil {
			return without(text, inner, done)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range wrapper.Unwrap() {
			if inner != nil {
				text = without(text, inner, done)
			}
		}
	}
	return text
}

// brief is what is told of an error of a client and of a Wrap, and empty for others.
func brief(err error) string {
	switch e := err.(type) { //nolint:errorlint // without walks through the errors that are wrapped
	case *wrapped:
		return e.what + ": " + kind(e.cause) + " (the log of the operator says more)"
	case *target.UnreachableError, *url.Error, *net.OpError, *net.DNSError, apierrors.APIStatus:
		return kind(err)
	}
	return ""
}

// kind says in a few words what kind of error it was.
func kind(err error) string {
	var status apierrors.APIStatus
	var request *url.Error
	var operation *net.OpError
	switch {
	case errors.As(err, &status):
		if reason := status.Status().Reason; reason != metav1.StatusReasonUnknown {
			return "the API server answered " + string(reason)
		}
		return "the API server answered with an error"
	case errors.Is(err, context.DeadlineExceeded):
		return "it took too long"
	case errors.Is(err, target.ErrUnreachable), errors.As(err, &request), errors.As(err, &operation):
		return "no answer"
	}
	return "it failed"
}
