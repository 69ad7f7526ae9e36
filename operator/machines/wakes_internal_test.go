package machines

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/internal/claims"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
	"github.com/operatorkit/operatorkit/resource/deploymentresource"
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

// What a status says may be older than what its service was last found to depend on.
func TestAServiceThatDependsOnAMachineThatCantBeSeenIsToldOfAllThatHappens(t *testing.T) {
	f := &serviceFramework{sources: &sources{claims: &claims.Claims{Owner: &framework.Framework{}}}, d: &operator.Dependencies{}}
	svc := &v1alpha1.MachineService{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	key := informer.Key{Namespace: "shop", Name: "web"}
	found := func(state api.MachineState) {
		t.Helper()
		f.doubts.begin(key)
		m := &scheduler.Machine{Machine: api.Machine{ID: "m1", Name: "m1", State: state}}
		work := &deploymentresource.Work{State: &scheduler.ClusterState{Machines: []*scheduler.Machine{m}}}
		ctx := f.memo.With(t.Context(), func(context.Context) (*serviceState, error) { return &serviceState{key: key, work: work}, nil })
		if err := f.setStatus(ctx, svc); err != nil {
			t.Fatal(err)
		}
	}
	found(api.MachineUnknown)
	if !f.doubts.about(key) {
		t.Error("it is not told when the machine has gone")
	}
	found(api.MachineAvailable)
	if f.doubts.about(key) {
		t.Error("all is seen, and it is told of all that happens")
	}
}

func TestAMachineThatGoesIsTold(t *testing.T) {
	cli, err := docker.New(docker.Config{Cluster: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cli.Close() }()
	c := &cluster{Client: cli, machines: map[string]docker.Machine{}}
	at := func(name, host string) docker.Machine {
		return docker.Machine{ID: name, Name: name, Endpoint: docker.Endpoint{Host: host}}
	}
	m1, m2 := at("m1", "tcp://127.0.0.1:1"), at("m2", "tcp://127.0.0.1:2")
	for _, step := range []struct {
		what     string
		machines map[string]docker.Machine
		faulty   map[string]api.Machine
		want     []string
	}{
		{"two come, which tell of themselves when they are connected to", map[string]docker.Machine{"m1": m1, "m2": m2}, nil, nil},
		{"one goes", map[string]docker.Machine{"m1": m1}, nil, []string{"m2"}},
		{"nothing changes", map[string]docker.Machine{"m1": m1}, nil, nil},
		{"one can't be tried", nil, map[string]api.Machine{"m1": unknown(docker.Machine{ID: "m1", Name: "m1"}, errors.New("there is no Secret"))}, []string{"m1"}},
		{"it still can't be tried", nil, map[string]api.Machine{"m1": unknown(docker.Machine{ID: "m1", Name: "m1"}, errors.New("there is no Secret"))}, nil},
		{"it goes", nil, nil, []string{"m1"}},
	} {
		if step.faulty == nil {
			step.faulty = map[string]api.Machine{}
		}
		if got := c.set(step.machines, step.faulty); !slices.Equal(got, step.want) {
			t.Errorf("%s: told of %q, want %q", step.what, got, step.want)
		}
	}
}

func TestWhatSomebodyElseHasTakenIsNoFaultOfAVersion(t *testing.T) {
	svc, version, f := &v1alpha1.MachineService{}, v1alpha1.Version{}, failures{}
	for _, taken := range []error{api.ErrPortTaken, api.ErrExists, api.ErrOthers} {
		for _, end := range []error{deployment.ErrPaused, deployment.ErrRolledBack} {
			f.note(t.Context(), svc, version, &deployment.Plan{}, errors.Join(end, fmt.Errorf("start container web-1: %w", taken)))
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
