package statemanagers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/internal/cut"
	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

func conditionsOf(set *v1alpha1.ServiceSet) *[]metav1.Condition { return &set.Status.Conditions }

// setStatus makes the status of a set. The times of conditions are those of the status that there is, and conditions of others
// stay. A set that nothing is left of gets no other status: it is about to go; nor does one whose provider another operator has.
func (m *managed) setStatus(ctx context.Context, set *v1alpha1.ServiceSet) error {
	state, err := m.memo.Get(ctx)
	if err != nil || set.DeletionTimestamp != nil && state.hold == nil && !state.work.Left {
		return err
	}
	if state.foreign {
		return nil
	}
	status := &set.Status
	status.Conditions = m.planned.Keep(set, status.Conditions)
	if state.work != nil {
		status.Services = state.work.Services
		status.Conditions = statuses.SetConditions(status.Conditions, state.work.Conditions)
	}
	if state.hold != nil {
		held := &statuses.Verdict{}
		held.Block(state.hold.reason, state.hold.message)
		status.Conditions = statuses.SetConditions(status.Conditions, append(held.Conditions(set.Generation), metav1.Condition{
			Type: ConditionSuspended, Status: metav1.ConditionTrue, Reason: state.hold.reason,
			Message: cut.Text(state.hold.message, statuses.MaxMessage), ObservedGeneration: set.Generation,
		}))
		return nil
	}
	meta.RemoveStatusCondition(&status.Conditions, ConditionSuspended)
	if !state.work.Stale {
		status.ObservedGeneration = set.Generation
	}
	v := verdictOf(set, state)
	status.Conditions = statuses.SetConditions(status.Conditions, v.Conditions(set.Generation))
	return nil
}

// unreachable tells whether it is known that the cluster can't be reached.
func unreachable(state *setState) bool {
	return statuses.Find(state.work.Conditions, target.ConditionReachable).Status == metav1.ConditionFalse
}

// verdictOf says how the services of a set are, all together.
func verdictOf(set *v1alpha1.ServiceSet, state *setState) *statuses.Verdict {
	v := &statuses.Verdict{ReadyWhy: v1alpha1.ReasonDeployed}
	if unreachable(state) {
		reachable := statuses.Find(state.work.Conditions, target.ConditionReachable)
		v.Block(reachable.Reason, "the cluster can't be reached: "+reachable.Message)
	}
	deployed := 0
	desired := desiredOf(set)
	for i := range state.work.Services {
		s := &state.work.Services[i]
		entry := desired[s.Key()]
		delete(desired, s.Key())
		judge(v, s, entry)
		if entry != nil && isDeployed(s, entry) {
			deployed++
		}
	}
	for _, key := range keysOf(desired) {
		v.Waiting = append(v.Waiting, key.String()+" is not begun")
	}
	if set.DeletionTimestamp != nil {
		v.Progress(v1alpha1.ReasonDeleting, "waits until its services are gone")
		v.Waiting = append(v.Waiting, state.work.Notes...)
		return v
	}
	unseen := state.work.Stale && set.Status.ObservedGeneration != set.Generation
	if unseen && !v.Blocked {
		v.Progress(v1alpha1.ReasonInFlight, "waits until its cluster answers: what has changed since was not rolled out")
	}
	v.Ready = deployed == len(set.Spec.Services) && !unseen && !v.Blocked
	switch n := len(set.Spec.Services); n {
	case 0:
		v.AllWell = "no services are desired"
	case 1:
		v.AllWell = "the service is deployed"
	default:
		v.AllWell = fmt.Sprintf("all %d services are deployed", n)
	}
	return v
}

// desiredOf returns the services that a set lists, by key; none while it is being deleted.
func desiredOf(set *v1alpha1.ServiceSet) map[client.ObjectKey]*v1alpha1.ServiceWithValues {
	entries := make(map[client.ObjectKey]*v1alpha1.ServiceWithValues, len(set.Spec.Services))
	if set.DeletionTimestamp != nil {
		return entries
	}
	for i := range set.Spec.Services {
		entries[set.Spec.Services[i].Key()] = &set.Spec.Services[i]
	}
	return entries
}

// isDeployed tells whether a service is as the set lists it.
func isDeployed(s *v1alpha1.ServiceState, entry *v1alpha1.ServiceWithValues) bool {
	return s.State == entry.Done() && (s.Template == "" || s.Template == entry.Template)
}

// judge adds what a service says. entry is nil for one that is to go.
func judge(v *statuses.Verdict, s *v1alpha1.ServiceState, entry *v1alpha1.ServiceWithValues) {
	name := s.Key().String()
	waiting := meta.FindStatusCondition(s.Conditions, native.ConditionWaiting)
	planned := meta.FindStatusCondition(s.Conditions, native.ConditionPlanned)
	healthy := meta.FindStatusCondition(s.Conditions, native.ConditionHealthy)
	switch {
	case s.State == v1alpha1.ServiceStateFailed:
		v.Block(v1alpha1.ReasonFailed, fmt.Sprintf("%s failed: %s", name, orUnknown(s.FailureMessage)))
	case entry != nil && isDeployed(s, entry), entry == nil && s.State == v1alpha1.ServiceStateDeleted:
	case waiting != nil && waiting.Status == metav1.ConditionTrue:
		v.Waiting = append(v.Waiting, name+" "+waiting.Message)
	case planned != nil && planned.Status == metav1.ConditionTrue:
		v.Waiting = append(v.Waiting, name+" is only planned for, because syncMode is DryRun")
	case entry == nil:
		v.Progress(v1alpha1.ReasonRemoving, name+" is being taken away"+detail(healthy))
	default:
		v.Progress(v1alpha1.ReasonInFlight, fmt.Sprintf("%s is %s%s", name, s.State, detail(healthy)))
	}
}

// detail is what the health of a service adds.
func detail(healthy *metav1.Condition) string {
	if healthy == nil || healthy.Status == metav1.ConditionTrue || healthy.Message == "" {
		return ""
	}
	return ": " + healthy.Message
}

func orUnknown(message string) string {
	if message == "" {
		return "the state manager does not say why"
	}
	return message
}

// keysOf returns the keys of services, in order.
func keysOf[T any](services map[client.ObjectKey]T) []client.ObjectKey {
	return slices.SortedFunc(maps.Keys(services), func(a, b client.ObjectKey) int { return strings.Compare(a.String(), b.String()) })
}
