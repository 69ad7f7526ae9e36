package deployment_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

func TestADeploymentPlansOnceAndRunsOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(2)
		d := deployment.NewDeployment(s, web("app:v1", 2), nil)
		first, err := d.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		again, err := d.Plan(t.Context())
		if err != nil || first.String() != again.String() {
			t.Errorf("another plan: %v, %v", again.String(), err)
		}
		ran, err := d.Run(t.Context())
		if err != nil || ran.ServiceID == "" || ran.ServiceID != first.ServiceID {
			t.Errorf("got service %q, %v", ran.ServiceID, err)
		}
		if _, err := d.Run(t.Context()); !errors.Is(err, deployment.ErrAlreadyRun) {
			t.Errorf("it ran twice: %v", err)
		}
	})
}

func TestAStalePlanIsRefusedAndSaysWhatHasChanged(t *testing.T) {
	for name, test := range map[string]struct {
		change func(s *simulation)
		want   string
	}{
		"a container stopped": {func(s *simulation) { s.machine("m1").containers[0].State = api.ContainerExited }, "now exited"},
		"a container is gone": {func(s *simulation) { s.machine("m1").containers = nil }, "now not there"},
		"a machine is gone": {func(s *simulation) { s.machine("m2").unreachable = true },
			"a container on m2: possible, now can't be seen: no route to host"},
		"a machine is drained": {func(s *simulation) { s.machine("m2").Drain = true }, "machine m2: available, now available, drained"},
		"a volume is there":    {func(s *simulation) { s.machine("m3").volumes = []api.Volume{{Name: "data"}} }, "volume data: nowhere, now m3"},
		"somebody holds a port": {func(s *simulation) { occupy(s.machine("m2"), 80) },
			"a container on m2: possible, now container other holds port 80:8080/tcp"},
		"somebody has a name": {func(s *simulation) {
			plan, _ := deployment.NewDeployment(s, web("app:v2", 2, port80), nil).Plan(context.Background())
			_, by, _ := strings.Cut(plan.Format(nil), " by web-")
			name := "web-" + strings.Fields(by)[0]
			for _, m := range s.machines {
				m.containers = append(m.containers, &simulatedContainer{Container: api.Container{ID: "x" + m.Name, Name: name}})
			}
		}, "free, now taken"},
		"a container was limited": {func(s *simulation) {
			s.machine("m1").containers[0].Spec.Container.Resources.Memory = quantity("1Gi")
		}, "now running, memory 1Gi"},
		"a machine was added of which nothing is known": {func(s *simulation) {
			s.machines = append(s.machines, &simulatedMachine{Machine: api.Machine{ID: "id-m4", Name: "m4"}, unreachable: true, forgotten: true})
		}, "the machines of which nothing is known: none, now m4"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSimulation(3)
				s.machine("m3").Unschedulable = "it is for others"
				mustDeploy(t, s, web("app:v1", 2))
				next := web("app:v2", 2, port80)
				if name == "a volume is there" {
					next = web("app:v2", 2, data)
				}
				d := deployment.NewDeployment(s, next, nil)
				if _, err := d.Plan(t.Context()); err != nil {
					t.Fatal(err)
				}
				test.change(s)
				log := len(s.log)
				if _, err := d.Run(t.Context()); !errors.Is(err, deployment.ErrStalePlan) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want one that says %q", err, test.want)
				}
				if len(s.log) != log {
					t.Errorf("something was done: %v", s.log[log:])
				}
			})
		})
	}
}

func TestAPlanRunsWhateverElseHasChanged(t *testing.T) {
	for name, change := range map[string]func(s *simulation){
		"another machine is gone":   func(s *simulation) { s.machine("m3").unreachable = true },
		"a label that nobody needs": func(s *simulation) { s.machine("m2").Labels = map[string]string{"a": "b"} },
		"another volume":            func(s *simulation) { s.machine("m2").volumes = []api.Volume{{Name: "other"}} },
		"another port":              func(s *simulation) { occupy(s.machine("m2"), 81) },
		"a port elsewhere":          func(s *simulation) { occupy(s.machine("m3"), 80) },
		"an image":                  func(s *simulation) { s.machine("m2").images = []api.Image{{Tags: []string{"app:v2"}}} },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSimulation(3)
				mustDeploy(t, s, web("app:v1", 2))
				d := deployment.NewDeployment(s, web("app:v2", 2, port80), nil)
				if _, err := d.Plan(t.Context()); err != nil {
					t.Fatal(err)
				}
				change(s)
				if _, err := d.Run(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// occupy makes a container of somebody else hold a port.
func occupy(m *simulatedMachine, port uint16) {
	m.containers = append(m.containers, &simulatedContainer{Container: api.Container{
		ID: "other-" + m.Name, Name: "other", State: api.ContainerRunning,
		Ports: []api.PortSpec{{Mode: api.PortModeHost, HostIP: "::", PublishedPort: port, ContainerPort: port}},
	}})
}

func TestTheSameStateGivesTheSamePlanAndIsNotChanged(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		scenario := drawScenario(r, []fault{killed, unanswered, partition})
		if scenario.strategy == 1 {
			scenario.strategy = 0
		}
		shuffle := rapid.Permutation([]int{0, 1, 2, 3}).Draw(r, "shuffle")
		var fault string
		bubble(t, func(t *testing.T) {
			s := newSimulation(scenario.machines)
			// What it leaves is a state to plan for.
			for _, v := range scenario.versions[:len(scenario.versions)-1] {
				s.calls, s.faults = 0, v.faults
				_ = scenario.try(t.Context(), s, v, false)
			}
			s.dead, s.faults = false, nil
			fault = planTwice(t.Context(), s, scenario, shuffle)
		})
		if fault != "" {
			r.Fatal(fault)
		}
	})
}

func planTwice(ctx context.Context, s *simulation, scenario *scenario, shuffle []int) string {
	state, err := scheduler.Inspect(ctx, s)
	if err != nil {
		return err.Error()
	}
	spec := scenario.versions[len(scenario.versions)-1].spec
	spec.SetDefaults()
	plan := func(state *scheduler.ClusterState) string {
		var strategy deployment.Strategy = &deployment.RollingStrategy{State: state}
		if scenario.strategy == 2 {
			strategy = &deployment.CanaryStrategy{State: state}
		}
		p, err := strategy.Plan(ctx, s, nil, spec)
		return fmt.Sprint(p.Format(nil), fingerprintOf(p), err)
	}
	copied, beforeSpec := cloneState(state), spec.Clone()
	first := plan(state)
	if diff := cmp.Diff(copied.Machines, state.Machines); diff != "" || !spec.Equal(beforeSpec) {
		return "planning changed the state or the specification: " + diff
	}
	for i, j := range shuffle {
		if i < len(copied.Machines) && j < len(copied.Machines) {
			copied.Machines[i], copied.Machines[j] = copied.Machines[j], copied.Machines[i]
		}
	}
	for _, m := range copied.Machines {
		slices.Reverse(m.Inventory.Containers)
	}
	if second := plan(copied); first != second {
		return "the same state has two plans: " + cmp.Diff(first, second)
	}
	return ""
}

func cloneState(state *scheduler.ClusterState) *scheduler.ClusterState {
	out := &scheduler.ClusterState{Owner: state.Owner}
	for _, m := range state.Machines {
		out.Machines = append(out.Machines, &scheduler.Machine{Machine: *m.DeepCopy(), Inventory: *m.Inventory.DeepCopy()})
	}
	return out
}

func TestThePreDeployHookRunsOnceForAVersion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(1)
		mustDeploy(t, s, web("app:v1", 2, hook("migrate")))
		mustDeploy(t, s, web("app:v1", 3, hook("migrate")))
		mustDeploy(t, s, web("app:v2", 3, hook("migrate")))
		ran := 0
		for _, l := range s.log {
			if strings.HasPrefix(l, "create web-pre-deploy") {
				ran++
			}
		}
		if ran != 2 {
			t.Errorf("it ran %d times: %v", ran, s.log)
		}
	})
}

func TestNothingIsDeployedWhenThePreDeployHookFails(t *testing.T) {
	for command, want := range map[string]string{"fail": "ended with exit code 1", "hang": "takes longer than 1m0s"} {
		bubble(t, func(t *testing.T) {
			s := newSimulation(1)
			mustDeploy(t, s, web("app:v1", 1))
			next := web("app:v2", 1, hook(command))
			next.PreDeploy.Timeout = &metav1.Duration{Duration: time.Minute}
			if _, err := deploy(t.Context(), s, next, nil); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff([]string{"m1/app:v1/running"}, s.of("web")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if all := s.machine("m1").containers; len(all) != 2 || !all[1].Hook || !all[1].Failed() || all[1].Active() {
				t.Errorf("the container of the hook is not kept: %v", s.log)
			}
			mustDeploy(t, s, web("app:v2", 1, hook("migrate")))
			if n := len(s.machine("m1").containers); n != 1 {
				t.Errorf("there are %d containers after the next attempt", n)
			}
		})
	}
}

func TestAHookThatWasCutOffIsCleanedUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer cancel()
			time.Sleep(time.Second)
			// The process is gone before it can notice anything, so it cleans nothing up.
			s.mu.Lock()
			defer s.mu.Unlock()
			s.dead = true
		}()
		_, _ = deploy(ctx, s, web("app:v1", 1, hook("hang")), nil)
		s.restart()
		if n := len(s.machine("m1").containers); n != 1 {
			t.Fatalf("there are %d containers", n)
		}
		mustDeploy(t, s, web("app:v1", 1, hook("migrate")))
		if n := len(s.machine("m1").containers); n != 1 || s.machine("m1").containers[0].Hook {
			t.Errorf("there are %d containers", n)
		}
	})
}

func TestBlueGreenRefusesWhatCantBeSideBySide(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(1)
		mustDeploy(t, s, web("app:v1", 1, data))
		var sideBySide *deployment.NotSideBySideError
		_, err := deploy(t.Context(), s, web("app:v2", 1, data), &deployment.BlueGreenStrategy{})
		if !errors.As(err, &sideBySide) {
			t.Errorf("a volume: got %v", err)
		}
		s = newSimulation(2)
		mustDeploy(t, s, web("app:v1", 1, port80))
		// On the other machine the port is free.
		if _, err := deploy(t.Context(), s, web("app:v2", 1, port80), &deployment.BlueGreenStrategy{}); err != nil {
			t.Error(err)
		}
		mustDeploy(t, s, web("app:v2", 2, port80))
		var u *scheduler.UnschedulableError
		_, err = deploy(t.Context(), s, web("app:v3", 2, port80), &deployment.BlueGreenStrategy{})
		if !errors.As(err, &u) || !strings.Contains(err.Error(), "holds a port that the new one needs") {
			t.Errorf("ports: got %v", err)
		}
	})
}

func TestACanaryThatStopsWorkingIsRolledBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(2)
		mustDeploy(t, s, web("app:v1", 4, checked))
		before := s.of("web")
		go func() {
			// It has become healthy by then, and is watched.
			time.Sleep(30 * time.Second)
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, m := range s.machines {
				for _, c := range m.containers {
					if c.Spec.Container.Image == "app:v2" {
						c.State, c.Health = api.ContainerExited, api.HealthNone
					}
				}
			}
		}()
		_, err := deploy(t.Context(), s, web("app:v2", 4, checked), &deployment.CanaryStrategy{})
		if !errors.Is(err, deployment.ErrRolledBack) || !errors.Is(err, api.ErrUnhealthy) {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff(before, s.of("web")); diff != "" {
			t.Errorf("(-before +after):\n%s", diff)
		}
	})
}

func TestCanaryStepsMustGrow(t *testing.T) {
	for _, steps := range [][]deployment.CanaryStep{{{Percent: 0}}, {{Percent: 101}}, {{Percent: 50}, {Percent: 50}}, {{Percent: 1, Pause: -1}}} {
		strategy := &deployment.CanaryStrategy{Steps: steps}
		if _, err := deployment.NewDeployment(newSimulation(1), web("app:v1", 1), strategy).Plan(t.Context()); err == nil {
			t.Errorf("%v was taken", steps)
		}
	}
}

func TestEachOperationEndsInTheSameStateAfterACrashInItsMiddle(t *testing.T) {
	for _, tc := range plans {
		for crash := 1; crash < 30; crash++ {
			bubble(t, func(t *testing.T) {
				s := newSimulation(tc.machines)
				for _, spec := range tc.from {
					mustDeploy(t, s, spec)
				}
				if tc.change != nil {
					tc.change(s)
				}
				d := deployment.NewDeployment(s, tc.to, tc.strategy)
				plan, err := d.Plan(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				failOn(s, crash, []fault{killed, killedAfter}[crash%2])
				_ = plan.Execute(t.Context(), s)
				s.mu.Lock()
				s.dead, s.faults = false, nil
				s.mu.Unlock()
				if err := plan.Execute(t.Context(), s); err != nil {
					t.Errorf("%s, killed at call %d: the second time: %v", tc.name, crash, err)
				}
				// The same plan once more is the same state too.
				have := s.of("web")
				if err := plan.Execute(t.Context(), s); err != nil || cmp.Diff(have, s.of("web")) != "" {
					t.Errorf("%s, killed at call %d: the third time: %v, %v", tc.name, crash, err, cmp.Diff(have, s.of("web")))
				}
				left, err := deployment.NewDeployment(s, tc.to, tc.strategy).Plan(t.Context())
				if err != nil || !left.Empty() {
					t.Errorf("%s, killed at call %d: there is something left to do: %s %v", tc.name, crash, left.Format(nil), err)
				}
			})
		}
	}
}

// slowEngine makes containers although it says that their names are taken, as it looks when an earlier try was cut off.
type slowEngine struct{ *simulation }

func (e slowEngine) CreateContainer(ctx context.Context, machineID string, options api.CreateContainerOptions) (string, error) {
	if _, err := e.simulation.CreateContainer(ctx, machineID, options); err != nil {
		return "", err
	}
	return "", api.ErrExists
}

func TestAContainerOfAnEarlierTryThatAppearsLateIsTaken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(1)
		if _, err := deployment.NewDeployment(slowEngine{s}, web("app:v1", 2), nil).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"m1/app:v1/running", "m1/app:v1/running"}, s.of("web")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// surprise makes the first container that is asked for of another specification, as it looks when an earlier try of an earlier version
// was cut off.
type surprise struct {
	*simulation
	earlier []api.ServiceSpec
}

func (e *surprise) CreateContainer(ctx context.Context, machineID string, options api.CreateContainerOptions) (string, error) {
	if len(e.earlier) == 0 {
		return e.simulation.CreateContainer(ctx, machineID, options)
	}
	options.Spec, e.earlier = e.earlier[0], e.earlier[1:]
	if _, err := e.simulation.CreateContainer(ctx, machineID, options); err != nil {
		return "", err
	}
	return "", api.ErrExists
}

func TestAContainerOfAnEarlierVersionThatAppearsLateMakesThePlanStale(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(1)
		earlier, now := web("app:v1", 1), web("app:v1", 1)
		now.Container.Env = map[string]string{"MODE": "new"}
		cli := &surprise{s, []api.ServiceSpec{earlier}}
		if _, err := deployment.NewDeployment(cli, now, nil).Run(t.Context()); !errors.Is(err, deployment.ErrStalePlan) {
			t.Fatalf("err = %v, want that of a plan that is stale", err)
		}
		mustDeploy(t, s, now)
		left := s.machines[0].containers
		if len(left) != 1 || left[0].Spec.Container.Env["MODE"] != "new" || left[0].State != api.ContainerRunning {
			t.Errorf("there are %v", s.of("web"))
		}
	})
}

func fingerprintOf(p deployment.Plan) string {
	if p.Basis == nil {
		return ""
	}
	return p.Basis.Fingerprint()
}
