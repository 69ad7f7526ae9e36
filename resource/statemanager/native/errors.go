package native

import (
	"context"
	"errors"
	"io"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// lost tells whether an error says that the cluster did not answer, or not as one who can: nothing is known about a service
// then. What could not be fetched is something else.
func lost(err error) bool {
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
	if errors.As(err, &netError) || utilnet.IsProbableEOF(err) {
		return true
	}
	return apierrors.IsServiceUnavailable(err) || apierrors.IsUnauthorized(err) || apierrors.IsTooManyRequests(err)
}

// refusal returns what an API server said, without what was being done when it did.
func refusal(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Message != "" {
		return status.Status().Message
	}
	return err.Error()
}
