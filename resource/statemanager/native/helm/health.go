package helm

import (
	"fmt"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// condition is how one object is.
type condition struct {
	object  string
	status  status.Status
	message string
	// since is when it last began to get where it should be.
	since time.Time
}

// healthOf tells how a release is from its objects, and after how long a time-out ends. Applied is when it was put there.
func (j *job) healthOf(conditions []condition, applied time.Time) (carrier.Health, time.Duration) {
	if !j.options.wait {
		return carrier.Health{Phase: v1alpha1.ServiceStateDeployed}, 0
	}
	var waiting []condition
	for _, c := range conditions {
		switch c.status {
		case status.CurrentStatus:
		case status.FailedStatus:
			return carrier.Health{Phase: v1alpha1.ServiceStateFailed, Message: fmt.Sprintf("%s failed: %s", c.object, c.message)}, 0
		default:
			waiting = append(waiting, c)
		}
	}
	if len(waiting) == 0 {
		return carrier.Health{Phase: v1alpha1.ServiceStateDeployed}, 0
	}
	first, left := waiting[0], time.Duration(0)
	for i, c := range waiting {
		if c.since.Before(applied) {
			c.since = applied
		}
		rest := j.options.timeout - j.config.Clock.Since(c.since)
		if i == 0 || rest < left {
			first, left = c, rest
		}
	}
	message := fmt.Sprintf("%s: %s", first.object, first.message)
	if more := len(waiting) - 1; more > 0 {
		message += fmt.Sprintf(" (and %d more)", more)
	}
	if left <= 0 {
		return carrier.Health{Phase: v1alpha1.ServiceStateFailed, Message: fmt.Sprintf("not healthy within %s: %s", j.options.timeout, message)}, 0
	}
	return carrier.Health{Phase: v1alpha1.ServiceStateProvisioning, Message: "waits for " + message}, left
}

// conditionOf tells how an object is. Nil is one that is not there.
func (j *job) conditionOf(desired, live *unstructured.Unstructured) condition {
	c := condition{object: describe(desired), status: status.NotFoundStatus, message: "it is not there"}
	if live == nil {
		return c
	}
	live = carrier.AsItEnded(live)
	c.since = movedAt(live)
	if paused, _, _ := unstructured.NestedBool(live.Object, "spec", "paused"); paused && live.GetKind() == "Deployment" {
		c.status = status.CurrentStatus
		return c
	}
	computed, err := j.service.StatusOf(live)
	if err != nil {
		c.status, c.message = status.UnknownStatus, err.Error()
		return c
	}
	c.status, c.message = computed.Status, computed.Message
	if j.options.waitForJobs && computed.Status == status.CurrentStatus && live.GroupVersionKind().GroupKind() == carrier.JobKind {
		if done, _ := jobDone(live); !done {
			c.status, c.message = status.InProgressStatus, "the job has not completed"
		}
	}
	return c
}

// movedAt is when something about an object last changed for good: it was made, or one of its conditions changed.
func movedAt(live *unstructured.Unstructured) time.Time {
	moved := live.GetCreationTimestamp().Time
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, c := range conditions {
		fields, _ := c.(map[string]any)
		text, _ := fields["lastTransitionTime"].(string)
		if at, err := time.Parse(time.RFC3339, text); err == nil && at.After(moved) {
			moved = at
		}
	}
	return moved
}
