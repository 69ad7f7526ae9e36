package deployment_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// agent is a global service with the volume data.
func agent() api.ServiceSpec {
	return web("agent:v1", 0, global, data, func(s *api.ServiceSpec) { s.Name = "agent" })
}

// copies are the machines that have the volume data.
func (s *simulation) copies() []string {
	var on []string
	for _, m := range s.machines {
		if slices.ContainsFunc(m.volumes, func(v api.Volume) bool { return v.Name == "data" }) {
			on = append(on, m.Name)
		}
	}
	return on
}

func TestAPlanSaysWhereAVolumeIsNewAndEmptyAlthoughThereIsOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(3)
		mustDeploy(t, s, web("app:v1", 1, data))
		plan, err := deployment.NewDeployment(s, web("app:v1", 0, global, data), nil).Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		had := s.copies()[0]
		for _, m := range []string{"m1", "m2", "m3"} {
			note := fmt.Sprintf("volume data is new and empty on %s: the data of the one on %s are not there", m, had)
			if slices.Contains(plan.Notes, note) != (m != had) {
				t.Errorf("the data are on %s, and the notes are %q", had, plan.Notes)
			}
		}
		// It is over when the volumes are there.
		mustDeploy(t, s, web("app:v1", 0, global, data))
		if plan, err = deployment.NewDeployment(s, web("app:v1", 0, global, data), nil).Plan(t.Context()); err != nil || len(plan.Notes) > 0 {
			t.Errorf("%v, %q", err, plan.Notes)
		}
	})
}

func TestAVolumeThatAGlobalServiceSharesWithAnotherOneIsMadeOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(3)
		mustDeploy(t, s, web("app:v1", 1, data))
		mustDeploy(t, s, agent())
		if len(s.copies()) != 1 || len(s.of("agent")) != 1 || s.of("agent")[0][:2] != s.copies()[0] {
			t.Errorf("the volume is on %v, agent is %v", s.copies(), s.of("agent"))
		}
		mustDeploy(t, s, agent())
	})
}

func TestAServiceKeepsToItsVolumeWhateverElseHasItsName(t *testing.T) {
	for name, change := range map[string]func(s *simulation, spec *api.ServiceSpec){
		"more replicas": func(_ *simulation, spec *api.ServiceSpec) { *spec.Replicas = 3 },
		"drained":       func(s *simulation, _ *api.ServiceSpec) { s.machine(s.copies()[0]).Drain = true },
		"another version": func(s *simulation, spec *api.ServiceSpec) {
			spec.Container.Image = "app:v2"
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSimulation(3)
				spec := web("app:v1", 1, data)
				mustDeploy(t, s, spec)
				home := s.copies()[0]
				change(s, &spec)
				for _, m := range s.machines {
					if m.Name != home {
						m.volumes = []api.Volume{{Name: "data", Driver: api.DefaultVolumeDriver}}
					}
				}
				mustDeploy(t, s, spec)
				for _, c := range s.of("web") {
					if !strings.HasPrefix(c, home+"/") {
						t.Errorf("its volume is on %s, and there is %s", home, c)
					}
				}
			})
		})
	}
}

func TestAnErrorAboutAVolumeNamesTheServiceThatPlansIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(2)
		own := api.OwnershipOf(t.Context())
		taking := scheduler.Taking{}
		taking.Add("id-m1", nil, api.Volume{Name: "data", Driver: api.DefaultVolumeDriver, Owner: own.Owner("db")})
		plan, err := deployment.NewDeployment(s, web("app:v1", 1, data, func(s *api.ServiceSpec) { s.Placement.Machines = []string{"m2"} }), nil).Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held, _ := s.Reservations().Hold(taking, own)
		defer held.Release()
		if err := plan.Run(t.Context(), s); err == nil || !strings.Contains(err.Error(), "volume data is about to be made on machine id-m1 by service db") {
			t.Errorf("the plan is refused with %v", err)
		}
		_, err = deployment.NewDeployment(s, web("app:v1", 1, data, func(s *api.ServiceSpec) { s.Placement.Machines = []string{"m2"} }), nil).Plan(t.Context())
		if err == nil || !strings.Contains(err.Error(), "m2: volume data is about to be made on m1 by service db") {
			t.Errorf("there is no place: %v", err)
		}
	})
}

func TestAPlanSaysThatAVolumeIsAnotherOneWhereThePlacementMovesTheService(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(2)
		mustDeploy(t, s, web("app:v1", 1, data))
		had := s.copies()[0]
		var other string
		for _, m := range s.machines {
			if m.Name != had {
				m.volumes, other = []api.Volume{{Name: "data", Driver: api.DefaultVolumeDriver}}, m.Name
			}
		}
		plan, err := deploy(t.Context(), s, web("app:v1", 1, data, func(s *api.ServiceSpec) { s.Placement.Machines = []string{other} }), nil)
		want := "volume data on " + other + " has other data than the one on " + had + ", unless both machines see one storage"
		if err != nil || !slices.Contains(plan.Notes, want) {
			t.Errorf("%v, %q", err, plan.Notes)
		}
	})
}

func TestAPlanSaysWhatTheEngineIgnores(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(2)
		s.machine("m2").Ignored = map[string]string{"container.healthCheck.startInterval": "it is too old"}
		spec := web("app:v1", 2, checked)
		for _, want := range []int{0, 1} {
			plan, err := deployment.NewDeployment(s, spec, nil).Plan(t.Context())
			if err != nil || len(plan.Notes) != want || want == 1 && plan.Notes[0] != "container.healthCheck.startInterval is ignored on m2: it is too old" {
				t.Errorf("%v, %q", err, plan.Notes)
			}
			spec.Container.HealthCheck.StartInterval.Duration = time.Second
		}
	})
}
