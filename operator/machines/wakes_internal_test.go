package machines

import (
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

func TestAMachineThatIsBackWakesOnlyTheServicesThatItConcerns(t *testing.T) {
	settled := func(change func(*v1alpha1.MachineService)) *v1alpha1.MachineService {
		svc := &v1alpha1.MachineService{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		svc.Status.Conditions = []metav1.Condition{{Type: ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 2}}
		svc.Status.Machines = []v1alpha1.MachineContainers{{Name: "m1"}}
		change(svc)
		return svc
	}
	for name, test := range map[string]struct {
		change func(*v1alpha1.MachineService)
		want   bool
	}{
		"one that is as it should be elsewhere": {func(*v1alpha1.MachineService) {}, false},
		"one that has something there": {func(s *v1alpha1.MachineService) {
			s.Status.Machines = append(s.Status.Machines, v1alpha1.MachineContainers{Name: "m2"})
		}, true},
		"a global one":            {func(s *v1alpha1.MachineService) { s.Spec.Mode = api.ServiceModeGlobal }, true},
		"one that was changed":    {func(s *v1alpha1.MachineService) { s.Generation = 3 }, true},
		"one that is not ready":   {func(s *v1alpha1.MachineService) { s.Status.Conditions[0].Status = metav1.ConditionFalse }, true},
		"one that was never seen": {func(s *v1alpha1.MachineService) { s.Status = v1alpha1.MachineServiceStatus{} }, true},
		"one that can't leave a machine": {func(s *v1alpha1.MachineService) {
			s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: ConditionBlocked, Status: metav1.ConditionTrue})
		}, true},
		"one that is being deleted": {func(s *v1alpha1.MachineService) { s.DeletionTimestamp = &metav1.Time{} }, true},
	} {
		if got := concernedBy(settled(test.change), "m2"); got != test.want {
			t.Errorf("%s: it is looked at: %v, want %v", name, got, test.want)
		}
	}
}

func TestWhatSomebodyElseHasTakenIsNoFaultOfAVersion(t *testing.T) {
	svc, version, f := &v1alpha1.MachineService{}, v1alpha1.Version{}, failures{}
	for _, taken := range []error{api.ErrPortTaken, api.ErrExists, api.ErrOthers} {
		for _, end := range []error{deployment.ErrPaused, deployment.ErrRolledBack} {
			f.note(t.Context(), svc, version, errors.Join(end, fmt.Errorf("start container web-1: %w", taken)))
			if given := f.givenUp(svc, version); given != nil {
				t.Errorf("%v: it was given up: %v", taken, given)
			}
			if f.last(svc) == "" {
				t.Errorf("%v: the failure is not told", taken)
			}
		}
	}
}

func TestAServiceThatWaitsForAPlanToEndIsNotBlocked(t *testing.T) {
	nowhere := &scheduler.UnschedulableError{Service: "web"}
	if reason, blocked := reasonOf(nowhere); reason != ReasonUnschedulable || !blocked {
		t.Errorf("it is %s, blocked %v", reason, blocked)
	}
	nowhere.Coming = []scheduler.Pair{{Service: "db", MachineID: "m1"}}
	if reason, blocked := reasonOf(nowhere); reason != ReasonRetrying || blocked {
		t.Errorf("it is %s, blocked %v", reason, blocked)
	}
}
