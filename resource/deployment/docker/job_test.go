package docker_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	moby "github.com/moby/moby/client"
	"github.com/moby/moby/client/pkg/versions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

// job is a job of the program of images.
func job(arguments ...string) api.ServiceSpec {
	return api.ServiceSpec{
		Name: "job", Mode: api.ServiceModeJob, Placement: api.Placement{Machines: []string{"engine-1"}},
		Container: api.ContainerSpec{Image: image1, PullPolicy: api.PullNever, Command: arguments},
	}
}

func TestAJobRunsOnceAndItsEndIsKnownLater(t *testing.T) {
	k := newKit(t)
	plan, err := k.deploy(job("exit", "0"), nil)
	k.must(err)
	if text := plan.Format(nil); !strings.Contains(text, "> run the job of image "+image1) {
		t.Errorf("the plan was\n%s", text)
	}
	first := k.inspect(plan.Operations[len(plan.Operations)-1].Describe().ContainerName)
	// It is known by a list, by another client, and when the engine was away.
	k.mustBeDone(job("exit", "0"), nil)
	k.cli = k.client(docker.Config{Machines: dockertest.Machines(k.engines)})
	k.mustBeDone(job("exit", "0"), nil)
	k.must(k.engines[0].Stop(k.ctx))
	k.must(k.engines[0].Start(k.ctx))
	k.until("engine-1 is back", func() bool { return k.state("engine-1").State == api.MachineAvailable })
	plan, err = deployment.NewDeployment(k.cli, job("exit", "0"), nil).Plan(k.ctx)
	if err != nil || !plan.Completed || !plan.Empty() {
		t.Errorf("after a restart of the engine: %v, %s", err, plan.Format(nil))
	}
	if again := k.inspect(first.ID); again.State != api.ContainerExited || again.ExitCode != 0 || again.Attempt != "" {
		t.Errorf("the container is %+v", again)
	}
}

func TestAJobThatFailsSaysWithWhat(t *testing.T) {
	k := newKit(t)
	d := deployment.NewDeployment(k.cli, job("exit", "7"), nil)
	d.Attempt = "first"
	_, err := d.Run(k.ctx)
	var failed *deployment.JobError
	if !errors.As(err, &failed) || failed.ExitCode != 7 {
		t.Fatalf("the error is %v", err)
	}
	_, err = k.deploy(job("no such command"), nil)
	if !errors.As(err, &failed) || failed.ExitCode != 1 || !strings.Contains(err.Error(), "are not known") {
		t.Errorf("the error is without its last lines: %v", err)
	}
	// It is started again as often as its policy says, by the engine.
	retried := job("exit", "3")
	retried.Container.RestartPolicy = api.RestartPolicy{Name: api.RestartOnFailure, MaxRetries: 2}
	if _, err = k.deploy(retried, nil); !errors.As(err, &failed) || failed.ExitCode != 3 {
		t.Errorf("with retries: %v", err)
	}
	inventory, err := k.cli.InspectMachine(k.ctx, "engine-1")
	k.must(err)
	for _, c := range inventory.Containers {
		in, err := k.engine(k.engines[0]).ContainerInspect(k.ctx, c.ID, moby.ContainerInspectOptions{})
		k.must(err)
		if !c.Failed() || c.ExitCode != 3 || in.Container.RestartCount != 2 {
			t.Errorf("%s has ended with %d after %d restarts", c.Name, c.ExitCode, in.Container.RestartCount)
		}
	}
}

func TestAJobThatIsStoppedForAnotherOneHasNotCompleted(t *testing.T) {
	k := newKit(t)
	ctx, cancel := context.WithCancel(k.ctx)
	waits := deployment.NewDeployment(k.cli, job("hang"), nil)
	waited := make(chan error, 1)
	go func() {
		_, err := waits.Run(ctx)
		waited <- err
	}()
	runs := "engine-1 " + image1 + " running"
	k.until("it runs", func() bool { return slices.Equal(k.now("job"), []string{runs}) })
	cancel()
	if err := <-waited; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	k.mustHave("job", runs)
	name := ""
	inventory, err := k.cli.InspectMachine(k.ctx, "engine-1")
	k.must(err)
	for _, c := range inventory.Containers {
		name = c.Name
	}
	k.must(k.cli.SetAside(k.ctx, "engine-1", name))
	k.must(k.cli.StopContainer(k.ctx, "engine-1", name+api.FailedSuffix, time.Minute))
	plan, err := deployment.NewDeployment(k.cli, job("hang"), nil).Plan(k.ctx)
	if err != nil || plan.Completed {
		t.Errorf("it counts as completed: %v", err)
	}
	k.mustDeploy(job("exit", "0"), nil)
}

func TestAContainerThatEndsWith0AtOnceWorksIfItsPolicyLeavesItSo(t *testing.T) {
	k := newKit(t)
	for _, name := range []api.RestartPolicyName{api.RestartNo, api.RestartOnFailure} {
		s := spec(image1, 1)
		s.Name, s.Ports, s.Container.Command = string(name), nil, []string{"exit", "0"}
		s.Container.RestartPolicy.Name = name
		s.Update.Monitor = &metav1.Duration{Duration: time.Minute}
		k.mustDeploy(s, nil)
		if now := k.now(s.Name); len(now) != 1 || !strings.HasSuffix(now[0], " exited") {
			t.Errorf("%s: there is %v", name, now)
		}
	}
}

func TestAnEmptyCommandIsNoneAndNotThatOfTheImage(t *testing.T) {
	k := newKit(t)
	const image = "example.com/app:fails"
	failing := dockertest.App(image, map[string]string{"MODE": ""})
	failing.Command = []string{"exit", "9"}
	k.must(k.engines[0].Load(k.ctx, failing))
	entrypoint, exit5 := []string{"/app"}, []string{"exit", "5"}
	for name, tc := range map[string]struct {
		command, entrypoint []string
		want                string
	}{
		"absent":                             {nil, nil, "exited 9"},
		"a command":                          {exit5, nil, "exited 5"},
		"an empty command":                   {[]string{}, nil, "running 0"},
		"an empty command and an entrypoint": {[]string{}, entrypoint, "running 0"},
		"an empty entrypoint":                {[]string{"/app", "exit", "4"}, []string{}, "exited 4"},
	} {
		t.Run(name, func(t *testing.T) {
			s := spec(image, 1)
			s.Ports, s.Container.Command, s.Container.Entrypoint = nil, tc.command, tc.entrypoint
			s.Container.RestartPolicy.Name = api.RestartNo
			id := k.create("web-1", s)
			k.must(k.cli.StartContainer(k.ctx, "engine-1", id))
			if strings.HasPrefix(tc.want, "exited") {
				_, err := k.cli.WaitContainerExit(k.ctx, "engine-1", id)
				k.must(err)
			} else {
				k.must(k.cli.WaitContainerReady(k.ctx, "engine-1", id, s.Update.Wait()))
			}
			c := k.inspect(id)
			want := api.ContainerState(strings.Fields(tc.want)[0])
			if c.State != want || !strings.HasSuffix(tc.want, string(rune('0'+c.ExitCode))) {
				t.Errorf("it is %s with %d, not %s", c.State, c.ExitCode, tc.want)
			}
			if changes := deployment.ContainerSpecChanges(c.Spec, s); len(changes) > 0 {
				t.Errorf("it differs from its specification: %v", changes)
			}
			k.must(k.cli.RemoveContainer(k.ctx, "engine-1", id))
		})
	}
	s := spec(image, 1)
	s.Ports, s.Container.Command, s.Container.Entrypoint = nil, nil, []string{}
	if _, err := k.cli.CreateContainer(k.ctx, "engine-1", api.CreateContainerOptions{Name: "web-2", ServiceID: "x", Spec: s}); err != nil {
		t.Errorf("the command of the image without its entrypoint: %v", err)
	}
}

func TestAPlanSaysThatAnOldEngineIgnoresTheIntervalOfTheStart(t *testing.T) {
	k := newKit(t)
	s := spec(image1, 1)
	s.Container.HealthCheck = &api.HealthCheck{StartInterval: metav1.Duration{Duration: time.Second}}
	status, _ := k.cli.Status("engine-1")
	plan, err := deployment.NewDeployment(k.cli, s, nil).Plan(k.ctx)
	k.must(err)
	noted := slices.ContainsFunc(plan.Notes, func(n string) bool {
		return strings.HasPrefix(n, "container.healthCheck.startInterval is ignored on engine-1: the engine speaks version "+status.Engine.APIVersion)
	})
	if old := versions.LessThan(status.Engine.APIVersion, "1.44"); noted != old {
		t.Errorf("with version %s of the API the notes are %q", status.Engine.APIVersion, plan.Notes)
	}
}
