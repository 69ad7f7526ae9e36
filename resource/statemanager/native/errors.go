package native

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// lost tells whether an error says that the cluster did not answer, or not as one who can. What could not be fetched is something else.
func lost(err error) bool {
	return passes(err) || busy(err) || apierrors.IsUnauthorized(err)
}

// passes tells whether an error says that a request got no answer, which passes by itself. What a chart says of connections in a text does not
// count.
func passes(err error) bool {
	if fetchError := (*fetch.Error)(nil); errors.As(err, &fetchError) {
		return false
	}
	if errors.Is(err, target.ErrUnreachable) || errors.Is(err, target.ErrReleased) || errors.Is(err, target.ErrNotRunning) ||
		errors.Is(err, context.Canceled) || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	if errors.Is(err, context.DeadlineExceeded) {
		// A time-out of a hook ends so, too.
		return false
	}
	var netError *net.OpError
	var request *url.Error
	return errors.As(err, &netError) || errors.As(err, &request) && request.Op != "parse"
}

// refusal returns what an API server said, without what was being done when it did.
func refusal(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Message != "" {
		return status.Status().Message
	}
	return err.Error()
}
