package native

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/internal/cut"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// Types of the conditions of a service, and their reasons.
const (
	// ConditionHealthy tells how the objects of the service are, with the phase as the reason.
	ConditionHealthy = "Healthy"
	// ConditionDrifted is True while somebody else has changed what was put on the cluster.
	ConditionDrifted = "Drifted"
	// ConditionResolved is False while something that the service is made of can't be read or fetched, or belongs to somebody else.
	ConditionResolved = "Resolved"
	// ConditionWaiting is True while the service waits for others.
	ConditionWaiting = "Waiting"
	// ConditionPlanned is True when there is something that would be done, in the sync mode DryRun: the message is the plan.
	ConditionPlanned = "Planned"

	// ReasonChanged is the reason of Drifted.
	ReasonChanged = "ChangedOnCluster"
	// ReasonMissing, ReasonUnavailable and ReasonConflict are the reasons of Resolved: something does not exist, can't be read now, or
	// belongs to somebody else.
	ReasonMissing     = "Missing"
	ReasonUnavailable = "Unavailable"
	// ReasonDependencies, ReasonDependents, ReasonOtherSet, ReasonUnreachable and ReasonConflict are the reasons of Waiting: for services that it
	// depends on, for services that depend on it, for another ServiceSet that has it, for the cluster, and for an object that
	// somebody else manages.
	ReasonDependencies = "Dependencies"
	ReasonDependents   = "Dependents"
	ReasonOtherSet     = "OtherServiceSet"
	ReasonUnreachable  = "ClusterUnreachable"
	ReasonConflict     = "Conflict"
	// ReasonWindow is the reason of Waiting for a time at which changes may be made.
	ReasonWindow = "ChangeWindow"
	// ReasonForbidden is the reason of the set's condition Reachable while the kubeconfig lacks the rights to look at the cluster.
	ReasonForbidden = "Forbidden"
)

// passing are the conditions that stand on a service only while there is a reason for them.
var passing = []string{ConditionDrifted, ConditionResolved, ConditionWaiting, ConditionPlanned}

// begin returns the state of a service before anything is known of it: what the status says, without what passes.
func (c *computation) begin(key client.ObjectKey) v1alpha1.ServiceState {
	return c.known.Begin(key)
}

// enter makes a state that of a service. What is the same as in the status stays the same, times included.
func (c *computation) enter(key client.ObjectKey, state v1alpha1.ServiceState) {
	c.known.Enter(key, state)
}

// tell sets a condition.
func (c *computation) tell(state *v1alpha1.ServiceState, condition string, status metav1.ConditionStatus, reason, message string) {
	c.known.Tell(state, condition, status, reason, message)
}

// fail makes a state Failed.
func fail(state *v1alpha1.ServiceState, message string) {
	state.State, state.FailureMessage = v1alpha1.ServiceStateFailed, statemanager.FirstLine(message)
}

// tellHealth sets the condition Healthy.
func (c *computation) tellHealth(state *v1alpha1.ServiceState, health carrier.Health) {
	status := metav1.ConditionUnknown
	switch health.Phase {
	case v1alpha1.ServiceStateDeployed:
		status = metav1.ConditionTrue
	case v1alpha1.ServiceStateFailed:
		status = metav1.ConditionFalse
	case "":
		return
	}
	c.tell(state, ConditionHealthy, status, string(health.Phase), statemanager.FirstLine(health.Message))
}

// maxDrift is how many objects a condition Drifted names.
const maxDrift = 5

// tellDrift sets the condition Drifted, if there is any.
func (c *computation) tellDrift(state *v1alpha1.ServiceState, drift []plan.Change) {
	if len(drift) == 0 {
		return
	}
	var lines []string
	for _, change := range drift[:min(len(drift), maxDrift)] {
		line := change.Object.String()
		switch change.Action {
		case plan.Create:
			line += " is missing"
		case plan.Delete:
			line += " is too much"
		default:
			line += " has another " + strings.Join(paths(change.Fields), ", ")
		}
		lines = append(lines, line)
	}
	if more := len(drift) - maxDrift; more > 0 {
		lines = append(lines, fmt.Sprintf("%d more", more))
	}
	c.tell(state, ConditionDrifted, metav1.ConditionTrue, ReasonChanged, cut.Text(strings.Join(lines, "; "), statemanager.MaxMessage))
}

// paths returns the first few paths of fields.
func paths(fields []plan.FieldChange) (named []string) {
	const most = 3
	for _, field := range fields[:min(len(fields), most)] {
		named = append(named, field.Path)
	}
	if len(fields) > most {
		named = append(named, "…")
	}
	return named
}

// tellPlan sets the condition Planned.
func (c *computation) tellPlan(state *v1alpha1.ServiceState, changes []plan.Change, notes []string) {
	c.known.TellPlan(state, ConditionPlanned, changes, notes)
}

// names returns services as people read them.
func names(services []client.ObjectKey) string {
	texts := make([]string, len(services))
	for i, key := range services {
		texts[i] = key.String()
	}
	return strings.Join(texts, ", ")
}
