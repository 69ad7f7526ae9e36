package docker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	moby "github.com/moby/moby/client"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

func TestAMachineThatDoesNotAnswerIsUnknownAndComesBackByItself(t *testing.T) {
	type step func(*dockertest.Engine, context.Context) error
	for name, test := range map[string]struct{ lose, bring step }{
		"stopped": {(*dockertest.Engine).Stop, func(e *dockertest.Engine, ctx context.Context) error { return e.Start(ctx) }},
		"silent": {
			func(e *dockertest.Engine, _ context.Context) error { return e.Hang() },
			func(e *dockertest.Engine, _ context.Context) error { return e.Continue() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newImpatientKit(t)
			k.mustDeploy(spec(image1, 3), nil)
			inventory, err := k.cli.InspectMachine(k.ctx, "engine-2")
			k.must(err)
			waited := make(chan error, 1)
			go func() {
				_, err := k.cli.WaitContainerExit(k.ctx, "engine-2", inventory.Containers[0].ID)
				waited <- err
			}()
			k.must(test.lose(k.engines[1], k.ctx))
			k.until("engine-2 is unknown", func() bool { return k.state("engine-2").State == api.MachineUnknown })
			m := k.state("engine-2")
			if m.Reason == "" || m.LastSeen == nil || len(m.LastSeen.Containers) != 1 || len(m.LastSeen.Images) != len(inventory.Images) {
				t.Errorf("machine = %+v", m)
			}
			// A container may have ended before its engine did.
			if err := <-waited; err != nil && !errors.Is(err, docker.ErrUnreachable) {
				t.Errorf("a wait under way ended with %v", err)
			}
			if _, err := k.cli.InspectMachine(k.ctx, "engine-2"); !errors.Is(err, docker.ErrUnreachable) {
				t.Errorf("a question ended with %v", err)
			}
			if status, _ := k.cli.Status("engine-2"); status.Connected || status.Reason != m.Reason || status.Engine.Version == "" || status.Since.IsZero() {
				t.Errorf("status = %+v", status)
			}
			k.must(test.bring(k.engines[1], k.ctx))
			k.until("engine-2 is back", func() bool { return k.state("engine-2").State == api.MachineAvailable })
			k.mustDeploy(spec(image1, 3), nil)
			k.mustHave("web", onEach(image1, "healthy")...)
		})
	}
}

func TestWhatWasNotSeenSinceAChangeIsNotRemembered(t *testing.T) {
	k := newImpatientKit(t)
	k.create("web-1", spec(image1, 1))
	_, err := k.cli.InspectMachine(k.ctx, "engine-1")
	k.must(err)
	k.must(k.engines[0].Hang())
	ctx, cancel := context.WithCancel(k.ctx)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		_, _ = k.cli.CreateContainer(ctx, "engine-1", api.CreateContainerOptions{Name: "web-2", ServiceID: "x", Spec: spec(image1, 1)})
	}()
	k.until("engine-1 is unknown", func() bool { return k.state("engine-1").State == api.MachineUnknown })
	cancel()
	<-asked
	if m := k.state("engine-1"); m.LastSeen != nil {
		t.Errorf("what was seen before a container may have been created counts as complete: %+v", m.LastSeen)
	}
}

func TestEventsAreNoticedForTheirServices(t *testing.T) {
	k := newKit(t)
	_, err := k.cli.ListMachines(k.ctx)
	k.must(err)
	var mu sync.Mutex
	var notices []docker.Notice
	t.Cleanup(k.cli.Subscribe(func(n docker.Notice) {
		mu.Lock()
		defer mu.Unlock()
		notices = append(notices, n)
	}))
	id := k.create("web-1", spec(image1, 1))
	engine := k.engine(k.engines[0])
	_, err = engine.ContainerStart(k.ctx, id, moby.ContainerStartOptions{})
	k.must(err)
	_, err = engine.ContainerRemove(k.ctx, id, moby.ContainerRemoveOptions{Force: true})
	k.must(err)
	k.until("a notice of the service for each of these", func() bool {
		mu.Lock()
		defer mu.Unlock()
		n := 0
		for _, notice := range notices {
			if notice == (docker.Notice{MachineID: "engine-1", Service: "web"}) {
				n++
			}
		}
		return n >= 4 // create, start, die, destroy
	})
	_, err = engine.VolumeCreate(k.ctx, moby.VolumeCreateOptions{Name: "other"})
	k.must(err)
	k.until("a notice of the machine for a volume", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.Contains(notices, docker.Notice{MachineID: "engine-1"})
	})
}

func TestMachinesChangeWhileTheClientRuns(t *testing.T) {
	k := newKit(t)
	noticed := make(chan struct{}, 1)
	end := k.cli.Subscribe(func(n docker.Notice) {
		if n.Service == "web" {
			noticed <- struct{}{}
		}
	})
	k.create("web-1", spec(image1, 1))
	<-noticed
	end()
	_, err := k.cli.InspectMachine(k.ctx, "engine-1")
	k.must(err)
	machines := dockertest.Machines(k.engines)
	machines[0].Labels = map[string]string{"zone": "a"}
	machines[1].Gone = true
	k.must(k.cli.SetMachines(machines[:2]))
	list, err := k.cli.ListMachines(k.ctx)
	k.must(err)
	if len(list) != 2 || list[0].Labels["zone"] != "a" || list[0].State != api.MachineAvailable || list[1].State != api.MachineGone {
		t.Errorf("machines = %+v", list)
	}
	if _, err := k.cli.InspectMachine(k.ctx, "engine-3"); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("a machine that was taken out: %v", err)
	}
	machines[0].Endpoint.Host = "unix:///nowhere/docker.sock"
	k.must(k.cli.SetMachines(machines[:1]))
	if m := k.state("engine-1"); m.State != api.MachineUnknown || m.LastSeen == nil || len(m.LastSeen.Containers) != 1 {
		t.Errorf("a machine at another address = %+v", m)
	}
	if err := k.cli.SetMachines(append(machines, machines[0])); err == nil {
		t.Error("a machine may be there twice")
	}
	k.must(k.cli.Close())
	if err := k.cli.SetMachines(nil); !errors.Is(err, docker.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

func TestOneEngineIsNotTwoMachines(t *testing.T) {
	k := newKit(t)
	machines := dockertest.Machines(k.engines)[:1]
	machines = append(machines, docker.Machine{ID: "another", Endpoint: machines[0].Endpoint})
	cli := k.client(docker.Config{Machines: machines})
	t.Cleanup(cli.Subscribe(func(docker.Notice) { k.bump() }))
	k.until("one of them is unknown", func() bool {
		list, err := cli.ListMachines(k.ctx)
		k.must(err)
		return list[0].State == api.MachineAvailable && list[1].State == api.MachineUnknown &&
			strings.Contains(list[1].Reason, "the same engine as that of machine another")
	})
}

func TestContainersOfAnotherClusterAreOthers(t *testing.T) {
	k := newKit(t)
	k.mustDeploy(spec(image1, 1), nil)
	cli := k.client(docker.Config{Machines: dockertest.Machines(k.engines), Cluster: "other"})
	if service, err := cli.InspectService(k.ctx, "web"); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("service = %+v, %v", service, err)
	}
	seen := 0
	for _, e := range k.engines {
		inventory, err := cli.InspectMachine(k.ctx, e.Name())
		k.must(err)
		for _, c := range inventory.Containers {
			seen++
			if c.ServiceName != "" || len(c.Ports) != 1 {
				t.Errorf("container = %+v", c)
			}
		}
	}
	if seen != 1 {
		t.Errorf("%d containers are seen, want 1", seen)
	}
}

func TestConfigurationsThatCannotWorkAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		machine docker.Machine
		fault   string
	}{
		"no ID":        {docker.Machine{Name: "m"}, "the ID is empty"},
		"no scheme":    {docker.Machine{ID: "m", Endpoint: docker.Endpoint{Host: "m:2376"}}, "none of unix://"},
		"no path":      {docker.Machine{ID: "m", Endpoint: docker.Endpoint{Host: "unix://docker.sock"}}, "absolute path"},
		"no TLS":       {docker.Machine{ID: "m", Endpoint: docker.Endpoint{Host: "tcp://192.0.2.1:2375"}}, "without TLS"},
		"no host":      {docker.Machine{ID: "m", Endpoint: docker.Endpoint{Host: "tcp://:2375"}}, "a host and a port"},
		"bad CA":       {docker.Machine{ID: "m", Endpoint: docker.Endpoint{Host: "tcp://m:2376", TLS: &docker.TLS{CA: []byte("x")}}}, "no certificate"},
		"bad key":      {docker.Machine{ID: "m", Endpoint: docker.Endpoint{Host: "tcp://m:2376", TLS: &docker.TLS{Key: "x"}}}, "TLS.Key"},
		"TLS for unix": {docker.Machine{ID: "m", Endpoint: docker.Endpoint{Host: "unix:///s", TLS: &docker.TLS{}}}, "TLS is for tcp"},
		"no user":      {docker.Machine{ID: "m", Endpoint: docker.Endpoint{Host: "ssh://m", SSH: &docker.SSH{}}}, "a user"},
		"no SSH":       {docker.Machine{ID: "m", Endpoint: docker.Endpoint{Host: "ssh://u@m"}}, "there is no SSH"},
		"bad SSH key":  {docker.Machine{ID: "m", Endpoint: docker.Endpoint{Host: "ssh://u@m", SSH: &docker.SSH{Key: "x"}}}, "SSH.Key"},
		"password":     {docker.Machine{ID: "m", Endpoint: docker.Endpoint{Host: "ssh://u:secret@m", SSH: &docker.SSH{}}}, "a password"},
		"a token":      {docker.Machine{ID: "m", Endpoint: docker.Endpoint{Host: "https://secret@m"}}, "a password"},
		"no address":   {docker.Machine{ID: "m", Endpoint: docker.Endpoint{Host: "tcp://u:secret@m:port"}}, "no address"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := docker.New(docker.Config{Machines: []docker.Machine{test.machine}})
			if err == nil || !strings.Contains(err.Error(), test.fault) || strings.Contains(err.Error(), "secret") {
				t.Errorf("err = %v, want %q", err, test.fault)
			}
		})
	}
	if _, err := docker.New(docker.Config{Heartbeat: -time.Second}); err == nil {
		t.Error("a heartbeat may be negative")
	}
}

// Engines tell that a container has ended before their lists of containers say so, and there may be no further notice.
func TestAContainerIsSeenToHaveEndedAtTheLatestWithTheLastNotice(t *testing.T) {
	k := newKit(t)
	for i := range 5 {
		name := fmt.Sprintf("web-%d", i)
		k.create(name, spec(image1, 1))
		k.must(k.cli.StartContainer(k.ctx, "engine-1", name))
		state := func() api.ContainerState {
			inventory, err := k.cli.InspectMachine(k.ctx, "engine-1")
			k.must(err)
			at := slices.IndexFunc(inventory.Containers, func(c api.Container) bool { return c.Name == name })
			return inventory.Containers[at].State
		}
		k.until(name+" runs", func() bool { return state() == api.ContainerRunning })
		_, err := k.engine(k.engines[0]).ContainerKill(k.ctx, name, moby.ContainerKillOptions{Signal: "KILL"}) // its program may not heed others yet
		k.must(err)
		k.until(name+" has ended", func() bool { return state() == api.ContainerExited })
	}
}
