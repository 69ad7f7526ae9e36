package docker_test

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	moby "github.com/moby/moby/client"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

// newMeshKit is newIngressKit with proxies on the first two machines that reach each other; the first one is marked.
func newMeshKit(t *testing.T) (*kit, docker.Config) {
	t.Helper()
	k := newIngressKit(t, 2)
	config := docker.Config{
		Cluster: "ingress", Names: &docker.Names{Image: imageNames}, Ingress: &docker.Ingress{Image: imageCaddy, Internal: true, Hold: patience},
		Machines: dockertest.Machines(k.engines),
	}
	for i, e := range k.engines[:2] {
		config.Machines[i].MeshAddress = e.MeshAddress()
	}
	config.Machines[0].Ingress = &docker.MachineIngress{}
	k.cli = k.client(config)
	return k, config
}

// hosts asks until each of a number of containers has answered, and returns their machines' answers.
func (b browser) hosts(url string, n int) map[string]bool {
	b.k.Helper()
	hosts := map[string]bool{}
	for len(hosts) < n {
		got, err := b.get(url)
		if err != nil || !strings.HasPrefix(got, "200 version ") {
			b.k.Fatalf("%s: %q, %v", url, got, err)
		}
		_, host, _ := strings.Cut(got, " at ")
		hosts[host] = true
		b.k.must(b.k.ctx.Err())
	}
	return hosts
}

func TestServicesOfOtherMachinesAreServedThroughTheirProxies(t *testing.T) {
	k, config := newMeshKit(t)
	web := served("web", image1, 1, "www.example.com:8080/http", "www.example.com:8080/https")
	web.Placement.Machines = []string{"engine-2"}
	k.mustDeploy(web, nil)
	b := k.browse(k.engines[0])
	b.want("http://www.example.com/", "200 version 1 ")
	b.certified("https://www.example.com/")
	b.want("https://www.example.com/", "200 version 1 ")
	// Nobody else is let in there.
	if conn, err := tls.Dial("tcp", net.JoinHostPort(k.engines[1].MeshAddress(), "8442"), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}); err == nil {
		_ = conn.Close()
		t.Error("a proxy lets somebody in without a certificate")
	}

	web.Replicas, web.Placement.Machines = new(int32(2)), []string{"engine-1", "engine-2"}
	k.mustDeploy(web, nil)
	k.mustHave("web", "engine-1 "+image1+" healthy", "engine-2 "+image1+" healthy")
	b.hosts("http://www.example.com/", 2)

	ctx, cancel := context.WithCancel(k.ctx)
	var asking sync.WaitGroup
	for _, url := range []string{"https://www.example.com/", "http://www.example.com/"} {
		asking.Go(func() {
			for ctx.Err() == nil {
				if got, err := b.get(url); err != nil || !strings.HasPrefix(got, "200 version ") {
					t.Errorf("in the update %s is %q, %v", url, got, err)
				}
			}
		})
	}
	web.Container.Image, web.Update.Order = image2, api.OrderStopFirst
	k.mustDeploy(web, nil)
	cancel()
	asking.Wait()
	b.hosts("https://www.example.com/", 2)

	// A client that has never seen the other machine takes nothing away from it.
	k.must(k.engines[1].Hang())
	k.must(k.cli.Close())
	k.cli = k.client(docker.Config{
		Cluster: config.Cluster, Names: config.Names, Ingress: config.Ingress, Machines: config.Machines,
	})
	k.must(k.cli.UpdateNames(k.ctx, "engine-1"))
	b.hosts("http://www.example.com/", 2)
	k.must(k.engines[1].Continue())

	k.cli = k.client(config)
	web.Replicas = new(int32(0))
	k.mustDeploy(web, nil)
	for _, e := range k.engines[:2] {
		if ids, volumes := k.proxies(e); len(ids)+len(volumes) > 0 {
			t.Errorf("on %s the proxies %v and the volumes %v are left", e.Name(), ids, volumes)
		}
	}
}

func TestAProxyThatIsMadeAnewKnowsOfMachinesThatCantBeSeen(t *testing.T) {
	k, config := newMeshKit(t)
	web := served("web", image1, 1, "www.example.com:8080/http")
	web.Placement.Machines = []string{"engine-2"}
	k.mustDeploy(web, nil)
	b := k.browse(k.engines[0])
	b.want("http://www.example.com/", "200 version 1 ")
	was, volumes := k.proxies(k.engines[0])
	if len(was) != 1 || len(volumes) != 1 {
		t.Fatalf("there are the proxies %v and the volumes %v, want one of each", was, volumes)
	}

	k.must(k.engines[1].Hang())
	k.must(k.cli.Close())
	k.cli = k.client(docker.Config{
		Cluster: config.Cluster, Names: config.Names, Ingress: config.Ingress, Machines: config.Machines,
	})
	_, err := k.engine(k.engines[0]).ContainerKill(k.ctx, was[0], moby.ContainerKillOptions{Signal: "KILL"})
	k.must(err)
	for range 2 {
		k.must(k.cli.UpdateNames(k.ctx, "engine-1"))
		b.want("http://www.example.com/", "200 version 1 ")
	}
	is, left := k.proxies(k.engines[0])
	if len(is) != 1 || is[0] == was[0] || !slices.Equal(left, volumes) {
		t.Errorf("there are the proxies %v and the volumes %v, want a new one with %v", is, left, volumes)
	}
	k.must(k.engines[1].Continue())
}

func TestServicesOfOtherMachinesAreReachedByTheirNames(t *testing.T) {
	k, _ := newMeshKit(t)
	k.mustDeploy(service("asker", image1, 1), nil)
	found, err := k.cli.InspectService(k.ctx, "asker")
	k.must(err)
	asker := found.Containers[0]
	web := served("web", image1, 1, "www.example.com:8080/https")
	web.Placement.Machines = []string{"engine-2"}
	k.mustDeploy(web, nil)
	k.mustHave("web", "engine-2 "+image1+" healthy")
	want := func(version string) {
		t.Helper()
		if got := k.ask(asker, "web", "/"); !strings.HasPrefix(got, "version "+version+" ") {
			t.Errorf("by its name web says %q, want version %s", got, version)
		}
	}
	want("1")
	// What is not in mode ingress is not led to, nor is who asks for a place by the way of names.
	if got := k.ask(asker, "asks-nobody", "/"); strings.HasPrefix(got, "version") {
		t.Errorf("a name of no service says %q", got)
	}
	b := k.browse(k.engines[0])
	b.want("http://web/", "404")

	// An update, and a move to the machine of who asks and back, lose nothing.
	ctx, cancel := context.WithCancel(k.ctx)
	var asking sync.WaitGroup
	asking.Go(func() {
		for ctx.Err() == nil {
			if got := k.ask(asker, "web", "/"); !strings.HasPrefix(got, "version ") {
				t.Errorf("meanwhile web says %q", got)
			}
		}
	})
	web.Container.Image, web.Update.Order = image2, api.OrderStopFirst
	k.mustDeploy(web, nil)
	want("2")
	for _, machine := range []string{"engine-1", "engine-2"} {
		web.Placement.Machines = []string{machine}
		k.mustDeploy(web, nil)
		k.mustHave("web", machine+" "+image2+" healthy")
		want("2")
	}
	cancel()
	asking.Wait()

	// Nobody needs a proxy without them.
	web.Replicas = new(int32(0))
	k.mustDeploy(web, nil)
	for _, e := range k.engines[:2] {
		if ids, volumes := k.proxies(e); len(ids)+len(volumes) > 0 {
			t.Errorf("on %s the proxies %v and the volumes %v are left", e.Name(), ids, volumes)
		}
	}
}
