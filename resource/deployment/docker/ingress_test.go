package docker_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	moby "github.com/moby/moby/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// imageCaddy is put onto engines by the tests that need it.
const imageCaddy = "example.com/caddy:1"

// newIngressKit is newKit with names and with an ingress on the first machines.
func newIngressKit(t *testing.T, marked int) *kit {
	t.Helper()
	dockertest.RequireCaddy(t)
	config := docker.Config{
		Cluster: "ingress", Domain: "example.test", Names: &docker.Names{Image: imageNames}, Ingress: &docker.Ingress{Image: imageCaddy, Internal: true, Hold: patience},
	}
	k := newKitWith(t, config)
	config.Machines = dockertest.Machines(k.engines)
	for i, e := range k.engines[:marked] {
		k.must(e.Load(k.ctx, dockertest.Caddy(imageCaddy)))
		config.Machines[i].Ingress = &docker.MachineIngress{}
	}
	k.must(k.cli.SetMachines(config.Machines))
	return k
}

// served is a service on the first machine that is served in a place.
func served(name, image string, replicas int32, ports ...string) api.ServiceSpec {
	s := service(name, image, replicas)
	s.Ports = nil
	for _, text := range ports {
		p, err := api.ParsePort(text)
		if err != nil {
			panic(err)
		}
		s.Ports = append(s.Ports, p)
	}
	return s
}

// browser asks proxies as somebody does who looks their addresses up.
type browser struct {
	k      *kit
	client *http.Client
}

// browse returns one that asks a machine, whose certificates it trusts.
func (k *kit) browse(e *dockertest.Engine) browser {
	k.Helper()
	var root []byte
	operatortest.Eventually(k.T, "the proxy has made its root", func() (err error) {
		root, err = k.cli.IngressRoot(k.ctx, e.Name())
		return err
	})
	return k.browseAt(e.Address(), root)
}

// browseAt returns one that asks at an address, and trusts what a root has signed.
func (k *kit) browseAt(host string, root []byte) browser {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(root)
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, _ := net.SplitHostPort(address)
			return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(host, port))
		},
	}
	k.Cleanup(transport.CloseIdleConnections)
	return browser{k, &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// get returns the status and what is said.
func (b browser) get(url string) (string, error) {
	request, err := http.NewRequestWithContext(b.k.ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := b.client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return strings.TrimSpace(fmt.Sprint(response.StatusCode, " ", response.Header.Get("Location"), string(body))), err
}

func (b browser) want(url, want string) {
	b.k.Helper()
	if got, err := b.get(url); err != nil || !strings.HasPrefix(got, want) {
		b.k.Errorf("%s: %q, %v, want %q", url, got, err, want)
	}
}

// certified waits until a host that is new to a proxy has its certificate, without which connections to it fail.
func (b browser) certified(url string) {
	b.k.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		_, err := b.get(url)
		if err == nil {
			return
		}
		select {
		case <-again.C:
		case <-b.k.ctx.Done():
			b.k.Fatalf("%s: %v", url, err)
		}
	}
}

func TestAPortInModeIngressIsReachedByItsHostName(t *testing.T) {
	k := newIngressKit(t, 1)
	// Without a placement, to see that the proxy is where the containers are.
	web := served("web", image1, 2, "www.example.com:8080/http", "8080/https", "secret.example.com:8080/https")
	web.Placement = api.Placement{}
	k.mustDeploy(web, nil)
	k.mustHave("web", "engine-1 "+image1+" healthy", "engine-1 "+image1+" healthy")
	b := k.browse(k.engines[0])
	b.want("http://www.example.com/", "200 version 1 ")
	for _, url := range []string{"https://secret.example.com/", "https://web.example.test/"} {
		b.certified(url)
		b.want(url, "200 version 1 ")
	}
	b.want("http://web.example.test/env?name=A", "308 https://web.example.test/env?name=A")
	b.want("http://other.example.com/", "404 no service is here")
}

func TestWithoutAMachineForItAPortInModeIngressIsRefused(t *testing.T) {
	k := newIngressKit(t, 0)
	_, err := k.deploy(served("web", image1, 1, "www.example.com:8080/http"), nil)
	if !errors.Is(err, scheduler.ErrNoIngress) || !strings.Contains(err.Error(), "port www.example.com:80:8080/http of service web: ") {
		t.Errorf("got %v", err)
	}
}

func TestServicesShareAHostByTheirPathsAndNoneTakesThePlaceOfAnother(t *testing.T) {
	k := newIngressKit(t, 1)
	k.mustDeploy(served("web", image1, 1, "www.example.com:8080/http"), nil)
	k.mustDeploy(served("api", image2, 1, "www.example.com/api:8080/http"), nil)
	b := k.browse(k.engines[0])
	for path, want := range map[string]string{"": "1", "/": "1", "/apis": "1", "/a": "1", "/api": "2", "/api/": "2", "/api/v1?a=b": "2"} {
		b.want("http://www.example.com"+path, "200 version "+want+" ")
	}
	for _, port := range []string{"www.example.com/api:8080/http", "www.example.com/api:8080/https", "www.example.com:8080/http"} {
		_, err := k.deploy(served("other", image2, 1, port), nil)
		var taken *scheduler.LocationError
		want := map[bool]string{true: "api", false: "web"}[strings.Contains(port, "/api")]
		if !errors.As(err, &taken) || !strings.Contains(taken.Other, want) {
			t.Errorf("%s: got %v, want that service %s is there", port, err, want)
		}
	}
	k.mustDeploy(served("api", image2, 0, "www.example.com/api:8080/http"), nil)
	b.want("http://www.example.com/api", "200 version 1 ")
	k.mustDeploy(served("other", image2, 1, "www.example.com/api:8080/http"), nil)
	b.want("http://www.example.com/api", "200 version 2 ")
}

func TestNoRequestThroughAProxyIsLostInAnUpdate(t *testing.T) {
	k := newIngressKit(t, 1)
	web := served("web", image1, 2, "www.example.com:8080/https", "plain.example.com:8080/http")
	k.mustDeploy(web, nil)
	b := k.browse(k.engines[0])
	b.certified("https://www.example.com/")
	updates := map[string]func(*api.ServiceSpec){
		"start-first": func(*api.ServiceSpec) {},
		// For a moment none works, and the proxy is told of another place.
		"stop-first": func(s *api.ServiceSpec) {
			s.Update.Order = api.OrderStopFirst
			s.Ports = append(s.Ports, api.PortSpec{Mode: api.PortModeIngress, Hostname: "more.example.com", ContainerPort: 8080, Protocol: api.ProtocolHTTP})
		},
	}
	for name, update := range updates {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(k.ctx)
			var asking sync.WaitGroup
			for _, url := range []string{"https://www.example.com/", "http://plain.example.com/"} {
				asking.Go(func() {
					for ctx.Err() == nil {
						if got, err := b.get(url); err != nil || !strings.HasPrefix(got, "200 version ") {
							t.Errorf("in the update %s is %q, %v", url, got, err)
						}
					}
				})
			}
			next := web.Clone()
			next.Container.Image, next.Container.Env = image2, map[string]string{"UPDATE": name}
			update(&next)
			k.mustDeploy(next, nil)
			cancel()
			asking.Wait()
			b.want("https://www.example.com/env?name=UPDATE", "200 "+name)
			web = next
		})
	}
	b.want("http://more.example.com/", "200 version 2 ")
}

// TestAProxyThatHangsUpIsToldAgain tries the command by which a proxy is told what to serve with ones that do not answer, and with one that
// does.
func TestAProxyThatHangsUpIsToldAgain(t *testing.T) {
	dockertest.RequireCaddy(t)
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		// serve does with a connection what the proxy does. Without it there is none.
		serve func(*net.TCPConn)
		want  bool
	}{
		"not there":    {want: true},
		"it hangs up":  {func(conn *net.TCPConn) { _ = conn.SetLinger(0) }, true},
		"it has ended": {func(conn *net.TCPConn) { _, _ = http.ReadRequest(bufio.NewReader(conn)) }, true},
		"it refuses it": {func(conn *net.TCPConn) {
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			if test.serve == nil {
				_ = listener.Close()
			}
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					test.serve(conn.(*net.TCPConn))
					_ = conn.Close()
				}
			}()
			command := docker.Reload(file, listener.Addr().String())
			output, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput()
			if err == nil || docker.Unanswered(string(output)) != test.want {
				t.Errorf("told again: %v, want %v, after %v: %s", !test.want, test.want, err, output)
			}
		})
	}
}

// proxies are those on an engine, and what they have.
func (k *kit) proxies(e *dockertest.Engine) (ids, volumes []string) {
	k.Helper()
	engine := k.engine(e)
	containers, err := engine.ContainerList(k.ctx, moby.ContainerListOptions{All: true, Filters: moby.Filters{}.Add("label", docker.LabelIngress)})
	k.must(err)
	for _, c := range containers.Items {
		ids = append(ids, c.ID)
	}
	found, err := engine.VolumeList(k.ctx, moby.VolumeListOptions{})
	k.must(err)
	for _, v := range found.Items {
		volumes = append(volumes, v.Name)
	}
	return ids, volumes
}

func TestAProxyComesBackAndGoesWithTheLastServiceThatNeedsIt(t *testing.T) {
	k := newIngressKit(t, 1)
	k.mustDeploy(service("asker", image1, 1), nil)
	if ids, _ := k.proxies(k.engines[0]); len(ids) > 0 {
		t.Error("there is a proxy that nobody needs")
	}
	web := served("web", image1, 1, "www.example.com:8080/https")
	k.mustDeploy(web, nil)
	b := k.browse(k.engines[0])
	b.certified("https://www.example.com/")
	ids, _ := k.proxies(k.engines[0])
	if len(ids) != 1 {
		t.Fatalf("there are the proxies %v, want one", ids)
	}
	_, err := k.engine(k.engines[0]).ContainerRemove(k.ctx, ids[0], moby.ContainerRemoveOptions{Force: true})
	k.must(err)
	k.must(k.cli.UpdateNames(k.ctx, "engine-1"))
	// With the authority that it had.
	b.certified("https://www.example.com/")
	b.want("https://www.example.com/", "200 version 1 ")
	web.Replicas = new(int32(0))
	k.mustDeploy(web, nil)
	if ids, volumes := k.proxies(k.engines[0]); len(ids)+len(volumes) > 0 {
		t.Errorf("the proxies %v and the volumes %v are left", ids, volumes)
	}
	// A machine that is for it no more is left as well.
	web.Replicas = new(int32(1))
	k.mustDeploy(web, nil)
	k.must(k.cli.SetMachines(dockertest.Machines(k.engines)))
	k.must(k.cli.UpdateNames(k.ctx, "engine-1"))
	if ids, volumes := k.proxies(k.engines[0]); len(ids)+len(volumes) > 0 {
		t.Errorf("the proxies %v and the volumes %v are left", ids, volumes)
	}
}

func TestCertificatesAreAskedForByACME(t *testing.T) {
	k := newIngressKit(t, 1)
	// The network is there with the first container.
	k.mustDeploy(service("asker", image1, 1), nil)
	engine := k.engine(k.engines[0])
	networks, err := engine.NetworkList(k.ctx, moby.NetworkListOptions{Filters: moby.Filters{}.Add("label", docker.LabelNames)})
	k.must(err)
	address := k.engines[0].MeshAddress()
	// Another Caddy is the authority.
	data, config := t.TempDir(), filepath.Join(t.TempDir(), "acme.json")
	k.must(os.WriteFile(config, []byte(`{"admin": {"disabled": true}, "apps": {
		"pki": {"certificate_authorities": {"local": {"install_trust": false}}},
		"tls": {"automation": {"policies": [{"issuers": [{"module": "internal"}]}]}},
		"http": {"servers": {"acme": {"listen": [":443"], "routes": [{"match": [{"host": ["acme"]}], "handle": [{"handler": "acme_server"}]}]}}}}}`), 0o644))
	authority, err := engine.ContainerCreate(k.ctx, moby.ContainerCreateOptions{
		Name: "acme", Config: &container.Config{Image: imageCaddy, Cmd: []string{"run", "--config", "/acme.json"}, Env: []string{"XDG_DATA_HOME=/data", "XDG_CONFIG_HOME=/data"}},
		HostConfig: &container.HostConfig{
			NetworkMode: container.NetworkMode(networks.Items[0].Name), Binds: []string{config + ":/acme.json:ro", data + ":/data"},
			ExtraHosts: []string{"www.example.com:" + address},
		},
	})
	k.must(err)
	_, err = engine.ContainerStart(k.ctx, authority.ID, moby.ContainerStartOptions{})
	k.must(err)
	var root []byte
	for again := time.NewTicker(50 * time.Millisecond); root == nil; <-again.C {
		written, _ := os.ReadFile(filepath.Join(data, "caddy/pki/authorities/local/root.crt"))
		if whole, _ := pem.Decode(written); whole != nil {
			root = written
		}
		k.must(k.ctx.Err())
	}

	machines := dockertest.Machines(k.engines)
	machines[0].Ingress = &docker.MachineIngress{HostIP: address}
	k.cli = k.client(docker.Config{
		Cluster: "ingress", Machines: machines, Names: &docker.Names{Image: imageNames},
		Ingress: &docker.Ingress{Image: imageCaddy, ACME: docker.ACME{Directory: "https://acme/acme/local/directory", Email: "ops@example.com", Roots: root}},
	})
	k.mustDeploy(served("web", image1, 1, "www.example.com:8080/https"), nil)
	b := k.browseAt(address, root)
	b.certified("https://www.example.com/")
	b.want("https://www.example.com/", "200 version 1 ")
}

func TestARootOfAProxyThatIsHalfWrittenIsNone(t *testing.T) {
	k := newIngressKit(t, 1)
	k.mustDeploy(served("web", image1, 1, "www.example.com:8080/http"), nil)
	k.browse(k.engines[0])
	root, err := k.cli.IngressRoot(k.ctx, "engine-1")
	k.must(err)
	ids, _ := k.proxies(k.engines[0])
	k.must(docker.WriteFile(k.ctx, k.engine(k.engines[0]), ids[0], docker.RootFile, root[:len(root)/2]))
	if root, err := k.cli.IngressRoot(k.ctx, "engine-1"); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("the root is %q, %v", root, err)
	}
}

func TestAProxyThatEndsWhileItIsToldSaysNothingOfTheContainer(t *testing.T) {
	k := newIngressKit(t, 1)
	k.mustDeploy(served("web", image1, 1, "www.example.com:8080/http"), nil)
	ids, _ := k.proxies(k.engines[0])
	engine := k.engine(k.engines[0])
	socket := k.inFrontOf(k.engines[0], func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/containers/"+ids[0]+"/exec") {
			// It may have ended in an earlier try.
			_, _ = engine.ContainerKill(k.ctx, ids[0], moby.ContainerKillOptions{Signal: "KILL"})
		}
	})
	k.cli = k.client(docker.Config{
		Cluster: "ingress", Names: &docker.Names{Image: imageNames}, Ingress: &docker.Ingress{Image: imageCaddy, Internal: true, Hold: patience},
		Machines: []docker.Machine{{ID: "engine-1", Endpoint: docker.Endpoint{Host: socket}, Ingress: &docker.MachineIngress{}}},
	})
	late := configured(served("late", image2, 1, "late.example.com:8080/http"))
	_, err := k.cli.CreateContainer(k.ctx, "engine-1", api.CreateContainerOptions{Name: "late-1", ServiceID: "id-of-late", Spec: late})
	if !errors.Is(err, api.ErrUnprepared) {
		t.Errorf("err = %v, want %v", err, api.ErrUnprepared)
	}
	if left := k.configs(); len(left) > 0 {
		t.Errorf("the configs %v are left", left)
	}
}

func TestAProxyThatCantBeStartedWakesNobody(t *testing.T) {
	k := newIngressKit(t, 1)
	_, err := k.cli.ListMachines(k.ctx) // machines that are connected to later are told of
	k.must(err)
	held, err := net.Listen("tcp", net.JoinHostPort(k.engines[0].Address(), "80"))
	k.must(err)
	defer func() { _ = held.Close() }()
	notices := make(chan docker.Notice, 1000)
	defer k.cli.Subscribe(func(n docker.Notice) { notices <- n })()
	// until returns what is told until a container of a service that is new is told of.
	until := func(marker string) (told []docker.Notice) {
		k.create(marker+"-1", service(marker, image1, 1))
		for {
			select {
			case n := <-notices:
				if n.Service == marker {
					return told
				}
				told = append(told, n)
			case <-k.ctx.Done():
				t.Fatalf("nobody was told of %s", marker)
			}
		}
	}
	web := served("web", image1, 1, "www.example.com:8080/http")
	fails := func() {
		_, err := k.cli.CreateContainer(k.ctx, "engine-1", api.CreateContainerOptions{Name: "web-1", ServiceID: "id-of-web", Spec: web})
		if !errors.Is(err, api.ErrPortTaken) {
			t.Fatalf("err = %v, want %v", err, api.ErrPortTaken)
		}
	}
	until("first")
	for range 2 {
		fails()
	}
	if told := until("second"); len(told) > 0 {
		t.Errorf("of proxies that can't be started was told %v", told)
	}
}
