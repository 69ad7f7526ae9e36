package docker_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	moby "github.com/moby/moby/client"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

// strategies are all there are, without pauses.
func strategies() map[string]deployment.Strategy {
	return map[string]deployment.Strategy{
		"rolling":    &deployment.RollingStrategy{},
		"blue-green": &deployment.BlueGreenStrategy{},
		"canary":     &deployment.CanaryStrategy{Steps: []deployment.CanaryStep{{Percent: 30, Pause: time.Millisecond}}},
	}
}

func TestEachStrategyUpdatesAService(t *testing.T) {
	for name, strategy := range strategies() {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.mustDeploy(spec(image1, 3), strategy)
			k.mustHave("web", onEach(image1, "healthy")...)
			k.mustDeploy(spec(image2, 3), strategy)
			k.mustHave("web", onEach(image2, "healthy")...)
			service, err := k.cli.InspectService(k.ctx, "web")
			k.must(err)
			if len(service.Containers) != 3 || service.Mode != api.ServiceModeReplicated {
				t.Errorf("service = %+v", service)
			}
			if got := k.get(service.Containers[0], "/"); !strings.HasPrefix(got, "version 2 ") {
				t.Errorf("it answers %q", got)
			}
		})
	}
}

func TestAServiceThatDoesNotWorkIsRolledBack(t *testing.T) {
	for name, strategy := range strategies() {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.mustDeploy(spec(image1, 3), strategy)
			before, err := k.cli.InspectService(k.ctx, "web")
			k.must(err)
			bad := spec(imageSick, 3)
			bad.Update.Parallelism, bad.Update.FailureAction = 1, api.FailureRollback
			if _, err := k.deploy(bad, strategy); !errors.Is(err, deployment.ErrRolledBack) || !errors.Is(err, api.ErrUnhealthy) {
				t.Errorf("err = %v", err)
			}
			k.mustHave("web", onEach(image1, "healthy")...)
			after, err := k.cli.InspectService(k.ctx, "web")
			k.must(err)
			for i, c := range after.Containers {
				if c.ID != before.Containers[i].ID {
					t.Errorf("container %s is another one than before", c.Name)
				}
			}
		})
	}
}

func TestStopFirstBringsTheOldContainerBack(t *testing.T) {
	k := newKit(t)
	s := spec(image1, 1)
	s.Placement.Machines = []string{"engine-2"}
	s.Volumes = []api.VolumeSpec{{Name: "data"}}
	s.Container.VolumeMounts = []api.VolumeMount{{Volume: "data", Path: "/data"}}
	k.mustDeploy(s, nil)
	for _, image := range []string{imageSick, "example.com/app:absent"} {
		s.Container.Image = image
		if plan, err := k.deploy(s, nil); err == nil {
			t.Errorf("image %s works: %s", image, plan.Format(nil))
		}
		k.mustHave("web", "engine-2 "+image1+" healthy")
	}
	s.Container.Image = image2
	k.mustDeploy(s, nil)
	k.mustHave("web", "engine-2 "+image2+" healthy")
}

func TestLimitsChangeWithoutAnotherContainer(t *testing.T) {
	k := newKit(t)
	s := spec(image1, 2)
	s.Container.Resources.Memory = ptr.To(resource.MustParse("64Mi"))
	k.mustDeploy(s, nil)
	before, err := k.cli.InspectService(k.ctx, "web")
	k.must(err)
	s.Container.Resources.Memory, s.Container.Resources.CPU = ptr.To(resource.MustParse("128Mi")), ptr.To(resource.MustParse("0.5"))
	s.Container.RestartPolicy = api.RestartPolicy{Name: api.RestartOnFailure, MaxRetries: 5}
	k.mustDeploy(s, nil)
	after, err := k.cli.InspectService(k.ctx, "web")
	k.must(err)
	for i, c := range after.Containers {
		if c.ID != before.Containers[i].ID || c.Spec.Container.Resources.Memory.Value() != 128<<20 {
			t.Errorf("container = %+v, before %s", c, before.Containers[i].ID)
		}
	}
}

func TestAFailingPreDeployHookChangesNothing(t *testing.T) {
	k := newKit(t)
	k.mustDeploy(spec(image1, 3), nil)
	next := spec(image2, 3)
	next.PreDeploy = &api.PreDeployHook{Command: []string{"exit", "4"}}
	var hook *deployment.HookError
	if _, err := k.deploy(next, nil); !errors.As(err, &hook) || hook.ExitCode != 4 {
		t.Errorf("err = %v, want exit code 4", err)
	}
	k.mustHave("web", onEach(image1, "healthy")...)
	next.PreDeploy.Command = []string{"exit", "0"}
	k.mustDeploy(next, nil)
	k.mustHave("web", onEach(image2, "healthy")...)
}

func TestAPreDeployHookHasTheVolumesOfItsServiceIfItAsksForThem(t *testing.T) {
	k := newKit(t)
	s := spec(image1, 1)
	s.Volumes = []api.VolumeSpec{{Name: "web-data"}}
	s.Container.VolumeMounts = []api.VolumeMount{{Volume: "web-data", Path: "/data"}}
	k.mustDeploy(s, nil)
	s.Container.Image = image2
	for asked, want := range map[bool]int{false: 0, true: 1} {
		// What has failed is kept, and can be looked at.
		s.PreDeploy = &api.PreDeployHook{Command: []string{"exit", "4"}, Volumes: asked}
		var failed *deployment.HookError
		if _, err := k.deploy(s, nil); !errors.As(err, &failed) {
			t.Fatalf("err = %v, want that of the hook", err)
		}
		mounts := 0
		for _, e := range k.engines {
			inventory, err := k.cli.InspectMachine(k.ctx, e.Name())
			k.must(err)
			for i := range inventory.Containers {
				c := &inventory.Containers[i]
				if !c.Hook {
					continue
				}
				inspected, err := k.engine(e).ContainerInspect(k.ctx, c.ID, moby.ContainerInspectOptions{})
				k.must(err)
				mounts += len(inspected.Container.Mounts)
				if asked && !slices.ContainsFunc(inventory.Volumes, func(v api.Volume) bool { return v.Name == "web-data" }) {
					t.Errorf("the hook was on %s, which has no volume", e.Name())
				}
			}
		}
		if mounts != want {
			t.Errorf("a hook that asks for volumes (%v) has %d of them", asked, mounts)
		}
	}
}

func TestAPortIsPublishedAtTheAddressesOfTheMachineThatAreInItsRange(t *testing.T) {
	k := newKit(t)
	machines := dockertest.Machines(k.engines)
	// It is not the one at which ports are published for which no address is given.
	at := strings.TrimSuffix(k.engines[1].Address(), ".1") + ".2"
	machines[1].Addresses = []string{"192.0.2.1", at}
	k.must(k.cli.SetMachines(machines))
	s := spec(image1, 1)
	s.Ports[0].HostIP = "127.0.0.0/8"
	k.mustDeploy(s, nil)
	service, err := k.cli.InspectService(k.ctx, "web")
	k.must(err)
	if len(service.Containers) != 1 || len(service.Containers[0].Ports) != 1 || service.Containers[0].Ports[0].HostIP != at {
		t.Fatalf("containers = %+v, want one with a port at %s", service.Containers, at)
	}
	if got := k.get(service.Containers[0], "/"); !strings.HasPrefix(got, "version 1 ") {
		t.Errorf("it says %q", got)
	}
}

func TestAGlobalServiceIsOnEachMachineAndHoldsAPort(t *testing.T) {
	k := newKit(t)
	s := spec(image1, 0)
	s.Mode, s.Replicas = api.ServiceModeGlobal, nil
	s.Placement.Machines = []string{"engine-1"}
	s.Ports[0].PublishedPort, s.Ports[0].HostIP = 18080, "127.0.0.1"
	k.mustDeploy(s, nil)
	k.mustHave("web", "engine-1 "+image1+" healthy")
	other := spec(image1, 1)
	other.Name, other.Ports, other.Placement = "other", s.Ports, s.Placement
	if plan, err := k.deploy(other, nil); err == nil {
		t.Errorf("two services hold one port: %s", plan.Format(nil))
	}
	s.Container.Image = image2
	k.mustDeploy(s, nil)
	k.mustHave("web", "engine-1 "+image2+" healthy")
}

func TestAPlanThatIsStaleIsRefused(t *testing.T) {
	k := newKit(t)
	first, second := deployment.NewDeployment(k.cli, spec(image1, 3), nil), deployment.NewDeployment(k.cli, spec(image2, 3), nil)
	_, err := second.Plan(k.ctx)
	k.must(err)
	_, err = first.Run(k.ctx)
	k.must(err)
	if _, err := second.Run(k.ctx); !errors.Is(err, deployment.ErrStalePlan) {
		t.Errorf("err = %v", err)
	}
}

func TestAnEngineThatStopsInMidPlanIsGoneOnWith(t *testing.T) {
	k := newKit(t)
	k.mustDeploy(spec(image1, 3), nil)
	next := spec(image2, 3)
	next.Update.Parallelism = 1
	d := deployment.NewDeployment(k.cli, next, nil)
	var lost *int
	d.Progress = func(e deployment.ProgressEvent) {
		i := slices.IndexFunc(k.engines, func(o *dockertest.Engine) bool { return o.Name() == e.MachineID })
		if _, replace := e.Operation.(*deployment.ReplaceContainerOperation); replace && e.Status == deployment.ProgressStarted && lost == nil {
			lost = &i
			k.must(k.engines[i].Stop(k.ctx))
		}
	}
	if _, err := d.Run(k.ctx); !errors.Is(err, docker.ErrUnreachable) {
		t.Errorf("err = %v, want a machine that does not answer", err)
	}
	if lost == nil {
		t.Fatal("nothing was replaced")
	}
	name := k.engines[*lost].Name()
	k.until(name+" is unknown", func() bool { return k.state(name).State == api.MachineUnknown })

	// What is on it is not made again elsewhere, and the others go on.
	plan, err := k.deploy(next, nil)
	k.must(err)
	if !slices.ContainsFunc(plan.Notes, func(n string) bool { return strings.Contains(n, name) }) {
		t.Errorf("the plan does not say what waits for %s:\n%s", name, plan.Format(nil))
	}
	service, err := k.cli.InspectService(k.ctx, "web")
	k.must(err)
	if len(service.Containers) != 2 || service.Containers[0].Spec.Container.Image != image2 || service.Containers[1].Spec.Container.Image != image2 {
		t.Errorf("containers on the others = %+v", service.Containers)
	}

	k.must(k.engines[*lost].Start(k.ctx))
	k.until(name+" is back", func() bool { return k.state(name).State == api.MachineAvailable })
	k.mustDeploy(next, nil)
	k.mustHave("web", onEach(image2, "healthy")...)
}

func TestADeploymentThatIsCancelledIsGoneOnWith(t *testing.T) {
	for name, strategy := range strategies() {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.mustDeploy(spec(image1, 3), strategy)
			ctx, cancel := context.WithCancel(k.ctx)
			defer cancel()
			d := deployment.NewDeployment(k.cli, spec(image2, 3), strategy)
			d.Progress = func(e deployment.ProgressEvent) {
				if e.Status == deployment.ProgressStarted {
					cancel()
				}
			}
			if _, err := d.Run(ctx); err == nil {
				t.Error("a deployment that was cancelled has succeeded")
			}
			if have := k.now("web"); len(have) < 3 {
				t.Errorf("there are only %q", have)
			}
			k.mustDeploy(spec(image2, 3), strategy)
			k.mustHave("web", onEach(image2, "healthy")...)
		})
	}
}
