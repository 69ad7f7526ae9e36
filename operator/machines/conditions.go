package machines

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/internal/cut"
	"github.com/operatorkit/operatorkit/operator/internal/statuses"
)

// Types of conditions. Machines have Ready, MachineServices all.
const (
	// ConditionReady is True for a Machine while its engine answers, and for a MachineService when it is as its spec says and works.
	ConditionReady = "Ready"
	// ConditionProgressing is True while containers are about to change, or a deletion is under way.
	ConditionProgressing = "Progressing"
	// ConditionBlocked is True when a person has to act.
	ConditionBlocked = "Blocked"
	// ConditionPlanned stands on a MachineService that is only planned for: it is True when there is something to do.
	ConditionPlanned = "Planned"
)

// Reasons of conditions.
const (
	// ReasonConnected says that the engine of a Machine answers.
	ReasonConnected = "Connected"
	// ReasonConnecting says that it was not tried yet.
	ReasonConnecting = "Connecting"
	// ReasonUnreachable says that the engine does not answer. It is tried again.
	ReasonUnreachable = "Unreachable"
	// ReasonGone says that somebody has said that the machine won't come back.
	ReasonGone = "Gone"
	// ReasonInUse says of a Machine that is being deleted that containers of services are, or may be, on it.
	ReasonInUse = "InUse"

	// ReasonDeployed says that a service is as its spec says, and works.
	ReasonDeployed = "Deployed"
	// ReasonCompleted says that a job has ended with 0.
	ReasonCompleted = "Completed"
	// ReasonWaiting says that the service waits for others that it depends on.
	ReasonWaiting = "Waiting"
	// ReasonDeploying says that there is a plan that is carried out.
	ReasonDeploying = "Deploying"
	// ReasonRetrying says that carrying out a plan failed, and is tried again.
	ReasonRetrying = "Retrying"
	// ReasonMachineUnknown says that the service waits for a machine that can't be seen.
	ReasonMachineUnknown = "MachineUnknown"
	// ReasonDeleting says that the containers of the service are being removed.
	ReasonDeleting = "Deleting"
	// ReasonInvalid says that the spec has faults, all of which the message names.
	ReasonInvalid = "Invalid"
	// ReasonReferencesUnresolved says that Secrets or ConfigMaps that the spec names, or keys of them, are missing or of no use. It ends
	// by itself when they are there.
	ReasonReferencesUnresolved = "ReferencesUnresolved"
	// ReasonUnschedulable says that there is no machine for a container, or none to which one can be moved from a Machine that is being
	// deleted. The message says of each machine why not.
	ReasonUnschedulable = "Unschedulable"
	// ReasonNoIngress says that the spec has a port in mode ingress, and that no Machine is marked for such.
	ReasonNoIngress = "NoIngress"
	// ReasonLocationTaken says that another service is served at a host name and path of the spec. The message says which.
	ReasonLocationTaken = "LocationTaken"
	// ReasonPaused says that too many containers failed, and that what was done stays.
	ReasonPaused = "Paused"
	// ReasonRolledBack says that too many containers failed, and that what was done was undone.
	ReasonRolledBack = "RolledBack"
	// ReasonHookFailed says that the pre-deploy hook failed, and that nothing was done.
	ReasonHookFailed = "HookFailed"
	// ReasonFailed says that a job has failed, as often as its restart policy allows, or that a container of another service has, which its
	// restart policy leaves so.
	ReasonFailed = "Failed"
	// ReasonNotBlocked and ReasonIdle are the reasons of Blocked and Progressing when these are False.
	ReasonNotBlocked = "NotBlocked"
	ReasonIdle       = "Idle"

	// ReasonChangesPlanned and ReasonNothingPlanned are the reasons of Planned.
	ReasonChangesPlanned = "ChangesPlanned"
	ReasonNothingPlanned = "NothingPlanned"
)

// verdict says how a service is.
type verdict struct {
	// ready, progressing and blocked tell which conditions are True.
	ready, progressing, blocked bool
	reason, message             string
	// stuck says what a person has to see to, although the service is ready.
	stuck string
}

// conditions returns the conditions of a verdict, without times.
func (v verdict) conditions(generation int64) []metav1.Condition {
	message := cut.Text(v.message, statuses.MaxMessage)
	condition := func(kind string, is bool, otherwise string) metav1.Condition {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: otherwise, ObservedGeneration: generation}
		if is {
			c.Status, c.Reason, c.Message = metav1.ConditionTrue, v.reason, message
		}
		return c
	}
	ready := condition(ConditionReady, v.ready, v.reason)
	ready.Message = message
	blocked := condition(ConditionBlocked, v.blocked, ReasonNotBlocked)
	if v.stuck != "" {
		blocked.Status, blocked.Reason, blocked.Message = metav1.ConditionTrue, ReasonUnschedulable, cut.Text(v.stuck, statuses.MaxMessage)
	}
	return []metav1.Condition{
		ready, condition(ConditionProgressing, v.progressing, ReasonIdle), blocked,
	}
}
