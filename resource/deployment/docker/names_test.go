package docker_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	moby "github.com/moby/moby/client"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

// service is spec with another name, on the first machine.
func service(name, image string, replicas int32) api.ServiceSpec {
	s := spec(image, replicas)
	s.Name, s.Placement.Machines = name, []string{"engine-1"}
	return s
}

// newNamesKit is newKit with names, and with a container on the first machine that asks others.
func newNamesKit(t *testing.T) (k *kit, asker api.Container) {
	k = newKitWith(t, docker.Config{Cluster: "names", Names: &docker.Names{Image: imageNames}})
	k.mustDeploy(service("asker", image1, 1), nil)
	found, err := k.cli.InspectService(k.ctx, "asker")
	k.must(err)
	return k, found.Containers[0]
}

// ask has a container ask a service by its name.
func (k *kit) ask(from api.Container, service, path string) string {
	k.Helper()
	return k.get(from, "/fetch?url="+url.QueryEscape("http://"+service+":8080"+path))
}

func TestContainersReachServicesByNameAndNoRequestIsLostInAnUpdate(t *testing.T) {
	k, asker := newNamesKit(t)
	api1 := service("api", image1, 2)
	api1.Ports = nil
	k.mustDeploy(api1, nil)
	if got := k.ask(asker, "api", "/"); !strings.HasPrefix(got, "version 1 ") {
		t.Fatalf("api says %q", got)
	}
	for name, strategy := range strategies() {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(k.ctx)
			var asking sync.WaitGroup
			for range 2 {
				asking.Go(func() {
					for ctx.Err() == nil {
						if got := k.ask(asker, "api", "/"); !strings.HasPrefix(got, "version ") {
							t.Errorf("in the update api says %q", got)
						}
					}
				})
			}
			next := api1.Clone()
			next.Container.Image = image2
			next.Container.Env = map[string]string{"STRATEGY": name}
			k.mustDeploy(next, strategy)
			cancel()
			asking.Wait()
			if got := k.ask(asker, "api", "/env?name=STRATEGY"); got != name {
				t.Errorf("after the update an earlier version answers: %q", got)
			}
		})
	}
}

func TestANameLeadsToContainersThatWorkAlone(t *testing.T) {
	k, asker := newNamesKit(t)
	s := service("api", imageSlow, 2)
	for _, name := range []string{"api-1", "api-2"} {
		k.must(k.cli.StartContainer(k.ctx, "engine-1", k.create(name, s)))
	}
	ctx := k.ctx
	k.must(k.cli.UpdateNames(ctx, "engine-1"))
	if got := k.ask(asker, "api", "/"); strings.HasPrefix(got, "version") {
		t.Errorf("a container answers whose check fails: %q", got)
	}
	first := k.inspect("api-1")
	k.get(first, "/ready")
	k.must(k.cli.WaitContainerReady(ctx, "engine-1", "api-1", s.Update.Wait()))
	for range 10 {
		if got, want := k.ask(asker, "api", "/"), "at "+first.ID[:12]; !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	second := k.inspect("api-2")
	k.get(second, "/ready")
	k.must(k.cli.WaitContainerReady(ctx, "engine-1", "api-2", s.Update.Wait()))
	k.must(k.cli.StopContainer(ctx, "engine-1", "api-1", 0))
	for range 10 {
		if got, want := k.ask(asker, "api", "/"), "at "+second.ID[:12]; !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	// What ends by itself is looked after by UpdateNames.
	engine := k.engine(k.engines[0])
	_, err := engine.ContainerKill(ctx, "api-2", moby.ContainerKillOptions{Signal: "KILL"})
	k.must(err)
	k.until("api-2 has ended or was started again", func() bool { c := k.inspect("api-2"); return !c.Ready() })
	k.must(k.cli.UpdateNames(ctx, "engine-1"))
	if got := k.ask(asker, "api", "/"); strings.HasPrefix(got, "version") {
		t.Errorf("a container answers that does not work: %q", got)
	}
}

func TestAServerOfNamesThatIsGoneComesBackAndGoesWithTheLastContainer(t *testing.T) {
	k, asker := newNamesKit(t)
	k.mustDeploy(service("api", image1, 1), nil)
	engine := k.engine(k.engines[0])
	ours := func() (servers, networks []string) {
		filter := moby.Filters{}.Add("label", docker.LabelNames)
		containers, err := engine.ContainerList(k.ctx, moby.ContainerListOptions{All: true, Filters: filter})
		k.must(err)
		for _, c := range containers.Items {
			servers = append(servers, c.ID)
		}
		found, err := engine.NetworkList(k.ctx, moby.NetworkListOptions{Filters: filter})
		k.must(err)
		for _, n := range found.Items {
			networks = append(networks, n.Name)
		}
		return servers, networks
	}
	servers, networks := ours()
	if len(servers) != 1 || len(networks) != 1 {
		t.Fatalf("servers %v, networks %v, want one of each", servers, networks)
	}
	_, err := engine.ContainerRemove(k.ctx, servers[0], moby.ContainerRemoveOptions{Force: true})
	k.must(err)
	k.must(k.cli.UpdateNames(k.ctx, "engine-1"))
	if got := k.ask(asker, "api", "/"); !strings.HasPrefix(got, "version 1 ") {
		t.Errorf("api says %q", got)
	}
	k.mustDeploy(service("api", image1, 0), nil)
	// A removal that was cut off leaves the server and the network behind.
	_, err = engine.ContainerRemove(k.ctx, asker.ID, moby.ContainerRemoveOptions{Force: true})
	k.must(err)
	if servers, networks := ours(); len(servers) != 1 || len(networks) != 1 {
		t.Fatalf("servers %v, networks %v, want one of each", servers, networks)
	}
	k.must(k.cli.UpdateNames(k.ctx, "engine-1"))
	if servers, networks := ours(); len(servers)+len(networks) > 0 {
		t.Errorf("servers %v and networks %v are left", servers, networks)
	}
	k.mustDeploy(service("asker", image1, 1), nil)
	k.mustDeploy(service("asker", image1, 0), nil)
	if servers, networks := ours(); len(servers)+len(networks) > 0 {
		t.Errorf("servers %v and networks %v are left", servers, networks)
	}
}

func TestAServerOfNamesStaysUntilTheImageOfTheNextOneIsThere(t *testing.T) {
	k, asker := newNamesKit(t)
	k.must(k.cli.StartContainer(k.ctx, "engine-1", k.create("api-1", service("api", image1, 1))))
	// Nobody answers there.
	next := k.client(docker.Config{Cluster: "names", Machines: dockertest.Machines(k.engines), Names: &docker.Names{Image: "127.0.0.1:1/names:2"}})
	k.until("api-1 works", func() bool { c := k.inspect("api-1"); return c.Ready() })
	if err := next.UpdateNames(k.ctx, "engine-1"); err == nil || !strings.Contains(err.Error(), "pull image 127.0.0.1:1/names:2: ") {
		t.Errorf("err = %v, want that the image can't be pulled", err)
	}
	if got := k.ask(asker, "api", "/"); !strings.HasPrefix(got, "version") {
		t.Errorf("api says %q", got)
	}
	// It serves those that come, too.
	k.cli = next
	k.mustDeploy(service("late", image2, 1), nil)
	if got := k.ask(asker, "late", "/"); !strings.HasPrefix(got, "version 2 ") {
		t.Errorf("late says %q", got)
	}
}

func TestR16LabelsOfAnImageDoNotMakeAServerOfNamesOrAProxyOfAContainer(t *testing.T) {
	k, asker := newNamesKit(t)
	engine := k.engine(k.engines[0])
	networks, err := engine.NetworkList(k.ctx, moby.NetworkListOptions{Filters: moby.Filters{}.Add("label", docker.LabelNames)})
	k.must(err)
	network := networks.Items[0].Name
	for name, label := range map[string]string{"names": docker.LabelNames, "ingress": docker.LabelIngress} {
		s := service(name, k.labelled(image1, map[string]string{label: network}), 1)
		k.mustDeploy(s, nil)
		// The container is older than the server then.
		_, err := engine.ContainerRemove(k.ctx, network+"-names", moby.ContainerRemoveOptions{Force: true})
		k.must(err)
		k.must(k.cli.UpdateNames(k.ctx, "engine-1"))
		k.mustBeDone(s, nil)
		if got := k.ask(asker, name, "/"); !strings.HasPrefix(got, "version 1 ") {
			t.Errorf("%s says %q", name, got)
		}
	}
}

func TestR16AServerOfNamesIsOfNoServiceWhateverItsImageSays(t *testing.T) {
	k := newKit(t)
	image := k.labelled(imageNames, map[string]string{docker.LabelService: "web", docker.LabelServiceID: "id-of-web"})
	k.cli = k.client(docker.Config{Machines: dockertest.Machines(k.engines), Names: &docker.Names{Image: image}})
	k.mustDeploy(service("web", image1, 1), nil)
}

func TestAServiceOfAnotherClusterHasNoName(t *testing.T) {
	k, asker := newNamesKit(t)
	k.mustDeploy(service("api", image1, 1), nil)
	other := k.client(docker.Config{Cluster: "others", Machines: dockertest.Machines(k.engines), Names: &docker.Names{Image: imageNames}})
	mine := k.cli
	k.cli = other
	k.mustDeploy(service("secret", image1, 1), nil)
	k.cli = mine
	if got := k.ask(asker, "secret", "/"); strings.HasPrefix(got, "version") {
		t.Errorf("a service of another cluster says %q", got)
	}
}

func TestTheNetworkStaysForAContainerThatComesDuringARemoval(t *testing.T) {
	k := newKit(t)
	asked, goOn, created := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	var removing atomic.Bool
	var id string
	listed := sync.OnceFunc(func() {
		close(goOn)
		if err := <-created; err != nil {
			t.Error(err)
		}
	})
	socket := k.inFrontOf(k.engines[0], func(r *http.Request) {
		if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/containers/") {
			removing.Store(true)
		}
		if strings.HasSuffix(r.URL.Path, "/containers/create") && r.URL.Query().Get("name") == "web-2" {
			close(asked)
			<-goOn
		}
	}, func(r *http.Request) {
		// The list is one without the container that is there when it arrives.
		filters := r.URL.Query().Get("filters")
		if removing.Load() && strings.HasSuffix(r.URL.Path, "/containers/json") && strings.Contains(filters, docker.LabelCluster) {
			listed()
		}
	})
	k.cli = k.client(docker.Config{
		Cluster: "names", Names: &docker.Names{Image: imageNames}, Machines: []docker.Machine{{ID: "engine-1", Endpoint: docker.Endpoint{Host: socket}}},
	})
	s := service("web", image1, 1)
	k.create("web-1", s)
	go func() {
		var err error
		id, err = k.cli.CreateContainer(k.ctx, "engine-1", api.CreateContainerOptions{Name: "web-2", ServiceID: "id-of-web", Spec: s})
		created <- err
	}()
	<-asked
	k.must(k.cli.RemoveContainer(k.ctx, "engine-1", "web-1"))
	listed()
	k.must(k.cli.StartContainer(k.ctx, "engine-1", id))
	k.must(k.cli.WaitContainerReady(k.ctx, "engine-1", id, s.Update.Wait()))
	if got := k.ask(k.inspect("web-2"), "web", "/"); !strings.HasPrefix(got, "version 1 ") {
		t.Errorf("web says %q", got)
	}
}
