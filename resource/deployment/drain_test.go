package deployment_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// on returns the IDs of the containers on a machine.
func (m *simulatedMachine) on() []string {
	var ids []string
	for _, c := range m.containers {
		ids = append(ids, c.ID)
	}
	return ids
}

func TestAPlanTellsOfAllMachinesOnWhichSomethingIsDone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(3)
		spec := web("app:v1", 2)
		mustDeploy(t, s, spec)
		s.machine("m1").Drain, s.machine("m1").Unschedulable = true, "it is being deleted"
		s.machine("m2").Unschedulable = "it is full"
		plan, err := deployment.NewDeployment(s, spec, nil).Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"id-m1", "id-m3"}, plan.Machines()); diff != "" {
			t.Errorf("(-want +got):\n%s\nof %s", diff, plan.Format(nil))
		}
	})
}

func TestContainersOfMachinesThatAreDrainedAreReplacedElsewhere(t *testing.T) {
	exited := func(s *simulation) { s.machine("m1").containers[0].State = api.ContainerExited }
	for name, tc := range map[string]struct {
		machines int
		spec     api.ServiceSpec
		strategy deployment.Strategy
		change   func(s *simulation)
		// plan are the lines of the plan about containers, and have is what is there afterwards.
		plan, have []string
		// undrained is what the plan says in the end of what stays.
		undrained string
	}{
		"start-first, as many at once as an update": {machines: 3, spec: web("app:v1", 6, func(s *api.ServiceSpec) { s.Update.Parallelism = 2 }),
			plan: []string{
				"~ replace container web-1 on m1 by web-2 on m2, start-first: m1 is drained because it is being deleted",
				"~ replace container web-3 on m1 by web-4 on m3, start-first: m1 is drained because it is being deleted",
				"if one fails, stop there",
			},
			have: []string{"m2/app:v1/running", "m2/app:v1/running", "m2/app:v1/running", "m3/app:v1/running", "m3/app:v1/running", "m3/app:v1/running"}},
		"with blue-green": {machines: 2, spec: web("app:v1", 2), strategy: &deployment.BlueGreenStrategy{},
			have: []string{"m2/app:v1/running", "m2/app:v1/running"}},
		"with canary": {machines: 2, spec: web("app:v1", 2), strategy: &deployment.CanaryStrategy{},
			have: []string{"m2/app:v1/running", "m2/app:v1/running"}},
		"with a hook, which has run for the version": {machines: 2, spec: web("app:v1", 1, hook("migrate")), have: []string{"m2/app:v1/running"},
			plan: []string{"+ pull image app:v1 on m2", "~ replace container web-1 on m1 by web-2 on m2, start-first: m1 is drained because it is being deleted",
				"if one fails, stop there"}},
		"what only has to be started is made elsewhere": {machines: 2, spec: web("app:v1", 2), change: exited,
			plan: []string{"~ replace container web-1 on m1 by web-2 on m2, start-first: m1 is drained because it is being deleted", "if one fails, stop there"},
			have: []string{"m2/app:v1/running", "m2/app:v1/running"}},
		"as many as there is place for": {machines: 3, spec: web("app:v1", 2, port80),
			have: []string{"m2/app:v1/running", "m3/app:v1/running"}},
		"none, without another machine": {machines: 1, spec: web("app:v1", 2), have: []string{"m1/app:v1/running", "m1/app:v1/running"},
			undrained: "left on m1, although it is drained: 2 containers, because there is no other machine: m1: it is being deleted"},
		"none, where the volume is": {machines: 2, spec: web("app:v1", 1, data), have: []string{"m1/app:v1/running"},
			undrained: "left on m1, although it is drained: 1 container, because there is no other machine: m1: it is being deleted; m2: volume data is on m1"},
		"none, where ports are taken": {machines: 2, spec: web("app:v1", 2, port80), have: []string{"m1/app:v1/running", "m2/app:v1/running"},
			undrained: "left on m1, although it is drained: 1 container, because there is no other machine: " +
				"m1: it is being deleted, a container of the service has the port 80:8080/tcp already; m2: a container of the service has the port 80:8080/tcp already"},
		"started where it is, without another machine": {machines: 1, spec: web("app:v1", 1), change: exited, have: []string{"m1/app:v1/running"},
			undrained: "left on m1, although it is drained: 1 container, because there is no other machine: m1: it is being deleted"},
		"global ones go": {machines: 2, spec: web("app:v1", 0, global), have: []string{"m2/app:v1/running"},
			plan: []string{"- remove container web-1 on m1: m1 is drained because it is being deleted"}},
		"the only one of a global service stays": {machines: 1, spec: web("app:v1", 0, global), have: []string{"m1/app:v1/running"},
			undrained: "left on m1, although it is drained: 1 container, because there is no other machine: m1: it is being deleted"},
		"the only one of a global service that is seen stays": {machines: 2, spec: web("app:v1", 0, global),
			change:    func(s *simulation) { s.machine("m2").unreachable = true },
			have:      []string{"m1/app:v1/running", "m2/app:v1/running"},
			undrained: "left on m1, although it is drained: 1 container, because there is no other machine: m1: it is being deleted; m2: can't be seen: no route to host"},
		"those too many are of the machine": {machines: 2, spec: web("app:v1", 2), change: func(s *simulation) {
			s.machine("m2").containers = append(s.machine("m2").containers, copyOf(s, s.machine("m2").containers[0]))
		}, plan: []string{"- remove container web-1 on m1: more than 2"}, have: []string{"m2/app:v1/running", "m2/app:v1/running"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSimulation(tc.machines)
				mustDeploy(t, s, tc.spec)
				if tc.change != nil {
					tc.change(s)
				}
				stay := s.machine("m1").on()
				s.machine("m1").Drain, s.machine("m1").Unschedulable = true, "it is being deleted"
				s.invariants = append(s.invariants, neverMoreOnClosed(s))
				if tc.change == nil && tc.spec.Mode == "" {
					s.invariants = append(s.invariants, neverFewerThan("web", s.working("web"), (*simulation).working))
				}
				var plan deployment.Plan
				for i := range 5 {
					var err error
					if plan, err = deploy(t.Context(), s, tc.spec, tc.strategy); err != nil {
						t.Fatal(err)
					}
					if i == 0 && tc.plan != nil {
						if diff := cmp.Diff(tc.plan, containerLines(&plan)); diff != "" {
							t.Errorf("the plan (-want +got):\n%s", diff)
						}
					}
				}
				if !plan.Empty() {
					t.Errorf("there is still something to do: %s", plan.Format(nil))
				}
				if diff := cmp.Diff(tc.have, s.of("web")); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if got := strings.Join(plan.Undrained, "\n"); got != tc.undrained {
					t.Errorf("it says %q, want %q", got, tc.undrained)
				}
				if tc.undrained != "" && cmp.Diff(stay, s.machine("m1").on()) != "" {
					t.Errorf("the containers that stay are %q, were %q", s.machine("m1").on(), stay)
				}
				if len(s.violations) > 0 {
					t.Error(s.violations)
				}
			})
		})
	}
}

// copyOf is another container that is as one is.
func copyOf(s *simulation, c *simulatedContainer) *simulatedContainer {
	s.next++
	out := &simulatedContainer{Container: *c.DeepCopy(), started: c.started}
	out.ID, out.Name = fmt.Sprintf("c%d", s.next), c.Name+"-copy"
	return out
}

// containerLines returns the lines of a plan about containers, with numbers in the place of what is random in names.
func containerLines(plan *deployment.Plan) []string {
	names := map[string]string{}
	var lines []string
	for line := range strings.Lines(plan.Format(nil)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "service ") || line == "then" || strings.HasPrefix(line, "!") {
			continue
		}
		words := strings.Fields(line)
		for i, word := range words {
			if !strings.HasPrefix(word, "web-") {
				continue
			}
			bare := strings.TrimRight(word, ",:")
			if names[bare] == "" {
				names[bare] = fmt.Sprintf("web-%d", len(names)+1)
			}
			words[i] = names[bare] + word[len(bare):]
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}

func TestMachinesThatTakeNoNewContainersKeepTheirs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(2)
		mustDeploy(t, s, web("app:v1", 4))
		s.machine("m1").Unschedulable = "spec.unschedulable says so"
		plan, err := deploy(t.Context(), s, web("app:v1", 4), nil)
		if err != nil || !plan.Empty() || len(plan.Undrained) > 0 {
			t.Errorf("got %v, %v", plan.Format(nil), err)
		}
		// What has stopped is started where it is.
		s.machine("m1").containers[0].State = api.ContainerExited
		mustDeploy(t, s, web("app:v1", 4))
		want := []string{"m1/app:v1/running", "m1/app:v1/running", "m2/app:v1/running", "m2/app:v1/running"}
		if diff := cmp.Diff(want, s.of("web")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		// Another version is elsewhere.
		mustDeploy(t, s, web("app:v2", 4))
		want = []string{"m2/app:v2/running", "m2/app:v2/running", "m2/app:v2/running", "m2/app:v2/running"}
		if diff := cmp.Diff(want, s.of("web")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestGlobalServicesLeaveOutMachinesThatTakeNoNewContainers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(2)
		s.machine("m1").Unschedulable = "spec.unschedulable says so"
		mustDeploy(t, s, web("app:v1", 0, global))
		plan, err := deploy(t.Context(), s, web("app:v1", 0, global), nil)
		if err != nil || len(plan.Notes) > 0 {
			t.Errorf("got notes %q, %v", plan.Notes, err)
		}
		if diff := cmp.Diff([]string{"m2/app:v1/running"}, s.of("web")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestNothingElseIsMovedWhenAMachineIsDrained(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		machines := rapid.IntRange(1, 5).Draw(r, "machines")
		spec := web("app:v1", int32(rapid.IntRange(0, 8).Draw(r, "replicas")))
		sometimes := func(name string, f func(*api.ServiceSpec)) {
			if rapid.IntRange(0, 3).Draw(r, name) == 0 {
				f(&spec)
			}
		}
		sometimes("global", global)
		sometimes("data", data)
		sometimes("checked", checked)
		spec.Update.Parallelism = rapid.IntRange(0, 3).Draw(r, "parallelism")
		drained := rapid.IntRange(0, machines-1).Draw(r, "drained")
		drain := rapid.Bool().Draw(r, "drain")
		grown := spec.Clone()
		// Uneven, as it becomes when machines come.
		first := rapid.IntRange(1, machines).Draw(r, "first")
		var fault string
		bubble(t, func(t *testing.T) {
			s := newSimulation(first)
			mustDeploy(t, s, grown)
			s.machines = append(s.machines, newSimulation(machines).machines[first:]...)
			mustDeploy(t, s, spec)
			before := map[string][]string{}
			for _, m := range s.machines {
				before[m.Name] = m.on()
			}
			m := s.machines[drained]
			m.Unschedulable, m.Drain = "it is being deleted", drain
			mustDeploy(t, s, spec)
			plan, err := deploy(t.Context(), s, spec, nil)
			if err != nil {
				fault = err.Error()
				return
			}
			for _, other := range s.machines {
				if other != m || !drain || len(plan.Undrained) > 0 {
					if now := strings.Join(other.on(), " "); !strings.HasPrefix(now, strings.Join(before[other.Name], " ")) {
						fault += fmt.Sprintf("%s had %q, has %q; ", other.Name, before[other.Name], now)
					}
				}
			}
			if drain && len(m.containers) > 0 && len(plan.Undrained) == 0 {
				fault += fmt.Sprintf("%s has %q, and the plan does not say why", m.Name, m.on())
			}
		})
		if fault != "" {
			r.Fatal(fault)
		}
	})
}

// neverMoreOnClosed holds that no container is made on a machine that takes no new ones.
func neverMoreOnClosed(before *simulation) func(*simulation) string {
	known := map[string]bool{}
	for _, m := range before.machines {
		for _, c := range m.containers {
			known[c.ID] = true
		}
	}
	return func(s *simulation) string {
		for _, m := range s.machines {
			for _, c := range m.containers {
				if (m.Drain || m.Unschedulable != "") && !known[c.ID] {
					return fmt.Sprintf("%s was made on %s, which takes no new ones", c.Name, m.Name)
				}
			}
		}
		return ""
	}
}
