package docker_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	moby "github.com/moby/moby/client"
	"k8s.io/utils/ptr"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

// as returns a kit for the same engines that works as another operator.
func (k *kit) as(i identity.Identity) *kit {
	k.Helper()
	other := &kit{
		T: k.T, ctx: identity.NewContext(k.ctx, &identity.Scope{Identity: i}), engines: k.engines, changed: make(chan struct{}),
	}
	other.cli = k.client(docker.Config{Machines: dockertest.Machines(k.engines)})
	return other
}

// lives returns the containers of the kit's operator and when they were started, by their IDs.
func (k *kit) lives(service string) map[string]string {
	k.Helper()
	found, err := k.cli.InspectService(k.ctx, service)
	if errors.Is(err, api.ErrNotFound) {
		return nil
	}
	k.must(err)
	lives := map[string]string{}
	for _, e := range k.engines {
		engine := k.engine(e)
		for _, c := range found.Containers {
			if in, err := engine.ContainerInspect(k.ctx, c.ID, moby.ContainerInspectOptions{}); err == nil {
				lives[c.ID] = in.Container.State.StartedAt + in.Container.Config.Labels[docker.LabelOperator]
			}
		}
	}
	return lives
}

// full returns a service that has all that a service can leave on a machine.
func full(image, volume string) api.ServiceSpec {
	s := spec(image, 3)
	s.Configs = []api.ConfigSpec{{Name: "settings", Content: "colour: blue"}}
	s.Container.ConfigMounts = []api.ConfigMount{{Config: "settings", Path: "/etc/settings"}}
	s.Mode, s.Replicas = api.ServiceModeGlobal, nil
	s.Volumes = []api.VolumeSpec{{Name: volume}}
	s.Container.VolumeMounts = []api.VolumeMount{{Volume: volume, Path: "/data"}}
	s.PreDeploy = &api.PreDeployHook{Command: []string{"exit", "0"}}
	return s
}

func TestR16TwoOperatorsHaveServicesOfOneNameOnOneEngine(t *testing.T) {
	k := newKit(t)
	a, b := k.as(identity.Identity{Operator: "a", Framework: "services"}), k.as(identity.Identity{Operator: "b", Framework: "services"})
	var wg sync.WaitGroup
	for volume, o := range map[string]*kit{"data-a": a, "data-b": b} {
		wg.Go(func() {
			if _, err := o.deploy(full(image1, volume), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	a.mustBeDone(full(image1, "data-a"), nil)
	b.mustBeDone(full(image1, "data-b"), nil)
	before := b.lives("web")
	if mine := a.lives("web"); len(mine) != 3 || len(before) != 3 {
		t.Fatalf("a has %v, b has %v, want three each", mine, before)
	}
	// What b is about to write configs to is nothing that a cleans up.
	engine := k.engine(k.engines[0])
	_, err := engine.VolumeCreate(k.ctx, moby.VolumeCreateOptions{Name: "being-written", Labels: map[string]string{
		docker.LabelForm: identity.Form, docker.LabelOperator: "b", docker.LabelFramework: "services", docker.LabelResource: api.DefaultResource,
		docker.LabelCluster: "", docker.LabelConfigsOf: "web-x",
	}})
	k.must(err)

	a.mustDeploy(full(image2, "data-a"), nil)
	none := full(image2, "data-a")
	none.Mode, none.Replicas = api.ServiceModeReplicated, ptr.To(int32(0))
	if _, err := a.deploy(none, nil); err != nil {
		t.Error(err)
	}
	if mine := a.lives("web"); len(mine) != 0 {
		t.Errorf("a has %v still", mine)
	}
	if diff := cmp.Diff(before, b.lives("web")); diff != "" {
		t.Errorf("a has touched what is b's:\n%s", diff)
	}
	if _, err := engine.VolumeInspect(k.ctx, "being-written", moby.VolumeInspectOptions{}); err != nil {
		t.Error(err)
	}
	b.mustBeDone(full(image1, "data-b"), nil)
	service, err := b.cli.InspectService(b.ctx, "web")
	k.must(err)
	if got := k.get(service.Containers[0], "/file?path=/etc/settings"); got != "colour: blue" {
		t.Errorf("the config of b is %q", got)
	}
}

func TestR16WhatFormerNamesHaveIsTakenOverWithoutARestart(t *testing.T) {
	for name, renamed := range map[string]func(*kit) *kit{
		"the operator": func(k *kit) *kit {
			return k.as(identity.Identity{Operator: "b", Framework: "services", FormerOperators: []string{"a"}})
		},
		"the framework": func(k *kit) *kit {
			return k.as(identity.Identity{Operator: "a", Framework: "others", FormerFrameworks: []string{"services"}})
		},
		"the resource": func(k *kit) *kit {
			other := k.as(identity.Identity{Operator: "a", Framework: "services"})
			other.ctx = api.WithResource(other.ctx, "shops", []string{api.DefaultResource})
			return other
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			before := k.as(identity.Identity{Operator: "a", Framework: "services"})
			before.mustDeploy(full(image1, "data"), nil)
			lives := before.lives("web")

			after := renamed(k)
			d := deployment.NewDeployment(after.cli, full(image1, "data"), nil)
			plan, err := d.Run(after.ctx)
			k.must(err)
			if !plan.Empty() || len(plan.TakenOver) != 3 || !strings.Contains(plan.TakenOver[0], `which was of service "web" of resource "containers" of framework "services" of operator "a"`) {
				t.Errorf("the plan is\n%s", plan.Format(nil))
			}
			if diff := cmp.Diff(lives, after.lives("web")); diff != "" {
				t.Errorf("a container was touched:\n%s", diff)
			}
			// The next version has the present name. The volumes stay what they are.
			after.mustDeploy(full(image2, "data"), nil)
			plan, err = deployment.NewDeployment(after.cli, full(image2, "data"), nil).Plan(after.ctx)
			k.must(err)
			if len(plan.TakenOver) > 0 || len(after.lives("web")) != 3 || len(before.lives("web")) != 0 {
				t.Errorf("there are %v, and under the former name %v", after.lives("web"), before.lives("web"))
			}
		})
	}
}

func TestR16WhatIsAnothersIsRefusedAndNamed(t *testing.T) {
	k := newKit(t)
	a, b := k.as(identity.Identity{Operator: "a", Framework: "services"}), k.as(identity.Identity{Operator: "b", Framework: "services"})
	s := spec(image1, 1)
	s.Placement.Machines = []string{"engine-1"}
	s.Ports[0].PublishedPort, s.Ports[0].HostIP = 18081, "127.0.0.1"
	s.Volumes = []api.VolumeSpec{{Name: "data"}}
	s.Container.VolumeMounts = []api.VolumeMount{{Volume: "data", Path: "/data"}}
	b.mustDeploy(s, nil)
	before := b.lives("web")
	service, err := b.cli.InspectService(b.ctx, "web")
	k.must(err)
	theirs := service.Containers[0]

	const ofContainer, ofVolume = `of service "web" of resource "containers" of framework "services" of operator "b"`, `of resource "containers" of framework "services" of operator "b"`
	port, volume := s.Clone(), s.Clone()
	port.Volumes, port.Container.VolumeMounts = nil, nil
	volume.Ports = nil
	_, ofPort := a.deploy(port, nil)
	_, ofTheVolume := a.deploy(volume, nil)
	_, ofName := a.cli.CreateContainer(a.ctx, "engine-1", api.CreateContainerOptions{Name: theirs.Name, ServiceID: "x", Spec: spec(image1, 1)})
	run := deployment.RunContainerOperation{Spec: spec(image1, 1), MachineID: "engine-1", ContainerName: theirs.Name}
	for what, test := range map[string]struct {
		err, is error
		whose   string
	}{
		"port":           {ofPort, nil, "container " + theirs.Name + " " + ofContainer},
		"volume in plan": {ofTheVolume, nil, "volume data is there already, " + ofVolume},
		"volume":         {a.cli.CreateVolume(a.ctx, "engine-1", s.Volumes[0]), api.ErrOthers, ofVolume},
		"name":           {ofName, api.ErrExists, ofContainer},
		"name in a plan": {run.Execute(a.ctx, a.cli), api.ErrExists, ofContainer},
		"start":          {a.cli.StartContainer(a.ctx, "engine-1", theirs.ID), api.ErrOthers, ofContainer},
		"stop":           {a.cli.StopContainer(a.ctx, "engine-1", theirs.ID, 0), api.ErrOthers, ofContainer},
		"update":         {a.cli.UpdateContainer(a.ctx, "engine-1", theirs.Name, s), api.ErrOthers, ofContainer},
		"remove":         {a.cli.RemoveContainer(a.ctx, "engine-1", theirs.Name), api.ErrOthers, ofContainer},
	} {
		if test.err == nil || test.is != nil && !errors.Is(test.err, test.is) || !strings.Contains(test.err.Error(), test.whose) {
			t.Errorf("%s: %v, want whose it is: %s", what, test.err, test.whose)
		}
	}
	if diff := cmp.Diff(before, b.lives("web")); diff != "" {
		t.Errorf("what is b's was touched:\n%s", diff)
	}
	// One that says that the volume is somebody else's may use it.
	volume.Volumes[0].External = true
	a.mustDeploy(volume, nil)
}

func TestR16AVolumeThatAnotherMakesMeanwhileIsNotTakenForOnesOwn(t *testing.T) {
	k := newKit(t)
	a, b := k.as(identity.Identity{Operator: "a", Framework: "services"}), k.as(identity.Identity{Operator: "b", Framework: "services"})
	data := api.VolumeSpec{Name: "data"}
	var theirs error
	a.cli = a.client(docker.Config{Machines: dockertest.Machines(k.engines), BeforeRequest: func(r *http.Request) error {
		if strings.HasSuffix(r.URL.Path, "/volumes/create") {
			theirs = b.cli.CreateVolume(b.ctx, "engine-1", data)
		}
		return nil
	}})
	err := a.cli.CreateVolume(a.ctx, "engine-1", data)
	k.must(theirs)
	if !errors.Is(err, api.ErrOthers) || !strings.Contains(err.Error(), `operator "b"`) {
		t.Errorf("err = %v, want that it is b's", err)
	}
	// One of the same framework may come meanwhile.
	data.Name = "shared"
	b = k.as(identity.Identity{Operator: "a", Framework: "services"})
	k.must(a.cli.CreateVolume(a.ctx, "engine-1", data))
	k.must(theirs)
}

// labelled puts an image onto the first machine that is another one with labels, and returns its name.
func (k *kit) labelled(image string, labels map[string]string) string {
	k.Helper()
	engine := k.engine(k.engines[0])
	made, err := engine.ContainerCreate(k.ctx, moby.ContainerCreateOptions{Image: image})
	k.must(err)
	var changes []string
	for name, value := range labels {
		changes = append(changes, fmt.Sprintf("LABEL %s=%s", name, value))
	}
	name := "example.com/labelled:" + made.ID[:12]
	_, err = engine.ContainerCommit(k.ctx, made.ID, moby.ContainerCommitOptions{Reference: name, Changes: changes})
	k.must(err)
	_, err = engine.ContainerRemove(k.ctx, made.ID, moby.ContainerRemoveOptions{})
	k.must(err)
	return name
}

func TestR16LabelsOfAnImageDoNotSayWhatAContainerIs(t *testing.T) {
	k := newKit(t)
	// An image that is made of the container of a hook has these.
	s := configured(service("web", k.labelled(image1, map[string]string{
		docker.LabelService: "web", docker.LabelServiceID: "id-of-web", docker.LabelHook: "true",
	}), 1))
	looker := k.client(docker.Config{Machines: dockertest.Machines(k.engines)})
	k.cli = k.client(docker.Config{Machines: dockertest.Machines(k.engines), BeforeRequest: func(r *http.Request) error {
		if r.Method != http.MethodPut || !strings.HasSuffix(r.URL.Path, "/archive") {
			return nil
		}
		// Now there is what configs are written through.
		inventory, err := looker.InspectMachine(k.ctx, "engine-1")
		if err != nil || len(inventory.Containers) > 0 {
			t.Errorf("there are the containers %v already, %v", inventory.Containers, err)
		}
		return nil
	}})
	k.mustDeploy(s, nil)
}

// usurped is a client to whose container something happens while it waits for it.
type usurped struct {
	*docker.Client
	meanwhile func(id string)
}

// WaitContainerReady implements api.ContainerClient.
func (u *usurped) WaitContainerReady(_ context.Context, _, id string, _ api.WaitOptions) error {
	u.meanwhile(id)
	return api.ErrUnhealthy
}

func TestR17WhatIsUndoneLateMeetsNoOtherContainerOfTheName(t *testing.T) {
	k := newKit(t)
	var next string
	run := deployment.RunContainerOperation{Spec: spec(image1, 1), MachineID: "engine-1", ContainerName: "web-1"}
	// While this leader waits, the next one has taken the container away and made another one.
	paused := &usurped{k.cli, func(id string) {
		k.must(k.cli.RemoveContainer(k.ctx, "engine-1", id))
		next = k.create("web-1", spec(image2, 1))
		k.must(k.cli.StartContainer(k.ctx, "engine-1", next))
	}}
	if err := run.Execute(k.ctx, paused); !errors.Is(err, api.ErrUnhealthy) {
		t.Errorf("err = %v", err)
	}
	if c := k.inspect("web-1"); c.ID != next || c.State != api.ContainerRunning {
		t.Errorf("there is %s, which is %s; want %s", c.ID, c.State, next)
	}
}

func TestR17NoRequestBeginsThatIsHeldBack(t *testing.T) {
	k := newKit(t)
	id := k.create("web-1", spec(image1, 1))
	lost := errors.New("the lease is lost")
	var mu sync.Mutex
	var asked []string
	cli := k.client(docker.Config{Machines: dockertest.Machines(k.engines), BeforeRequest: func(r *http.Request) error {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.Method)
		return lost
	}})
	for what, err := range map[string]error{
		"start":  cli.StartContainer(k.ctx, "engine-1", id),
		"remove": cli.RemoveContainer(k.ctx, "engine-1", id),
		"volume": cli.CreateVolume(k.ctx, "engine-1", api.VolumeSpec{Name: "data"}),
	} {
		if !errors.Is(err, lost) || errors.Is(err, docker.ErrUnreachable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if slices.Sort(asked); !slices.Equal(asked, []string{"DELETE", "POST", "POST"}) || k.inspect("web-1").State != api.ContainerCreated {
		t.Errorf("asked before %v; the container is %s", asked, k.inspect("web-1").State)
	}
}
