package statemanagers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// Reasons of the events on ServiceSets.
const (
	// EventDeployed says that a service is Deployed, in another template or with another configuration than before.
	EventDeployed = "Deployed"
	// EventFailed says that a service has failed, or fails in another way than before.
	EventFailed = "Failed"
	// EventDrifted says that somebody else has changed what was put on the cluster.
	EventDrifted = "Drifted"
	// EventRemoved says that a service is gone from the cluster.
	EventRemoved = "Removed"
	// EventHandedOver says that a service goes on in another ServiceSet of the same cluster.
	EventHandedOver = "HandedOver"
	// EventLetGo says that what is on the cluster was let go of, because the cluster can't be reached.
	EventLetGo = "LetGo"
	// EventUnreachable says that the cluster can't be reached.
	EventUnreachable = "ClusterUnreachable"
)

// tell writes events on what has changed between the status that was stored and the one that is stored now: so each is told once,
// whoever reconciles how often.
func (m *managed) tell(ctx context.Context, before, after *v1alpha1.ServiceSet) {
	record := func(kind, reason, format string, args ...any) {
		framework.Recorder(ctx, m.d.Recorder).Event(after, kind, reason, fmt.Sprintf(format, args...))
	}
	was, is := statesOf(&before.Status), statesOf(&after.Status)
	for _, key := range keysOf(is) {
		old, now := was[key], is[key]
		switch {
		case now.State == v1alpha1.ServiceStateFailed && (old == nil || old.State != now.State || old.FailureMessage != now.FailureMessage):
			record(corev1.EventTypeWarning, EventFailed, "service %s: %s", key, orUnknown(now.FailureMessage))
		case now.State == v1alpha1.ServiceStateDeployed && !sameDeployed(old, now):
			record(corev1.EventTypeNormal, EventDeployed, "service %s is deployed: %s", key, versionOf(now))
		}
		drift, known := statuses.Find(now.Conditions, native.ConditionDrifted), metav1.Condition{}
		if old != nil {
			known = statuses.Find(old.Conditions, native.ConditionDrifted)
		}
		if drift.Status == metav1.ConditionTrue && (known.Status != drift.Status || known.Message != drift.Message) {
			record(corev1.EventTypeWarning, EventDrifted, "service %s: %s", key, drift.Message)
		}
	}
	reachable, known := statuses.Find(after.Status.Conditions, target.ConditionReachable), statuses.Find(before.Status.Conditions, target.ConditionReachable)
	if reachable.Status == metav1.ConditionFalse && (known.Status != reachable.Status || known.Reason != reachable.Reason) {
		record(corev1.EventTypeWarning, EventUnreachable, "%s", reachable.Message)
	}
	m.tellGone(ctx, was, is, record)
}

// tellGone writes events on services that the status does not tell of any more.
func (m *managed) tellGone(ctx context.Context, was, is map[client.ObjectKey]*v1alpha1.ServiceState, record func(kind, reason, format string, args ...any)) {
	state, err := m.memo.Get(ctx)
	if err != nil || state.set == nil {
		return
	}
	order := statemanager.NewOrder(state.set)
	for _, key := range keysOf(was) {
		if is[key] != nil || was[key].State == v1alpha1.ServiceStatePending {
			continue
		}
		reachable := statuses.Find(state.work.Conditions, target.ConditionReachable)
		heir := order.Heir(key)
		switch {
		case heir != nil:
			record(corev1.EventTypeNormal, EventHandedOver, "service %s goes on in ServiceSet %s", key, heir.Name)
		case reachable.Status == metav1.ConditionFalse && statemanager.LetGo(state.set):
			record(corev1.EventTypeWarning, EventLetGo, "service %s is let go of: what is on the cluster stays there, should it come back", key)
		default:
			record(corev1.EventTypeNormal, EventRemoved, "service %s is gone from the cluster", key)
		}
	}
}

// sameDeployed tells whether a service was Deployed as it is now.
func sameDeployed(old, now *v1alpha1.ServiceState) bool {
	if old == nil || old.LastDeployed == nil || now.LastDeployed == nil {
		return old != nil && old.State == now.State && old.Template == now.Template && old.Version == now.Version
	}
	return *old.LastDeployed == *now.LastDeployed && old.State != v1alpha1.ServiceStateFailed
}

// versionOf names the template and the version of a service.
func versionOf(s *v1alpha1.ServiceState) string {
	if s.Version == "" || s.Version == s.Template {
		return s.Template
	}
	return fmt.Sprintf("%s (%s)", s.Template, s.Version)
}

func statesOf(status *v1alpha1.ServiceSetStatus) map[client.ObjectKey]*v1alpha1.ServiceState {
	states := make(map[client.ObjectKey]*v1alpha1.ServiceState, len(status.Services))
	for i := range status.Services {
		s := &status.Services[i]
		states[s.Key()] = s
	}
	return states
}
