package deployment_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// hookName returns the name that the hook of a plan has.
func hookName(t *testing.T, s *simulation, spec api.ServiceSpec) string {
	t.Helper()
	plan, err := deployment.NewDeployment(s, spec, nil).Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range plan.Operations {
		if hook, ok := op.(*deployment.PreDeployOperation); ok {
			return hook.ContainerName
		}
	}
	t.Fatal("the plan has no hook")
	return ""
}

func TestAHookLeavesAloneWhatHasItsNameAndIsNotOfItsService(t *testing.T) {
	for name, foreign := range map[string]api.Container{
		"a container of nobody who is known": {State: api.ContainerRunning},
		"a hook of another namespace":        {State: api.ContainerRunning, Hook: true, Owner: api.Owner{Cluster: "other", Resource: "containers", Service: "web"}},
		"a container of another service":     {State: api.ContainerRunning, ServiceName: "db"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSimulation(1)
				spec := web("app:v1", 1, hook("migrate"))
				foreign.ID, foreign.Name = "foreign", hookName(t, s, spec)
				s.machines[0].containers = []*simulatedContainer{{Container: foreign}}
				mustDeploy(t, s, spec)
				if c := s.machines[0].find("foreign"); c == nil || c.State != api.ContainerRunning {
					t.Errorf("it was touched: %v", s.log)
				}
				if !slices.ContainsFunc(s.log, func(l string) bool { return strings.HasPrefix(l, "create web-pre-deploy-") }) || s.working("web") != 1 {
					t.Errorf("the hook has not run: %v", s.log)
				}
			})
		})
	}
}

func TestAnOldHookEndsBeforeTheNextOneStartsWhereverItIs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(2)
		spec := web("app:v1", 1, hook("migrate"))
		old := &simulatedContainer{Container: api.Container{
			ID: "old", Name: "web-pre-deploy-of-before", ServiceName: "web", Hook: true, State: api.ContainerRunning,
		}}
		s.machine("m2").containers = []*simulatedContainer{old}
		mustDeploy(t, s, spec)
		begun := slices.IndexFunc(s.log, func(l string) bool { return strings.HasPrefix(l, "create web-pre-deploy-") })
		ended := slices.IndexFunc(s.log, func(l string) bool { return strings.HasSuffix(l, " old on m2") })
		if ended < 0 || begun < ended {
			t.Errorf("it has not ended before the next one: %v", s.log)
		}
	})
}

func TestNoHookRunsWhileAnOldOneMayRunOnAMachineThatCantBeSeen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(2)
		s.machine("m2").containers = []*simulatedContainer{{Container: api.Container{
			ID: "old", Name: "web-pre-deploy-of-before", ServiceName: "web", Hook: true, State: api.ContainerRunning,
		}}}
		s.machine("m2").unreachable = true
		spec := web("app:v1", 1, hook("migrate"))
		plan, err := deploy(t.Context(), s, spec, nil)
		if err != nil || !plan.Empty() || !strings.Contains(plan.Format(nil), "the pre-deploy hook may still run on m2") {
			t.Errorf("got %v, %v", plan.Format(nil), err)
		}
		s.restart()
		mustDeploy(t, s, spec)
		if s.working("web") != 1 || s.machine("m2").find("old") != nil {
			t.Errorf("it does not go on: %v", s.log)
		}
	})
}
