package statemanager

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/internal/cut"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// States are the states of the services of a set while one Compute works them out. They begin with what the status says, and what stays
// the same keeps its times. It is not safe for concurrent use.
type States struct {
	set     *v1alpha1.ServiceSet
	now     metav1.Time
	passing []string
	// reported is what the status says of services, also that they are gone.
	reported map[client.ObjectKey]*v1alpha1.ServiceState
	entered  map[client.ObjectKey]v1alpha1.ServiceState
}

// NewStates begins with the status of a set. passing are the types of conditions that stand only while there is a reason for them.
func NewStates(set *v1alpha1.ServiceSet, now time.Time, passing ...string) *States {
	s := &States{
		set: set, now: metav1.NewTime(now).Rfc3339Copy(), passing: passing,
		reported: make(map[client.ObjectKey]*v1alpha1.ServiceState, len(set.Status.Services)), entered: map[client.ObjectKey]v1alpha1.ServiceState{},
	}
	for i := range slices.Backward(set.Status.Services) {
		state := &set.Status.Services[i]
		s.reported[state.Key()] = state
	}
	return s
}

// Begin returns the state of a service before anything is known of it: what the status says, without its message and without what
// passes.
func (s *States) Begin(service client.ObjectKey) v1alpha1.ServiceState {
	before := s.reported[service]
	if before == nil || before.State == v1alpha1.ServiceStateDeleted {
		return v1alpha1.ServiceState{Namespace: service.Namespace, Name: service.Name}
	}
	state := before.DeepCopy()
	state.Namespace, state.FailureMessage = service.Namespace, ""
	for _, condition := range s.passing {
		meta.RemoveStatusCondition(&state.Conditions, condition)
	}
	return *state
}

// Tell sets a condition of a state.
func (s *States) Tell(state *v1alpha1.ServiceState, condition string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&state.Conditions, metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: message, LastTransitionTime: s.now,
	})
}

// Bounds of plans in a status, in bytes: for one service, and for all services of a set.
const (
	maxPlan  = 16 << 10
	maxPlans = 512 << 10
)

// TellPlan sets the condition of a state that tells what would be done.
func (s *States) TellPlan(state *v1alpha1.ServiceState, condition string, changes []plan.Change, notes []string) {
	if len(changes) == 0 {
		s.Tell(state, condition, metav1.ConditionFalse, v1alpha1.ReasonNothingPlanned, cut.Text(strings.Join(notes, "; "), MaxMessage))
		return
	}
	var text bytes.Buffer
	if err := plan.WriteChangesText(&text, changes, plan.TextOptions{}); err != nil {
		fmt.Fprintf(&text, "%d changes", len(changes))
	}
	services := max(1, len(s.set.Spec.Services)+len(s.set.Status.Services))
	s.Tell(state, condition, metav1.ConditionTrue, v1alpha1.ReasonChangesPlanned, cut.Text(text.String(), min(maxPlan, max(maxPlans/services, 64))))
}

// Enter makes a state that of a service.
func (s *States) Enter(service client.ObjectKey, state v1alpha1.ServiceState) {
	before := s.reported[service]
	state.LastStateTransitionTime = s.now.DeepCopy()
	if before != nil && before.State == state.State && before.LastStateTransitionTime != nil {
		state.LastStateTransitionTime = before.LastStateTransitionTime
	}
	if before != nil {
		for i := range state.Conditions {
			is := &state.Conditions[i]
			if was := meta.FindStatusCondition(before.Conditions, is.Type); was != nil && was.Status == is.Status {
				is.LastTransitionTime = was.LastTransitionTime
			}
		}
	}
	s.entered[service] = state
}

// Entered are the states so far, which are those for Order.Waits.
func (s *States) Entered() map[client.ObjectKey]v1alpha1.ServiceState { return s.entered }

// Sorted returns the states by the keys of their services.
func (s *States) Sorted() []v1alpha1.ServiceState {
	var sorted []v1alpha1.ServiceState
	for _, state := range s.entered {
		sorted = append(sorted, state)
	}
	slices.SortFunc(sorted, func(a, b v1alpha1.ServiceState) int {
		return v1alpha1.CompareKeys(a.Key(), b.Key())
	})
	return sorted
}
