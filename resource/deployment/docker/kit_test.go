package docker_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	moby "github.com/moby/moby/client"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

// patience is how long a test waits for what must come.
const patience = 15 * time.Minute

// The images of the tests, which are on all engines.
const (
	image1     = "example.com/app:1"
	image2     = "example.com/app:2"
	imageSick  = "example.com/app:sick"
	imageExits = "example.com/app:exits"
	imageSlow  = "example.com/app:slow"
	imageNames = "example.com/names:1"
)

// pool has the engines of all tests.
var pool = dockertest.Pool{Images: []dockertest.Image{
	dockertest.App(image1, map[string]string{"VERSION": "1"}), dockertest.App(image2, map[string]string{"VERSION": "2"}),
	dockertest.App(imageSick, map[string]string{"MODE": "unhealthy"}), dockertest.App(imageExits, map[string]string{"MODE": "exit"}),
	dockertest.App(imageSlow, map[string]string{"MODE": "slow"}), dockertest.Names(imageNames),
}}

// kit is what a test works with.
type kit struct {
	*testing.T
	ctx     context.Context
	engines []*dockertest.Engine
	cli     *docker.Client

	mu sync.Mutex
	// changed is closed at the next notice.
	changed chan struct{}
}

// newKit returns three machines engine-1, engine-2 and engine-3 with nothing on them but images.
func newKit(t *testing.T) *kit { return newKitWith(t, docker.Config{}) }

// newImpatientKit is newKit for tests in which an engine falls silent: a machine is given up soon, as also happens to an engine that
// is only slow.
func newImpatientKit(t *testing.T) *kit {
	return newKitWith(t, docker.Config{ConnectTimeout: 5 * time.Second})
}

func newKitWith(t *testing.T, config docker.Config) *kit {
	t.Helper()
	dockertest.Require(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	k := &kit{T: t, ctx: ctx, engines: pool.Take(t, 3), changed: make(chan struct{})}
	config.Machines = dockertest.Machines(k.engines)
	k.cli = k.client(config)
	return k
}

// bump makes until look again.
func (k *kit) bump() {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.changed)
	k.changed = make(chan struct{})
}

// client returns a client that is quick to notice, and ends with the test. Its notices make until look again.
func (k *kit) client(config docker.Config) *docker.Client {
	k.Helper()
	config.Heartbeat, config.ConnectTimeout = time.Second, cmp.Or(config.ConnectTimeout, patience)
	cli, err := docker.New(config)
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() { _ = cli.Close() })
	k.Cleanup(cli.Subscribe(func(docker.Notice) { k.bump() }))
	return cli
}

// engine returns a client of an engine, past the one that is tested.
func (k *kit) engine(e *dockertest.Engine) *moby.Client {
	k.Helper()
	engine, err := e.Client()
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() { _ = engine.Close() })
	return engine
}

// spec returns a service with a number of containers and an ephemeral port.
func spec(image string, replicas int32) api.ServiceSpec {
	return api.ServiceSpec{
		Name: "web", Replicas: ptr.To(replicas),
		Container: api.ContainerSpec{Image: image, PullPolicy: api.PullNever},
		Ports:     []api.PortSpec{{Mode: api.PortModeHost, ContainerPort: 8080}},
		Update: api.UpdateConfig{
			Parallelism: 3, Monitor: &metav1.Duration{Duration: 100 * time.Millisecond}, HealthTimeout: &metav1.Duration{Duration: patience},
		},
	}
}

// deploy brings the machines to a specification, and returns the plan. As controllers do, it makes another plan when things have
// changed meanwhile.
func (k *kit) deploy(s api.ServiceSpec, strategy deployment.Strategy) (deployment.Plan, error) {
	for {
		plan, err := deployment.NewDeployment(k.cli, s, strategy).Run(k.ctx)
		if !errors.Is(err, deployment.ErrStalePlan) {
			return plan, err
		}
	}
}

func (k *kit) mustDeploy(s api.ServiceSpec, strategy deployment.Strategy) {
	k.Helper()
	if _, err := k.deploy(s, strategy); err != nil {
		k.Fatal(err)
	}
	k.mustBeDone(s, strategy)
}

// mustBeDone says what is still to be done.
func (k *kit) mustBeDone(s api.ServiceSpec, strategy deployment.Strategy) {
	k.Helper()
	plan, err := deployment.NewDeployment(k.cli, s, strategy).Plan(k.ctx)
	if err != nil {
		k.Fatal(err)
	}
	if !plan.Empty() {
		k.Fatalf("there is still something to do:\n%s", plan.Format(nil))
	}
}

// now returns the containers of a service that there are, as machine/image/state, sorted.
func (k *kit) now(service string) []string {
	k.Helper()
	var out []string
	for _, e := range k.engines {
		inventory, err := k.cli.InspectMachine(k.ctx, e.Name())
		if err != nil {
			k.Fatal(err)
		}
		for _, c := range inventory.Containers {
			if c.ServiceName == service && !c.Failed() {
				state := string(c.State)
				if c.Health != api.HealthNone {
					state = string(c.Health)
				}
				out = append(out, fmt.Sprintf("%s %s %s", e.Name(), c.Spec.Container.Image, state))
			}
		}
	}
	slices.Sort(out)
	return out
}

func (k *kit) mustHave(service string, want ...string) {
	k.Helper()
	slices.Sort(want)
	if have := k.now(service); !slices.Equal(have, want) {
		k.Fatalf("there are\n%q, want\n%q", have, want)
	}
}

// onEach returns the containers that there are when each machine has one.
func onEach(image, state string) []string {
	return []string{"engine-1 " + image + " " + state, "engine-2 " + image + " " + state, "engine-3 " + image + " " + state}
}

// until waits until something is so, looking again at every notice.
func (k *kit) until(what string, is func() bool) {
	k.Helper()
	for {
		k.mu.Lock()
		changed := k.changed
		k.mu.Unlock()
		if is() {
			return
		}
		select {
		case <-changed:
		case <-k.ctx.Done():
			k.Fatalf("waited in vain: %s", what)
		}
	}
}

// state returns what the client knows of a machine.
func (k *kit) state(name string) api.Machine {
	k.Helper()
	machines, err := k.cli.ListMachines(k.ctx)
	if err != nil {
		k.Fatal(err)
	}
	i := slices.IndexFunc(machines, func(m api.Machine) bool { return m.Name == name })
	return machines[i]
}

// create creates a container on the first machine, without starting it.
func (k *kit) create(name string, s api.ServiceSpec) string {
	k.Helper()
	id, err := k.cli.CreateContainer(k.ctx, "engine-1", api.CreateContainerOptions{Name: name, ServiceID: "id-of-" + s.Name, Spec: s})
	if err != nil {
		k.Fatal(err)
	}
	return id
}

func (k *kit) inspect(name string) api.Container {
	k.Helper()
	c, err := k.cli.InspectContainer(k.ctx, "engine-1", name)
	if err != nil {
		k.Fatal(err)
	}
	return c
}

func (k *kit) must(err error) {
	k.Helper()
	if err != nil {
		k.Fatal(err)
	}
}

// get asks a container at its published port.
func (k *kit) get(c api.Container, path string) string {
	k.Helper()
	if len(c.Ports) != 1 {
		k.Fatalf("container %s has the ports %v, want one", c.Name, c.Ports)
	}
	request, err := http.NewRequestWithContext(k.ctx, http.MethodGet, fmt.Sprintf("http://%s:%d%s", c.Ports[0].HostIP, c.Ports[0].PublishedPort, path), nil)
	k.must(err)
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	k.must(err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	k.must(err)
	return string(body)
}
