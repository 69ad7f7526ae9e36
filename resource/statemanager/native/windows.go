package native

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/window"
)

// waitForWindow holds an operation with changes back while the windows of the set are closed, and tells whether it does. It is looked at again
// when they open. Of windows that can't be read, none is open, and what is taken away does not wait.
func (c *computation) waitForWindow(state *v1alpha1.ServiceState, operation *statemanager.Operation, what window.What) bool {
	if len(operation.Changes) == 0 || len(c.set.ServiceSet.Spec.ChangeWindows) == 0 {
		return false
	}
	closed, err := c.closed(what)
	switch {
	case err != nil && what == window.Removals:
		return false
	case err != nil:
		operation.Changes, operation.Payload, operation.Err = nil, nil, err
		return true
	case closed == nil:
		return false
	}
	if !closed.Until.IsZero() {
		c.requeue(closed.Until.Sub(c.now))
	}
	message := fmt.Sprintf("waits for a change window: %s", closed)
	c.tell(state, ConditionWaiting, metav1.ConditionTrue, ReasonWindow, message)
	operation.Changes, operation.Payload = nil, nil
	operation.Notes = append(operation.Notes, fmt.Sprintf("service %s %s", operation.Service, message))
	return true
}

// verdict is what the windows of a set say.
type verdict struct {
	closed *window.Closed
	err    error
}

// closed tells why something may not be done now, or that the windows can't be read. All services of the set share the answer.
func (c *computation) closed(what window.What) (*window.Closed, error) {
	is, known := c.windows[what]
	if !known {
		windows, err := window.Of(c.set.ServiceSet.Spec.ChangeWindows)
		if is.err = err; err == nil {
			is.closed = windows.Closed(c.now, what)
		}
		c.windows[what] = is
	}
	return is.closed, is.err
}
