package deployment_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// failOn makes the first call that does something with an image's containers fail, whatever it is.
func failOn(s *simulation, call int, f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.faults = 0, map[int]fault{call: f}
}

func TestContainersThatCantBeSeenAreNotMadeAnew(t *testing.T) {
	for _, tc := range []struct {
		name      string
		forgotten bool
		spec      api.ServiceSpec
		note      string
	}{
		{"what was there is remembered", false, web("app:v1", 3), "last seen on m2, which can't be seen now"},
		{"nothing is remembered", true, web("app:v1", 3), "that may be on m2, which can't be seen"},
		{"another version, remembered", false, web("app:v2", 3), "last seen on m2"},
		{"another version, not remembered", true, web("app:v2", 3), "may be on m2"},
		{"global", true, web("app:v1", 0, global), "what is on m2, which can't be seen now"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSimulation(2)
				first := tc.spec.Clone()
				first.Container.Image = "app:v1"
				mustDeploy(t, s, first)
				there := len(s.of("web"))
				m2 := s.machine("m2")
				m2.unreachable, m2.forgotten = true, tc.forgotten
				for range 3 {
					plan, err := deploy(t.Context(), s, tc.spec, nil)
					if err != nil {
						t.Fatal(err)
					}
					if !strings.Contains(strings.Join(plan.Notes, "\n"), tc.note) {
						t.Errorf("the plan does not say what waits for m2: %q", plan.Notes)
					}
				}
				if now := s.of("web"); len(now) != there {
					t.Errorf("there were %d containers, and now %v", there, now)
				}
				m2.unreachable = false
				mustDeploy(t, s, tc.spec)
				for _, c := range s.of("web") {
					if !strings.Contains(c, tc.spec.Container.Image) {
						t.Errorf("%s was not brought up to date when m2 came back", c)
					}
				}
			})
		})
	}
}

func TestContainersOfAMachineThatIsGoneAreMadeAnew(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(2)
		mustDeploy(t, s, web("app:v1", 2))
		s.machine("m2").unreachable = true
		s.machine("m2").State = api.MachineGone
		mustDeploy(t, s, web("app:v1", 2))
		on := func(c string) bool { return strings.HasPrefix(c, "m1/") }
		if n := len(slices.DeleteFunc(s.of("web"), func(c string) bool { return !on(c) })); n != 2 {
			t.Errorf("%d containers are on m1, not 2", n)
		}
	})
}

func TestVolumesThatCantBeSeenAreNotMadeAnew(t *testing.T) {
	for _, forgotten := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			s := newSimulation(2)
			mustDeploy(t, s, web("app:v1", 1, data))
			for _, m := range s.machines {
				if len(m.volumes) > 0 {
					m.unreachable, m.forgotten = true, forgotten
					// What runs is gone, so that only the volume is in the way.
					m.containers = nil
				}
			}
			plan, err := deploy(t.Context(), s, web("app:v1", 1, data), nil)
			var u *scheduler.UnschedulableError
			if waits := err == nil && plan.Empty() && len(plan.Notes) > 0; !waits && !errors.As(err, &u) {
				t.Errorf("forgotten %v: got plan %v, error %v", forgotten, plan.String(), err)
			}
			if v := neverTwoCopiesOfAVolume(s); v != "" {
				t.Error(v)
			}
		})
	}
}

func TestTwoVersionsNeverShareTheVolumeOfASingleContainer(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, s *simulation){
		"one container": func(t *testing.T, s *simulation) { mustDeploy(t, s, web("app:v1", 1, data)) },
		"shrinking":     func(t *testing.T, s *simulation) { mustDeploy(t, s, web("app:v1", 3, data)) },
		"moving": func(t *testing.T, s *simulation) {
			mustDeploy(t, s, web("app:v1", 1, data))
			for _, m := range s.machines {
				if len(m.volumes) > 0 {
					m.Labels = map[string]string{"disk": "full"}
				} else {
					// Storage that both machines see.
					m.volumes = []api.Volume{{Name: "data", Driver: "local"}}
					m.Labels = map[string]string{"disk": "free"}
				}
			}
		},
		"a stopped sibling": func(t *testing.T, s *simulation) {
			mustDeploy(t, s, web("app:v1", 2, data))
			for _, m := range s.machines {
				if len(m.containers) > 0 {
					m.containers[0].State = api.ContainerExited
				}
			}
		},
	} {
		for call := range 40 {
			bubble(t, func(t *testing.T) {
				s := newSimulation(2)
				prepare(t, s)
				next := web("app:v2", 1, data)
				if name == "moving" {
					next.Placement.Labels = map[string]string{"disk": "free"}
				}
				s.invariants = []func(*simulation) string{neverTwoVersionsOfAVolume("web", false)}
				failOn(s, call, lost)
				_, _ = deploy(t.Context(), s, next, nil)
				s.restart()
				mustDeploy(t, s, next)
				if len(s.violations) > 0 {
					t.Errorf("%s, call %d fails: %s", name, call, strings.Join(s.violations, "; "))
				}
				if have := s.of("web"); len(have) != 1 || !strings.Contains(have[0], "app:v2") {
					t.Errorf("%s, call %d fails: there is %v", name, call, have)
				}
			})
		}
	}
}

func TestStopFirstPutsTheOldContainerBackWhateverFails(t *testing.T) {
	for _, image := range []string{"bad:v2", "absent:v2"} {
		bubble(t, func(t *testing.T) {
			s := newSimulation(1)
			mustDeploy(t, s, web("app:v1", 1, port80))
			if _, err := deploy(t.Context(), s, web(image, 1, port80), nil); err == nil {
				t.Fatal("a version that does not work was deployed")
			}
			if diff := cmp.Diff([]string{"m1/app:v1/running"}, s.of("web")); diff != "" {
				t.Errorf("%s: the old container is not back (-want +got):\n%s", image, diff)
			}
			if i := slices.IndexFunc(s.log, func(l string) bool { return strings.HasPrefix(l, "stop") }); image == "absent:v2" && i >= 0 {
				t.Errorf("the old container was stopped before the image was there: %v", s.log)
			}
		})
	}
	for _, f := range []fault{lost, unanswered} {
		for call := 1; call < 25; call++ {
			bubble(t, func(t *testing.T) {
				s := newSimulation(1)
				mustDeploy(t, s, web("app:v1", 1, port80))
				failOn(s, call, f)
				_, err := deploy(t.Context(), s, web("app:v2", 1, port80), nil)
				have := s.of("web")
				// The new one is there when only taking away the old one failed.
				running := slices.ContainsFunc(have, func(c string) bool { return strings.HasSuffix(c, "/running") })
				if !running {
					t.Errorf("nothing runs after call %d failed (%v): %v", call, err, have)
				}
			})
		}
	}
}

func TestCleaningUpOutlivesTheContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(1)
		mustDeploy(t, s, web("app:v1", 1, port80))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		// Without a health check it is watched for five seconds: the context ends while the old container is stopped.
		if _, err := deploy(ctx, s, web("app:v2", 1, port80), nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"m1/app:v1/running"}, s.of("web")); diff != "" {
			t.Errorf("what was under way was not undone (-want +got):\n%s", diff)
		}
		mustDeploy(t, s, web("app:v2", 1, port80))
	})
}

func TestAPlanThatIsEndedWhileAContainerStopsLosesNone(t *testing.T) {
	for name, change := range map[string]func(*api.ServiceSpec){"start-first": checked, "stop-first": port80} {
		for cut := time.Second; cut < 20*time.Second; cut += time.Second {
			bubble(t, func(t *testing.T) {
				s, reach := drained(t, name, change)
				ctx, cancel := context.WithTimeout(t.Context(), cut)
				defer cancel()
				_, err := deploy(ctx, s, web("app:v2", 1, change), nil)
				wantRunning(t, s, fmt.Sprintf("%s, the context ends after %s (%v)", name, cut, err))
				mustDeploy(t, s, reach)
				wantRunning(t, s, fmt.Sprintf("%s, the context ends after %s, and the next plan has ended", name, cut))
			})
		}
	}
}

func TestAStopThatTakesLongerThanItShouldIsWaitedFor(t *testing.T) {
	for name, change := range map[string]func(*api.ServiceSpec){"start-first": checked, "stop-first": port80} {
		bubble(t, func(t *testing.T) {
			s, _ := drained(t, name, change)
			s.drain = 10 * time.Minute
			mustDeploy(t, s, web("app:v2", 1, change))
			wantRunning(t, s, name)
		})
	}
}

func TestAContainerWhoseStopIsNotAnsweredIsNotTakenForOneThatWorks(t *testing.T) {
	for name, change := range map[string]func(*api.ServiceSpec){"start-first": checked, "stop-first": port80} {
		for call := 1; call < 25; call++ {
			for _, f := range []fault{lost, unanswered} {
				bubble(t, func(t *testing.T) {
					s, _ := drained(t, name, change)
					failOn(s, call, f)
					_, err := deploy(t.Context(), s, web("app:v2", 1, change), nil)
					wantRunning(t, s, fmt.Sprintf("%s, call %d fails (%v)", name, call, err))
				})
			}
		}
	}
}

// drained has a service whose containers take ten seconds to stop. Start-first, one of them works at any time. It returns the specification,
// too.
func drained(t *testing.T, order string, change func(*api.ServiceSpec)) (*simulation, api.ServiceSpec) {
	t.Helper()
	s, spec := newSimulation(1), web("app:v1", 1, change)
	mustDeploy(t, s, spec)
	s.drain = 10 * time.Second
	if order == "start-first" {
		s.invariants = []func(*simulation) string{neverFewerThan("web", 1, (*simulation).working)}
	}
	return s, spec
}

// wantRunning wants something of the service web to run once all has stopped that is about to.
func wantRunning(t *testing.T, s *simulation, when string) {
	t.Helper()
	time.Sleep(s.drain)
	s.look()
	if len(s.violations) > 0 || s.working("web") == 0 {
		t.Errorf("%s: there is %v; %s", when, s.of("web"), strings.Join(s.violations, "; "))
	}
}

func TestWhatChangesInPlaceIsChangedInPlace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(1)
		limit := func(memory string) func(*api.ServiceSpec) {
			return func(s *api.ServiceSpec) { s.Container.Resources.Memory = quantity(memory) }
		}
		mustDeploy(t, s, web("app:v1", 2, limit("256Mi")))
		before := s.machine("m1").containers[0].ID
		mustDeploy(t, s, web("app:v1", 2, limit("512Mi")))
		for _, c := range s.machine("m1").containers {
			if c.Spec.Container.Resources.Memory.String() != "512Mi" {
				t.Errorf("%s has %s", c.ID, c.Spec.Container.Resources.Memory)
			}
		}
		if after := s.machine("m1").containers[0].ID; after != before {
			t.Errorf("container %s was replaced by %s", before, after)
		}
		// Engines can't take it off again.
		mustDeploy(t, s, web("app:v1", 2))
		if after := s.machine("m1").containers[0]; after.ID == before || after.Spec.Container.Resources.Memory != nil {
			t.Errorf("the limit was not taken off: %v", after.Spec.Container.Resources.Memory)
		}
	})
}

func TestAnUpdateInPlaceIsUndone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(1)
		mustDeploy(t, s, web("app:v1", 1))
		// One more container can't be made, for want of its ports, so that the plan fails after the update.
		next := web("app:v1", 2, rollback)
		next.Container.Resources.Memory = quantity("512Mi")
		failing := &failing{simulation: s, create: 1}
		if _, err := deployment.NewDeployment(failing, next, nil).Run(t.Context()); !errors.Is(err, deployment.ErrRolledBack) {
			t.Fatalf("got %v", err)
		}
		c := s.machine("m1").containers
		if len(c) != 1 || c[0].Spec.Container.Resources.Memory != nil || c[0].State != api.ContainerRunning {
			t.Errorf("there is %v with %v", s.of("web"), c[0].Spec.Container.Resources.Memory)
		}
	})
}

// failing fails to create a number of containers.
type failing struct {
	*simulation
	create int
}

func (f *failing) CreateContainer(ctx context.Context, machineID string, options api.CreateContainerOptions) (string, error) {
	if f.create > 0 {
		f.create--
		return "", errLost
	}
	return f.simulation.CreateContainer(ctx, machineID, options)
}

func TestContainersThatNeverWorkedAreNotUpToDate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(1)
		mustDeploy(t, s, web("app:v1", 1, checked))
		c := s.machine("m1").containers[0]
		c.State, c.Health, c.started = api.ContainerRunning, api.HealthStarting, time.Now()
		plan, err := deployment.NewDeployment(s, web("app:v1", 1, checked), nil).Plan(t.Context())
		if err != nil || !strings.Contains(plan.Format(nil), "wait for container") {
			t.Errorf("a container that starts is not waited for: %v, %v", plan.Format(nil), err)
		}
		time.Sleep(healthAfter)
		c.Spec.Container.Image = "bad:v1"
		plan, err = deployment.NewDeployment(s, web("bad:v1", 1, checked), nil).Plan(t.Context())
		if err != nil || !strings.Contains(plan.Format(nil), "it does not work (unhealthy)") {
			t.Errorf("an unhealthy container is not replaced: %v, %v", plan.Format(nil), err)
		}
	})
}

func TestWhatIsGoneAlreadyIsNoError(t *testing.T) {
	s := newSimulation(1)
	ref := deployment.ContainerRef{ID: "c9", Name: "web-9", MachineID: "id-m1"}
	for _, op := range []deployment.Operation{
		&deployment.StopContainerOperation{MachineID: "id-m1", Container: ref},
		&deployment.RemoveContainerOperation{MachineID: "id-m1", Container: ref},
	} {
		if err := op.Execute(t.Context(), s); err != nil {
			t.Errorf("%s: %v", op, err)
		}
	}
	bubble(t, func(t *testing.T) {
		s.machine("m1").images = []api.Image{{Tags: []string{"app:v2"}}}
		replace := &deployment.ReplaceContainerOperation{
			New: deployment.RunContainerOperation{Spec: web("app:v2", 1), MachineID: "id-m1", ContainerName: "web-10"},
			Old: []deployment.OldContainer{{ContainerRef: ref, Restore: true}}, Order: api.OrderStopFirst,
		}
		if err := replace.Execute(t.Context(), s); err != nil {
			t.Error(err)
		}
	})
}

func TestRollbackUndoesTheWholePlan(t *testing.T) {
	for _, change := range []func(*api.ServiceSpec){func(*api.ServiceSpec) {}, port80} {
		bubble(t, func(t *testing.T) {
			s := newSimulation(3)
			mustDeploy(t, s, web("app:v1", 3, change))
			before := s.of("web")
			next := web("app:v2", 3, change, rollback)
			d := deployment.NewDeployment(&failing2{simulation: s, after: 2}, next, nil)
			_, err := d.Run(t.Context())
			if !errors.Is(err, deployment.ErrRolledBack) || !errors.Is(err, errLost) {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(before, s.of("web")); diff != "" {
				t.Errorf("not everything was undone (-before +after):\n%s", diff)
			}
			mustDeploy(t, s, next)
		})
	}
}

// failing2 fails to create containers after a number of them.
type failing2 struct {
	*simulation
	after int
}

func (f *failing2) CreateContainer(ctx context.Context, machineID string, options api.CreateContainerOptions) (string, error) {
	if f.after == 0 {
		return "", errLost
	}
	f.after--
	return f.simulation.CreateContainer(ctx, machineID, options)
}

func TestFailurePolicies(t *testing.T) {
	for _, tc := range []struct {
		action  api.FailureAction
		percent int
		want    error
		updated int
	}{
		{"", 0, deployment.ErrPaused, 1},
		{api.FailurePause, 0, deployment.ErrPaused, 1},
		{api.FailurePause, 34, nil, 2},
		{api.FailureContinue, 0, nil, 2},
		{api.FailureRollback, 0, deployment.ErrRolledBack, 0},
	} {
		t.Run(fmt.Sprint(tc.action, tc.percent), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSimulation(3)
				mustDeploy(t, s, web("app:v1", 3))
				next := web("app:v2", 3)
				next.Update.FailureAction, next.Update.MaxFailurePercent = tc.action, tc.percent
				f := &second{simulation: s}
				_, err := deployment.NewDeployment(f, next, nil).Run(t.Context())
				var partial *deployment.PartialError
				if tc.want == nil && !errors.As(err, &partial) || tc.want != nil && !errors.Is(err, tc.want) {
					t.Errorf("got %v", err)
				}
				updated := 0
				for _, c := range s.of("web") {
					if strings.Contains(c, "app:v2") {
						updated++
					}
				}
				if updated != tc.updated || len(s.of("web")) != 3 {
					t.Errorf("%v; %d were to be updated", s.of("web"), tc.updated)
				}
			})
		})
	}
}

// second fails to create the second container.
type second struct {
	*simulation
	created int
}

func (f *second) CreateContainer(ctx context.Context, machineID string, options api.CreateContainerOptions) (string, error) {
	if f.created++; f.created == 2 {
		return "", errLost
	}
	return f.simulation.CreateContainer(ctx, machineID, options)
}

func TestAnUnchangedSpecificationMovesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(1)
		mustDeploy(t, s, web("app:v1", 4))
		s.machines = append(s.machines, newSimulation(3).machines[1:]...)
		plan, err := deployment.NewDeployment(s, web("app:v1", 4), nil).Plan(t.Context())
		if err != nil || !plan.Empty() {
			t.Errorf("got %v, %v", plan.Format(nil), err)
		}
		// Another version is spread anew.
		mustDeploy(t, s, web("app:v2", 4))
		if n := len(s.machine("m1").containers); n != 2 {
			t.Errorf("%d containers are on m1: %v", n, s.of("web"))
		}
	})
}

func TestOldContainersStopInTheirOwnTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		grace := func(d time.Duration) func(*api.ServiceSpec) {
			return func(s *api.ServiceSpec) { s.Container.StopGracePeriod = &metav1.Duration{Duration: d} }
		}
		s := newSimulation(1)
		mustDeploy(t, s, web("app:v1", 2, grace(77*time.Second)))
		mustDeploy(t, s, web("app:v2", 1, grace(3*time.Second)))
		for _, l := range s.log {
			if strings.HasPrefix(l, "stop") && !strings.HasPrefix(l, "stop (1m17s)") {
				t.Errorf("%s: not with the old container's grace period", l)
			}
		}
	})
}

func TestUnknownPlacementMachinesAreAnError(t *testing.T) {
	spec := web("app:v1", 1)
	spec.Placement.Machines = []string{"m1", "m7", "m8"}
	_, err := deployment.NewDeployment(newSimulation(2), spec, nil).Plan(t.Context())
	var placement *scheduler.PlacementError
	if !errors.As(err, &placement) || cmp.Diff([]string{"m7", "m8"}, placement.Machines) != "" {
		t.Errorf("got %v", err)
	}
}
