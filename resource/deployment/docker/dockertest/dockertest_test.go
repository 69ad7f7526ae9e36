package dockertest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	moby "github.com/moby/moby/client"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

const patience = 5 * time.Minute

func TestWhatAnEngineHasIsItsOwnAndGoesWithIt(t *testing.T) {
	dockertest.Require(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	engines, err := dockertest.Run(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	const image = "example.com/app:1"
	if err := engines[0].Load(ctx, dockertest.App(image, nil)); err != nil {
		t.Fatal(err)
	}
	if !has(ctx, t, engines[0], image) || has(ctx, t, engines[1], image) {
		t.Error("the image is not on the first engine alone")
	}
	if err := engines[0].Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if err := engines[0].Start(ctx); err != nil {
		t.Fatal(err)
	}
	if !has(ctx, t, engines[0], image) {
		t.Error("an engine has lost its image while it was stopped")
	}
	if err := dockertest.Close(engines); err != nil {
		t.Fatal(err)
	}
	for _, e := range engines {
		if _, err := os.Stat(e.Socket()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s has left its socket: %v", e.Name(), err)
		}
	}
}

func TestEnginesOfAPoolAreStartedOnceAndLentWithNothingOnThem(t *testing.T) {
	dockertest.Require(t)
	const image = "example.com/app:1"
	pool := dockertest.Pool{Images: []dockertest.Image{dockertest.App(image, nil)}}
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	// use looks whether an engine is as it should be, and leaves a container and a volume.
	use := func(t *testing.T, e *dockertest.Engine, name string) {
		t.Helper()
		cli, err := docker.New(docker.Config{Machines: dockertest.Machines([]*dockertest.Engine{e})})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cli.Close() }()
		inventory, err := cli.InspectMachine(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		if len(inventory.Containers)+len(inventory.Volumes) > 0 || len(inventory.Images) != 1 {
			t.Errorf("%s has %+v", name, inventory)
		}
		spec := api.ServiceSpec{Name: "web", Container: api.ContainerSpec{Image: image}}
		_, err = cli.CreateContainer(ctx, name, api.CreateContainerOptions{Name: "web-1", ServiceID: "id-of-web", Spec: spec})
		if err := errors.Join(err, cli.CreateVolume(ctx, name, api.VolumeSpec{Name: "data"})); err != nil {
			t.Fatal(err)
		}
	}
	var first string
	t.Run("one", func(t *testing.T) {
		e := pool.Take(t, 1)[0]
		first = e.Socket()
		use(t, e, "engine-1")
		if err := e.Stop(ctx); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("two", func(t *testing.T) {
		engines := pool.Take(t, 2)
		use(t, engines[0], "engine-1")
		use(t, engines[1], "engine-2")
		if engines[0].Socket() != first {
			t.Error("an engine that was free is not used again")
		}
		if err := engines[1].Hang(); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("two again", func(t *testing.T) {
		for i, e := range pool.Take(t, 2) {
			use(t, e, fmt.Sprintf("engine-%d", i+1))
		}
	})
}

func TestAllPortsAreFreeOnEachMachine(t *testing.T) {
	dockertest.Require(t)
	engines := dockertest.Start(t, 2)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cli, err := docker.New(docker.Config{Machines: dockertest.Machines(engines)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cli.Close() }()
	const image = "example.com/app:1"
	spec := api.ServiceSpec{
		Name: "web", Container: api.ContainerSpec{Image: image}, Ports: []api.PortSpec{{Mode: api.PortModeHost, PublishedPort: 18081, ContainerPort: 8080}},
	}
	at := map[string]bool{}
	for _, e := range engines {
		if err := e.Load(ctx, dockertest.App(image, nil)); err != nil {
			t.Fatal(err)
		}
		id, err := cli.CreateContainer(ctx, e.Name(), api.CreateContainerOptions{Name: "web-1", ServiceID: "id-of-web", Spec: spec})
		if err != nil {
			t.Fatal(err)
		}
		if err := cli.StartContainer(ctx, e.Name(), id); err != nil {
			t.Errorf("start the container on %s: %v", e.Name(), err)
			continue
		}
		c, err := cli.InspectContainer(ctx, e.Name(), id)
		if err != nil {
			t.Fatal(err)
		}
		at[c.Ports[0].HostIP] = true
	}
	if len(at) != len(engines) {
		t.Errorf("the ports are at %v", at)
	}
}

func has(ctx context.Context, t *testing.T, e *dockertest.Engine, image string) bool {
	t.Helper()
	engine, err := e.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = engine.Close() }()
	list, err := engine.ImageList(ctx, moby.ImageListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list.Items {
		for _, tag := range i.RepoTags {
			if tag == image {
				return true
			}
		}
	}
	return false
}
