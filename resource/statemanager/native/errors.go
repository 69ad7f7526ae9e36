package native

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// lost tells whether an error may say that the cluster does not answer, or not as one who can.
func lost(err error) bool { return carrier.Passing(err) || apierrors.IsUnauthorized(err) }

// refusal returns what an API server said, without what was being done when it did.
func refusal(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Message != "" {
		return status.Status().Message
	}
	return err.Error()
}
