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

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// job is a job with a command: one that begins with "end" ends with 0 after a while, "fail" with 1, and "hang" does not.
func job(command string, change ...func(*api.ServiceSpec)) api.ServiceSpec {
	spec := api.ServiceSpec{Name: "job", Mode: api.ServiceModeJob, Container: api.ContainerSpec{Image: "app:v1", Command: []string{command}}}
	for _, f := range change {
		f(&spec)
	}
	return spec
}

// completed makes a plan that has nothing to do because the job has completed.
func wantCompleted(t *testing.T, s *simulation, spec api.ServiceSpec) {
	t.Helper()
	plan, err := deployment.NewDeployment(s, spec, nil).Plan(t.Context())
	if err != nil || !plan.Empty() || !plan.Completed {
		t.Errorf("completed %v, error %v, plan:\n%s", plan.Completed, err, plan.Format(nil))
	}
}

func TestAJobRunsToItsEndOnceForEachSpecification(t *testing.T) {
	for name, strategy := range map[string]deployment.Strategy{
		"rolling": nil, "blue-green": &deployment.BlueGreenStrategy{Hold: time.Minute}, "canary": &deployment.CanaryStrategy{},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSimulation(2)
				for i, spec := range []api.ServiceSpec{job("end"), job("end"), job("end 2"), job("end 2", data)} {
					before, err := deployment.NewDeployment(s, spec, strategy).Plan(t.Context())
					if err != nil || before.Completed != (i == 1) {
						t.Fatalf("specification %d: completed %v, error %v", i, before.Completed, err)
					}
					if _, err := deploy(t.Context(), s, spec, strategy); err != nil {
						t.Fatal(err)
					}
					wantCompleted(t, s, spec)
				}
				if s.runs["end"] != 1 || s.runs["end 2"] != 2 {
					t.Errorf("there were the runs %v", s.runs)
				}
				if now := s.of("job"); len(now) != 1 || !strings.HasSuffix(now[0], "/app:v1/exited") {
					t.Errorf("there are %v", now)
				}
			})
		})
	}
}

func TestWhatDoesNotConcernItsContainerRunsNoJobAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(2)
		spec := job("end")
		mustDeploy(t, s, spec)
		on := s.of("job")[0][:2]
		for name, change := range map[string]func(*api.ServiceSpec){
			"a limit":          func(s *api.ServiceSpec) { s.Container.Resources.CPU = quantity("1") },
			"a restart policy": func(s *api.ServiceSpec) { s.Container.RestartPolicy.Name = api.RestartOnFailure },
			"another machine": func(s *api.ServiceSpec) {
				s.Placement.Machines = []string{map[string]string{"m1": "m2", "m2": "m1"}[on]}
			},
			"a defaulted field": func(s *api.ServiceSpec) { s.Container.RestartPolicy.Name = api.RestartNo },
		} {
			t.Log(name)
			wantCompleted(t, s, job("end", change))
		}
		if s.runs["end"] != 1 {
			t.Errorf("it ran %d times", s.runs["end"])
		}
	})
}

func TestAJobRunsOnceWhateverCrashes(t *testing.T) {
	for _, f := range []fault{lost, unanswered, killed, killedAfter, partition} {
		for _, command := range []string{"end", "fail"} {
			for call := 1; ; call++ {
				calls := 0
				t.Run(fmt.Sprintf("%s, fault %d at %d", command, f, call), func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						s := newSimulation(2)
						spec := job(command, data)
						failOn(s, call, f)
						_, _ = deploy(t.Context(), s, spec, nil)
						calls = s.calls
						s.restart()
						var failed *deployment.JobError
						for range 10 {
							plan, err := deploy(t.Context(), s, spec, nil)
							if errors.As(err, &failed) || err == nil && plan.Completed {
								break
							}
						}
						if (failed != nil) != (command == "fail") {
							t.Errorf("its failure is %v", failed)
						}
						if s.runs[command] != 1 {
							t.Errorf("it ran %d times: %v", s.runs[command], s.log)
						}
					})
				})
				if calls < call {
					break
				}
			}
		}
	}
}

func TestAJobThatFailsIsRunAgainInAnotherAttemptOnly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(1)
		for i, tc := range []struct {
			attempt string
			spec    api.ServiceSpec
			runs    int
		}{
			{"", job("fail"), 1}, {"", job("fail"), 1}, {"again", job("fail"), 2}, {"again", job("fail"), 2},
			{"again", job("fail", func(s *api.ServiceSpec) { s.Container.Resources.Memory = quantity("1Gi") }), 3},
		} {
			d := deployment.NewDeployment(s, tc.spec, nil)
			d.Attempt = tc.attempt
			_, err := d.Run(t.Context())
			var failed *deployment.JobError
			if !errors.As(err, &failed) || failed.ExitCode != 1 || !strings.Contains(err.Error(), "last line of app:v1") {
				t.Errorf("%d: the error is %v", i, err)
			}
			if s.runs["fail"] != tc.runs {
				t.Errorf("%d: it ran %d times, not %d", i, s.runs["fail"], tc.runs)
			}
		}
		if c := s.machines[0].containers; len(c) != 1 || !c[0].Failed() || c[0].Attempt != "again" {
			t.Errorf("the containers are %v", c)
		}
		// One that has completed is not run again for that.
		done := job("end")
		mustDeploy(t, s, done)
		d := deployment.NewDeployment(s, done, nil)
		d.Attempt = "once more"
		if plan, err := d.Plan(t.Context()); err != nil || !plan.Completed || !plan.Empty() {
			t.Errorf("got %v, %v", plan.Format(nil), err)
		}
	})
}

func TestAJobGoesOnWhenItsPlanIsCutOffAndIsWaitedForLater(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(1)
		spec := job("end")
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := deploy(ctx, s, spec, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if got := s.of("job"); len(got) != 1 || got[0] != "m1/app:v1/running" {
			t.Fatalf("there is %v", got)
		}
		plan, err := deploy(t.Context(), s, spec, nil)
		if err != nil || s.runs["end"] != 1 || !strings.Contains(plan.Format(nil), "> wait for the job of container job-") {
			t.Errorf("%d runs, %v, plan %s", s.runs["end"], err, plan.Format(nil))
		}
		wantCompleted(t, s, spec)
	})
}

func TestAnEarlierJobHasEndedBeforeTheNextOneStarts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(2)
		s.drain = 3 * time.Second
		s.invariants = append(s.invariants, func(s *simulation) string {
			running := 0
			for _, m := range s.machines {
				running += len(slices.DeleteFunc(slices.Clone(m.containers), func(c *simulatedContainer) bool { return !c.Active() }))
			}
			if running > 1 {
				return "two jobs run"
			}
			return ""
		})
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, _ = deploy(ctx, s, job("hang"), nil)
		mustDeploy(t, s, job("end"))
		if len(s.violations) > 0 || s.runs["end"] != 1 {
			t.Errorf("%v, runs %v", s.violations, s.runs)
		}
	})
}

func TestAJobThatWasEndedForAnotherOneHasNotCompleted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(1)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		first := job("end")
		_, _ = deploy(ctx, s, first, nil)
		// The one that replaces it is cut off after it was stopped, which it answers with 0, and the first one is asked for again.
		failOn(s, 100, lost)
		for call := 1; !slices.ContainsFunc(s.log, func(l string) bool { return strings.HasPrefix(l, "stop ") }); call++ {
			s.restart()
			failOn(s, call, killedAfter)
			_, _ = deploy(t.Context(), s, job("hang"), nil)
		}
		s.restart()
		plan, err := deployment.NewDeployment(s, first, nil).Plan(t.Context())
		if err != nil || plan.Completed || plan.Empty() {
			t.Errorf("completed %v, %v, after %v", plan.Completed, err, s.log)
		}
	})
}

func TestACompletedJobIsNotRunAgainBecauseItsMachineIsAway(t *testing.T) {
	for name, tc := range map[string]struct {
		lose     func(m *simulatedMachine)
		recorded bool
		want     string
	}{
		"it can't be seen":                  {lose: func(m *simulatedMachine) { m.unreachable = true }, want: "completed"},
		"nothing is known of it":            {lose: func(m *simulatedMachine) { m.unreachable, m.forgotten = true, true }, want: "not run: it may run, or have run, on"},
		"nothing but that it has completed": {lose: func(m *simulatedMachine) { m.unreachable, m.forgotten = true, true }, recorded: true, want: "completed"},
		"gone for good":                     {lose: func(m *simulatedMachine) { m.State = api.MachineGone }, recorded: true, want: "completed"},
		"gone, and nothing is recorded":     {lose: func(m *simulatedMachine) { m.State = api.MachineGone }, want: "> run the job"},
		"pruned":                            {lose: func(m *simulatedMachine) { m.containers = nil }, recorded: true, want: "completed"},
		"drained":                           {lose: func(m *simulatedMachine) { m.Drain = true }, want: "completed"},
		"drained, and it is recorded":       {lose: func(m *simulatedMachine) { m.Drain = true }, recorded: true, want: "- remove container"},
		"no longer allowed":                 {lose: func(m *simulatedMachine) { m.Name = "another" }, recorded: true, want: "completed"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSimulation(2)
				spec := job("end", func(s *api.ServiceSpec) { s.Placement.Machines = []string{"m1"} })
				mustDeploy(t, s, spec)
				tc.lose(s.machines[0])
				spec.Placement.Machines = append(spec.Placement.Machines, "m2")
				d := deployment.NewDeployment(s, spec, nil)
				d.Completed = tc.recorded
				plan, err := d.Plan(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				text := plan.Format(nil)
				if plan.Completed && plan.Empty() {
					text = "completed"
				}
				if !strings.Contains(text, tc.want) {
					t.Errorf("want %q, got:\n%s", tc.want, text)
				}
			})
		})
	}
}

func TestAJobWaitsForAMachineThatHasPlace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(1)
		_, err := deploy(t.Context(), s, job("end", func(s *api.ServiceSpec) { s.Placement.Labels = map[string]string{"disk": "ssd"} }), nil)
		var nowhere *scheduler.UnschedulableError
		if !errors.As(err, &nowhere) {
			t.Errorf("the error is %v", err)
		}
	})
}

// ended is a service whose containers end with 0, or fail.
func ended(command string, policy api.RestartPolicy) api.ServiceSpec {
	return web("app:v1", 2, func(s *api.ServiceSpec) { s.Container.Command, s.Container.RestartPolicy = []string{command}, policy })
}

func TestWhatHasEndedStaysSoByItsRestartPolicy(t *testing.T) {
	no, onFailure := api.RestartPolicy{Name: api.RestartNo}, api.RestartPolicy{Name: api.RestartOnFailure}
	for name, tc := range map[string]struct {
		command string
		policy  api.RestartPolicy
		// late is one that ends after it counted as working.
		late    bool
		working bool
		over    bool
	}{
		"with 0 at once":           {command: "end", policy: no, working: true},
		"with 0 later":             {command: "end", policy: no, late: true, working: true},
		"with 0 and on-failure":    {command: "end", policy: onFailure, working: true},
		"with 1 at once":           {command: "fail", policy: no},
		"with 1 later":             {command: "fail", policy: no, late: true, working: true, over: true},
		"with 1 later, once again": {command: "fail", policy: api.RestartPolicy{Name: api.RestartOnFailure, MaxRetries: 1}, late: true, working: true, over: true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSimulation(2)
				spec := ended(tc.command, tc.policy)
				if tc.late {
					spec.Update.Monitor = &metav1.Duration{}
				}
				_, err := deploy(t.Context(), s, spec, nil)
				if (err == nil) != tc.working {
					t.Fatalf("the error is %v", err)
				}
				if err != nil {
					return
				}
				time.Sleep(time.Minute)
				plan, err := deploy(t.Context(), s, spec, nil)
				if err != nil || !plan.Empty() || (len(plan.Over) > 0) != tc.over || s.runs[tc.command] != 2 {
					t.Errorf("%d runs, error %v, plan:\n%s", s.runs[tc.command], err, plan.Format(nil))
				}
				if tc.over && !strings.Contains(strings.Join(plan.Over, "\n"), "has ended with exit code 1") {
					t.Errorf("the plan says %q", plan.Over)
				}
				// What is to run on does.
				spec.Container.RestartPolicy = api.RestartPolicy{}
				plan, err = deployment.NewDeployment(s, spec, nil).Plan(t.Context())
				if err != nil || len(plan.Over) > 0 || strings.Count(plan.Format(nil), "~ replace container web-") != 2 {
					t.Errorf("error %v, plan:\n%s", err, plan.Format(nil))
				}
			})
		})
	}
}
