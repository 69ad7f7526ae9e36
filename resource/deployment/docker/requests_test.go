package docker_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	moby "github.com/moby/moby/client"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

// counted marks the contexts whose requests are counted.
type counted struct{}

// requests counts requests by what they look at.
type requests struct {
	mu sync.Mutex
	of map[string]int
	// ids are those of containers that nobody should look at one by one.
	ids []string
}

func (r *requests) count(request *http.Request) error {
	if request.Context().Value(counted{}) == nil || request.Method != http.MethodGet {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for what, path := range map[string]string{"containers": "/containers/json", "volumes": "/volumes", "images": "/images/json"} {
		if strings.HasSuffix(request.URL.Path, path) && request.URL.Query().Get("filters") == "" {
			r.of[what]++
		}
	}
	for _, id := range r.ids {
		if strings.Contains(request.URL.Path, id) {
			r.of["a container of another service"]++
		}
	}
	return nil
}

func TestADeploymentAsksEachEngineOnceForWhatIsThere(t *testing.T) {
	k := newKit(t)
	r := &requests{of: map[string]int{}}
	cli, err := docker.New(docker.Config{
		Machines: dockertest.Machines(k.engines), BeforeRequest: r.count, Heartbeat: time.Hour, ConnectTimeout: patience,
	})
	k.must(err)
	t.Cleanup(func() { _ = cli.Close() })
	k.cli = cli
	db := spec(image1, 3)
	db.Name = "db"
	k.mustDeploy(db, nil)
	bystanders, err := cli.InspectService(k.ctx, "db")
	k.must(err)
	for _, c := range bystanders.Containers {
		r.ids = append(r.ids, c.ID)
	}
	k.mustDeploy(spec(image1, 3), nil)
	// What an engine tells while the plan is made is a reason to ask again.
	want, got := fmt.Sprint(map[string]int{"containers": 3, "images": 3, "volumes": 3}), ""
	for i := 0; i < 6 && got != want; i++ {
		r.mu.Lock()
		r.of = map[string]int{}
		r.mu.Unlock()
		image := image2
		if i%2 == 1 {
			image = image1
		}
		plan, err := deployment.NewDeployment(cli, spec(image, 3), nil).Run(context.WithValue(k.ctx, counted{}, true))
		k.must(err)
		if plan.Empty() {
			t.Fatal("there was nothing to do")
		}
		k.mustBeDone(spec(image, 3), nil)
		r.mu.Lock()
		got = fmt.Sprint(r.of)
		r.mu.Unlock()
	}
	if got != want {
		t.Errorf("three engines were asked %s times, want %s", got, want)
	}
}

func TestWhatChangesOfAContainerIsSeenWithoutInspectingIt(t *testing.T) {
	k := newKit(t)
	k.mustDeploy(spec(image1, 3), nil)
	engine := k.engine(k.engines[0])
	before := k.now("web")
	inventory, err := k.cli.InspectMachine(k.ctx, "engine-1")
	k.must(err)
	id := inventory.Containers[0].ID
	_, err = engine.ContainerPause(k.ctx, id, moby.ContainerPauseOptions{})
	k.must(err)
	k.until("the container is paused", func() bool { return strings.Contains(strings.Join(k.now("web"), ","), " paused") })
	_, err = engine.ContainerUnpause(k.ctx, id, moby.ContainerUnpauseOptions{})
	k.must(err)
	k.until("it goes on", func() bool { return fmt.Sprint(k.now("web")) == fmt.Sprint(before) })
	limit := container.Resources{Memory: 64 << 20, MemorySwap: 64 << 20}
	_, err = engine.ContainerUpdate(k.ctx, id, moby.ContainerUpdateOptions{Resources: &limit})
	k.must(err)
	k.until("its limit is known", func() bool {
		inventory, err := k.cli.InspectMachine(k.ctx, "engine-1")
		k.must(err)
		return inventory.Containers[0].Spec.Container.Resources.Memory != nil
	})
}

func TestAContainerThatDoesNotWorkIsKeptWithItsLog(t *testing.T) {
	k := newKit(t)
	s := spec(image1, 1)
	s.Placement.Machines = []string{"engine-1"}
	s.Container.Command, s.Container.RestartPolicy.Name = []string{"say", "something"}, "no"
	if _, err := k.deploy(s, nil); err == nil {
		t.Fatal("it works")
	}
	inventory, err := k.cli.InspectMachine(k.ctx, "engine-1")
	k.must(err)
	if n := len(inventory.Containers); n != 1 || !inventory.Containers[0].Failed() || inventory.Containers[0].Active() {
		t.Fatalf("there are %+v", inventory.Containers)
	}
	lines, err := k.cli.LastLines(k.ctx, "engine-1", inventory.Containers[0].ID)
	if err != nil || !strings.Contains(lines, "something") {
		t.Errorf("its log has %q, %v", lines, err)
	}
	s.Container.Command = nil
	k.mustDeploy(s, nil)
	inventory, err = k.cli.InspectMachine(k.ctx, "engine-1")
	k.must(err)
	if n := len(inventory.Containers); n != 1 || inventory.Containers[0].Failed() {
		t.Errorf("there are %+v", inventory.Containers)
	}
}
