package informer

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const (
	// maxRetryAfterWait is the longest Retry-After that a request waits for, which is the one of
	// API Priority and Fairness.
	maxRetryAfterWait = time.Second
	// maxStatusBytes is how much of an answer is read for its status.
	maxStatusBytes = 64 << 10
)

// RetryAfterTransport returns a transport that makes a request fail at once if the server answers
// with Retry-After. Without it, client-go sleeps that long, up to ten times, and blocks the caller.
// The error holds the pause (apierrors.SuggestsClientDelay), after which a framework retries the
// object. A pause of up to a second is waited for once. The transport fits the Wrap of a
// rest.Config, as the last one. The config of operator.Dependencies has it.
func RetryAfterTransport(next http.RoundTripper) http.RoundTripper { return &retryAfterTransport{next} }

type retryAfterTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t *retryAfterTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	pause, asked := retryAfter(response, err)
	if asked && pause <= maxRetryAfterWait {
		if again := repeated(r); again != nil {
			if err := leave(r.Context(), response, pause); err != nil {
				return nil, err
			}
			response, err = t.next.RoundTrip(again)
			pause, asked = retryAfter(response, err)
		}
	}
	if asked {
		putOff(r, response, pause)
	}
	return response, err
}

// leave discards an answer, and waits.
func leave(ctx context.Context, response *http.Response, pause time.Duration) error {
	_, _ = io.CopyN(io.Discard, response.Body, maxStatusBytes)
	_ = response.Body.Close()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// WrappedRoundTripper lets others find the transport below, for example to close its connections.
func (t *retryAfterTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// CloseIdleConnections is what http.Client.CloseIdleConnections looks for.
func (t *retryAfterTransport) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(t.next) }

// retryAfter returns the pause if client-go would sleep for an answer.
func retryAfter(response *http.Response, err error) (pause time.Duration, asked bool) {
	if err != nil || response.StatusCode != http.StatusTooManyRequests && response.StatusCode < http.StatusInternalServerError {
		return 0, false
	}
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	return time.Duration(seconds) * time.Second, err == nil
}

// repeated returns a copy of the request to send again, or nil if its body can't be read again.
func repeated(r *http.Request) *http.Request {
	again := r.Clone(r.Context())
	if r.Body == nil || r.Body == http.NoBody {
		return again
	}
	if r.GetBody == nil {
		return nil
	}
	var err error
	if again.Body, err = r.GetBody(); err != nil {
		return nil
	}
	return again
}

// putOff changes an answer so that client-go does not sleep, and puts the pause into its status.
func putOff(r *http.Request, response *http.Response, pause time.Duration) {
	response.Header.Del("Retry-After")
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if media == runtime.ContentTypeProtobuf {
		return // A server that writes protobuf puts the pause into its statuses.
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxStatusBytes))
	_ = response.Body.Close()
	var status metav1.Status
	if err != nil || json.Unmarshal(body, &status) != nil || status.Kind != "Status" {
		generic := apierrors.NewGenericServerResponse(response.StatusCode, r.Method, schema.GroupResource{}, "", strings.TrimSpace(string(body)), 0, true)
		status = generic.ErrStatus
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	}
	if status.Details == nil {
		status.Details = &metav1.StatusDetails{}
	}
	status.Details.RetryAfterSeconds = max(status.Details.RetryAfterSeconds, int32(min(pause, time.Hour)/time.Second))
	body, err = json.Marshal(status)
	if err != nil {
		body = nil
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response.Header.Del("Content-Encoding")
	response.Header.Set("Content-Type", runtime.ContentTypeJSON)
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
}
