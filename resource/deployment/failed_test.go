package deployment_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// kept returns the containers that are kept for their logs, as image/state.
func (s *simulation) kept() []string {
	var out []string
	for _, m := range s.machines {
		for _, c := range m.containers {
			if c.Failed() {
				out = append(out, c.Spec.Container.Image+"/"+string(c.State))
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestWhatDoesNotWorkIsKeptStoppedForItsLogUntilTheNextAttempt(t *testing.T) {
	for name, update := range map[string]api.UpdateConfig{
		"paused":      {Parallelism: 1, FailureAction: api.FailurePause},
		"rolled back": {Parallelism: 1, FailureAction: api.FailureRollback},
		"stop-first":  {Parallelism: 1, Order: api.OrderStopFirst, FailureAction: api.FailureRollback},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSimulation(2)
				with := func(spec *api.ServiceSpec) {
					spec.Update = update
					spec.Update.Monitor = &metav1.Duration{Duration: 5 * time.Second}
				}
				mustDeploy(t, s, web("app:v1", 2, with))
				before := s.of("web")
				for range 2 {
					if _, err := deploy(t.Context(), s, web("bad:v2", 2, with), nil); !errors.Is(err, api.ErrUnhealthy) {
						t.Fatalf("got %v", err)
					}
					if diff := cmp.Diff([]string{"bad:v2/exited"}, s.kept()); diff != "" {
						t.Errorf("kept (-want +got):\n%s", diff)
					}
				}
				if diff := cmp.Diff(before, s.of("web")); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				mustDeploy(t, s, web("app:v1", 2, with))
				if kept := s.kept(); len(kept) > 0 {
					t.Errorf("kept: %v", kept)
				}
			})
		})
	}
}

func TestWhatIsCutOffIsNotKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(1)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := deploy(ctx, s, web("app:v1", 1, checked), nil); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		if n := len(s.machine("m1").containers); n != 0 {
			t.Errorf("there are %d containers", n)
		}
	})
}

func TestAServiceChangesItsMode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(3)
		mustDeploy(t, s, web("app:v1", 0, data, global))
		mustDeploy(t, s, web("app:v1", 2, data))
		if now := s.of("web"); len(now) != 2 {
			t.Errorf("replicated: %v", now)
		}
		mustDeploy(t, s, web("app:v1", 0, data, global))
		if diff := cmp.Diff([]string{"m1/app:v1/running", "m2/app:v1/running", "m3/app:v1/running"}, s.of("web")); diff != "" {
			t.Errorf("global (-want +got):\n%s", diff)
		}
	})
}

func TestAServiceDoesNotChangeItsName(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(1)
		mustDeploy(t, s, web("app:v1", 1))
		service, err := s.InspectService(t.Context(), "web")
		if err != nil {
			t.Fatal(err)
		}
		spec := web("app:v1", 1)
		spec.Name = "site"
		d := deployment.NewDeployment(s, spec, nil)
		d.Service = &service
		if _, err := d.Plan(t.Context()); err == nil || !strings.Contains(err.Error(), "service web can't be called site") {
			t.Errorf("got %v", err)
		}
	})
}

func TestAContainerThatIsBeingRemovedIsNotCounted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(1)
		mustDeploy(t, s, web("app:v1", 1))
		s.machine("m1").containers[0].State = api.ContainerRemoving
		mustDeploy(t, s, web("app:v1", 1))
		if diff := cmp.Diff([]string{"m1/app:v1/running"}, s.of("web")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestAVolumeWithOtherOptionsIsAnotherOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(1)
		mounted := func(options map[string]string) api.ServiceSpec {
			return web("app:v1", 1, data, func(spec *api.ServiceSpec) { spec.Volumes[0].Driver = &api.VolumeDriver{Options: options} })
		}
		mustDeploy(t, s, mounted(map[string]string{"o": "password=first"}))
		_, err := deploy(t.Context(), s, mounted(map[string]string{"o": "password=second"}), nil)
		var nowhere *scheduler.UnschedulableError
		if !errors.As(err, &nowhere) || !strings.Contains(err.Error(), "other options of driver local") || strings.Contains(err.Error(), "password") {
			t.Errorf("got %v", err)
		}
		mustDeploy(t, s, mounted(map[string]string{"o": "password=first"}))
	})
}

func TestMachinesOfAnotherPlatformAreLeftOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(2)
		s.machines[0].Platform, s.machines[1].Platform = "linux/amd64", "linux/arm64"
		mustDeploy(t, s, web("app:v1", 2, func(spec *api.ServiceSpec) { spec.Placement.Platform = "linux/arm64" }))
		if diff := cmp.Diff([]string{"m2/app:v1/running", "m2/app:v1/running"}, s.of("web")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		_, err := deploy(t.Context(), s, web("app:v1", 2, func(spec *api.ServiceSpec) { spec.Placement.Platform = "linux/riscv64" }), nil)
		if err == nil || !strings.Contains(err.Error(), "its platform is linux/amd64, not linux/riscv64") {
			t.Errorf("got %v", err)
		}
	})
}

func TestMachinesWithoutAnAddressInTheRangeOfAPortAreLeftOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(2)
		s.machines[0].Addresses, s.machines[1].Addresses = []string{"192.0.2.1"}, []string{"192.0.2.2", "10.0.0.2"}
		ranged := func(addresses string) api.ServiceSpec {
			return web("app:v1", 1, func(spec *api.ServiceSpec) {
				spec.Ports = []api.PortSpec{{Mode: api.PortModeHost, HostIP: addresses, PublishedPort: 80, ContainerPort: 80}}
			})
		}
		mustDeploy(t, s, ranged("10.0.0.0/8"))
		if diff := cmp.Diff([]string{"m2/app:v1/running"}, s.of("web")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if _, err := deploy(t.Context(), s, ranged("172.16.0.0/12"), nil); err == nil || !strings.Contains(err.Error(), "it has no address in 172.16.0.0/12") {
			t.Errorf("got %v", err)
		}
	})
}

func TestASecondUnnamedServiceOfAnImageIsAnotherOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(1)
		unnamed := func() api.ServiceSpec {
			spec := web("app:v1", 1)
			spec.Name = ""
			return spec
		}
		names := map[string]bool{}
		for range 2 {
			plan, err := deploy(t.Context(), s, unnamed(), nil)
			if err != nil {
				t.Fatal(err)
			}
			names[plan.ServiceName] = true
		}
		if n := len(s.machine("m1").containers); n != 2 || len(names) != 2 {
			t.Errorf("there are %d containers of %v", n, names)
		}
		s.machine("m1").unreachable, s.machine("m1").forgotten = true, true
		if _, err := deploy(t.Context(), s, unnamed(), nil); err == nil || !strings.Contains(err.Error(), "give the service of image app:v1 a name") {
			t.Errorf("got %v", err)
		}
	})
}
