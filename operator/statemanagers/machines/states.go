package machines

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/cut"
	operatormachines "github.com/operatorkit/operatorkit/operator/machines"
	machinesv1alpha1 "github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native"
)

// passing are the conditions that stand on a service only while there is a reason for them. They are those of package native.
var passing = []string{native.ConditionDrifted, native.ConditionResolved, native.ConditionWaiting, native.ConditionPlanned}

// phaseOf says how a MachineService is. What is said of an earlier spec counts for nothing.
func phaseOf(service *machinesv1alpha1.MachineService) (v1alpha1.ServicePhase, string) {
	status := &service.Status
	ready := meta.FindStatusCondition(status.Conditions, operatormachines.ConditionReady)
	switch {
	case pausedBy(service) != "":
		if ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == service.Generation {
			return v1alpha1.ServiceStateDeployed, ready.Message
		}
		return v1alpha1.ServiceStateProvisioning, messageOf(service)
	case status.ObservedGeneration != service.Generation || ready == nil || ready.ObservedGeneration != service.Generation:
		return v1alpha1.ServiceStateProvisioning, "the operator of MachineServices has not looked at it yet"
	case ready.Status == metav1.ConditionTrue:
		return v1alpha1.ServiceStateDeployed, ready.Message
	}
	blocked := meta.FindStatusCondition(status.Conditions, operatormachines.ConditionBlocked)
	switch {
	case blocked != nil && blocked.Status == metav1.ConditionTrue:
		return v1alpha1.ServiceStateFailed, blocked.Message
	case status.GivenUp != nil:
		return v1alpha1.ServiceStateFailed, status.GivenUp.Message
	}
	return v1alpha1.ServiceStateProvisioning, messageOf(service)
}

// messageOf says what a MachineService is at.
func messageOf(service *machinesv1alpha1.MachineService) string {
	if name := pausedBy(service); name != "" {
		return fmt.Sprintf("the annotation %s of its MachineService makes it stand still", name)
	}
	progressing := meta.FindStatusCondition(service.Status.Conditions, operatormachines.ConditionProgressing)
	if progressing != nil && progressing.Status == metav1.ConditionTrue && progressing.Message != "" {
		return progressing.Message
	}
	if ready := meta.FindStatusCondition(service.Status.Conditions, operatormachines.ConditionReady); ready != nil {
		return ready.Message
	}
	return "the operator of MachineServices has not looked at it yet"
}

// paused tells whether the operator of MachineServices leaves one alone.
func paused(p *placed) bool { return pausedBy(p) != "" }

// pausedBy returns the annotation that makes a MachineService stand still; empty if nothing does.
func pausedBy(service client.Object) string {
	for _, name := range []string{framework.PausedAnnotation, framework.ClusterPausedAnnotation} {
		if service.GetAnnotations()[name] == "true" {
			return name
		}
	}
	return ""
}

// asIs makes a state that of what is there.
func (c *computation) asIs(state *v1alpha1.ServiceState, have *placed) {
	phase, message := phaseOf(&have.service)
	state.State = phase
	state.Template = cmp.Or(have.GetAnnotations()[TemplateAnnotation], state.Template)
	state.Version = have.GetAnnotations()[VersionAnnotation]
	c.tellHealth(state, message)
	if phase == v1alpha1.ServiceStateFailed {
		fail(state, message)
	}
}

// tellHealth says in a state how the service is.
func (c *computation) tellHealth(state *v1alpha1.ServiceState, message string) {
	status := metav1.ConditionUnknown
	switch state.State {
	case v1alpha1.ServiceStateDeployed:
		status = metav1.ConditionTrue
	case v1alpha1.ServiceStateFailed:
		status = metav1.ConditionFalse
	}
	c.states.Tell(state, native.ConditionHealthy, status, string(state.State), statemanager.FirstLine(message))
}

// wait says in a state what a service waits for, and returns a note of it.
func (c *computation) wait(state *v1alpha1.ServiceState, reason, message string) string {
	c.states.Tell(state, native.ConditionWaiting, metav1.ConditionTrue, reason, cut.Text(message, statemanager.MaxMessage))
	return fmt.Sprintf("service %s/%s %s", state.Namespace, state.Name, message)
}

// provisioning makes a state that of a service which becomes what its entry says.
func provisioning(state *v1alpha1.ServiceState, entry *v1alpha1.ServiceWithValues) {
	state.State, state.Template, state.Version = v1alpha1.ServiceStateProvisioning, entry.Template, entry.Version
	state.FailureMessage = ""
}

// fail makes a state Failed.
func fail(state *v1alpha1.ServiceState, message string) {
	state.State, state.FailureMessage = v1alpha1.ServiceStateFailed, statemanager.FirstLine(message)
}

// names returns services as people read them.
func names(services []client.ObjectKey) string {
	texts := make([]string, len(services))
	for i, key := range services {
		texts[i] = key.String()
	}
	return strings.Join(texts, ", ")
}
