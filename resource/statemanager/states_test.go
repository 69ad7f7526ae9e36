package statemanager_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
)

// A status in which a time changes is written, and wakes who has written it.
func TestAStateThatStaysKeepsItsTime(t *testing.T) {
	before := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, state := range []v1alpha1.ServicePhase{
		v1alpha1.ServiceStatePending, v1alpha1.ServiceStateProvisioning, v1alpha1.ServiceStateDeployed,
		v1alpha1.ServiceStateFailed, v1alpha1.ServiceStateDeleting, v1alpha1.ServiceStateDeleted,
	} {
		since := metav1.NewTime(before)
		set := &v1alpha1.ServiceSet{}
		set.Status.Services = []v1alpha1.ServiceState{{Namespace: "web", Name: "db", State: state, LastStateTransitionTime: &since}}
		key := serviceset.ServiceKey("web", "db")

		states := statemanager.NewStates(set, before.Add(time.Minute))
		same := states.Begin(key)
		same.State = state
		states.Enter(key, same)
		if got := states.Entered()[key].LastStateTransitionTime; !got.Equal(&since) {
			t.Errorf("%s stays, and its time becomes %v", state, got)
		}

		other := states.Begin(key)
		other.State = v1alpha1.ServiceStateDeployed
		if state == other.State {
			other.State = v1alpha1.ServiceStateFailed
		}
		states.Enter(key, other)
		if got := states.Entered()[key].LastStateTransitionTime; !got.Time.Equal(before.Add(time.Minute)) {
			t.Errorf("%s becomes %s, and its time is %v", state, other.State, got)
		}
	}
}
