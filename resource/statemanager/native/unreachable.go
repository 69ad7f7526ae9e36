package native

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
)

// untilReached is what services wait for whose cluster does not answer.
const untilReached = "waits until the cluster can be reached"

// isAway tells whether nothing can be sent to the cluster. One that has not answered yet may be there all the same, and one that refuses a
// request is: what is on it is not let go of.
func (c *computation) isAway() bool {
	reachable := c.work.Conditions[0]
	return reachable.Status == metav1.ConditionFalse && reachable.Reason != ReasonForbidden
}

// unreachable tells how the services are while their cluster can't be reached, or not be looked at: as they were, and what they wait
// for. What is being taken away from a cluster that is away is let go of if somebody has said so.
func (c *computation) unreachable(until string) {
	c.work.Stale = true
	deleting := c.set.ServiceSet.DeletionTimestamp != nil
	letGo := statemanager.LetGo(c.set) && c.isAway()
	left := 0
	for i := range c.set.ServiceSet.Status.Services {
		key := c.set.ServiceSet.Status.Services[i].Key()
		before := c.order.State(key)
		listed := c.order.Entry(key) != nil
		switch {
		case before == nil, !listed && before.State == v1alpha1.ServiceStatePending:
			// It is gone, or was never begun.
			continue
		case !listed && letGo:
			c.work.Notes = append(c.work.Notes, fmt.Sprintf("service %s is let go of, because the cluster can't be reached: what is on the cluster stays there", key))
			continue
		}
		state := c.begin(key)
		state.FailureMessage = before.FailureMessage
		c.tell(&state, ConditionWaiting, metav1.ConditionTrue, ReasonUnreachable, until)
		c.enter(key, state)
		left++
	}
	for _, entry := range c.order.Sorted() {
		key := entry.Key()
		if _, known := c.states[key]; known {
			continue
		}
		state := c.begin(key)
		state.State, state.Template, state.Version = v1alpha1.ServiceStatePending, entry.Template, entry.Version
		c.tell(&state, ConditionWaiting, metav1.ConditionTrue, ReasonUnreachable, until)
		c.enter(key, state)
	}
	if !deleting || left == 0 {
		return
	}
	message := strings.TrimSuffix(statemanager.FirstLine(c.work.Conditions[0].Message), ".")
	if !c.isAway() {
		c.work.Notes = append(c.work.Notes, fmt.Sprintf("%d services are still on the cluster: %s", left, message))
		return
	}
	c.work.Notes = append(c.work.Notes, fmt.Sprintf(
		"%d services are still on the cluster, which can't be reached: %s. If it is gone for good, set the annotation %s: \"true\" on the ServiceSet or its ClusterDeployment",
		left, message, statemanager.LetGoAnnotation))
}
