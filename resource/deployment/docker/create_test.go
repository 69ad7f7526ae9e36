package docker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	moby "github.com/moby/moby/client"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

// inFrontOf returns a socket that leads to an engine, and tells of each request before it goes on, and of each answer if that is asked for.
func (k *kit) inFrontOf(e *dockertest.Engine, request func(*http.Request), answer ...func(*http.Request)) string {
	k.Helper()
	folder, err := os.MkdirTemp("", "front") // sockets need a short path
	k.must(err)
	k.Cleanup(func() { _ = os.RemoveAll(folder) })
	listener, err := net.Listen("unix", filepath.Join(folder, "socket"))
	k.must(err)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "engine"})
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", e.Socket())
	}}
	proxy.Transport, proxy.FlushInterval = transport, -1
	proxy.ModifyResponse = func(r *http.Response) error {
		for _, tell := range answer {
			tell(r.Request)
		}
		return nil
	}
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request(r)
		proxy.ServeHTTP(w, r)
	}))
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	k.Cleanup(func() {
		server.Close()
		transport.CloseIdleConnections()
	})
	return "unix://" + listener.Addr().String()
}

func TestWhatIsBeingCreatedIsKnownOfAlsoWhenTheContextHasEnded(t *testing.T) {
	k := newKit(t)
	asked, goOn := make(chan struct{}), make(chan struct{})
	socket := k.inFrontOf(k.engines[0], func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/containers/create") {
			close(asked)
			<-goOn
		}
	})
	cli := k.client(docker.Config{Machines: []docker.Machine{{ID: "engine-1", Endpoint: docker.Endpoint{Host: socket}}}})
	ctx, cancel := context.WithCancel(k.ctx)
	options := api.CreateContainerOptions{Name: "web-1", ServiceID: "id-of-web", Spec: spec(image1, 1)}
	var id string
	created := make(chan error, 1)
	go func() {
		var err error
		id, err = cli.CreateContainer(ctx, "engine-1", options)
		created <- err
	}()
	<-asked
	cancel()
	close(goOn)
	k.must(<-created)
	if c := k.inspect("web-1"); c.ID != id {
		t.Errorf("the container is %s, and not %s", c.ID, id)
	}

	options.Name = "web-2"
	if _, err := cli.CreateContainer(ctx, "engine-1", options); !errors.Is(err, context.Canceled) {
		t.Errorf("create after the end of the context: %v", err)
	}
}

func TestConfigsOfAContainerThatComesDuringARemovalStay(t *testing.T) {
	k := newKit(t)
	s := configured(spec(image1, 1))
	k.create("web-1", s)
	// Among those that a removal sweeps, that of the container that comes is hardly the first one.
	engine := k.engine(k.engines[0])
	left, err := engine.VolumeList(k.ctx, moby.VolumeListOptions{Filters: moby.Filters{}.Add("label", docker.LabelConfigsOf)})
	k.must(err)
	for i := range 20 {
		_, err := engine.VolumeCreate(k.ctx, moby.VolumeCreateOptions{Name: fmt.Sprintf("left-%d", i), Labels: left.Items[0].Labels})
		k.must(err)
	}

	asked, goOn, created := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	var id string
	swept := sync.OnceFunc(func() {
		close(goOn)
		if err := <-created; err != nil {
			t.Error(err)
		}
	})
	k.cli = k.client(docker.Config{Machines: dockertest.Machines(k.engines), BeforeRequest: func(r *http.Request) error {
		switch {
		case strings.HasSuffix(r.URL.Path, "/containers/create") && r.URL.Query().Get("name") == "web-2":
			close(asked)
			<-goOn
		case strings.Contains(r.URL.Path, "/volumes/") && r.Method == http.MethodDelete:
			swept()
		}
		return nil
	}})
	go func() {
		var err error
		id, err = k.cli.CreateContainer(k.ctx, "engine-1", api.CreateContainerOptions{Name: "web-2", ServiceID: "id-of-web", Spec: s})
		created <- err
	}()
	<-asked
	k.must(k.cli.RemoveContainer(k.ctx, "engine-1", "web-1"))
	swept()
	k.must(k.cli.StartContainer(k.ctx, "engine-1", id))
	k.must(k.cli.WaitContainerReady(k.ctx, "engine-1", id, s.Update.Wait()))
	if got := k.get(k.inspect("web-2"), "/file?path=/etc/settings"); got != "colour: blue" {
		t.Errorf("the config is %q", got)
	}
}

// configured is a service with a config.
func configured(s api.ServiceSpec) api.ServiceSpec {
	s.Configs = []api.ConfigSpec{{Name: "settings", Content: "colour: blue"}}
	s.Container.ConfigMounts = []api.ConfigMount{{Config: "settings", Path: "/etc/settings"}}
	return s
}

// configs returns the volumes with configs on the first machine.
func (k *kit) configs() (names []string) {
	k.Helper()
	found, err := k.engine(k.engines[0]).VolumeList(k.ctx, moby.VolumeListOptions{Filters: moby.Filters{}.Add("label", docker.LabelConfigsOf)})
	k.must(err)
	for _, v := range found.Items {
		names = append(names, v.Name)
	}
	return names
}

func TestConfigsGoAlsoWhenTheRemovalOfTheirContainerIsCutOff(t *testing.T) {
	k := newKit(t)
	id := k.create("web-1", configured(spec(image1, 1)))
	socket := k.inFrontOf(k.engines[0], func(*http.Request) {}, func(r *http.Request) {
		if r.Method == http.MethodDelete {
			panic(http.ErrAbortHandler)
		}
	})
	cut := k.client(docker.Config{Machines: []docker.Machine{{ID: "engine-1", Endpoint: docker.Endpoint{Host: socket}}}})
	if err := cut.RemoveContainer(k.ctx, "engine-1", id); err == nil {
		t.Fatal("nobody has heard of the removal, and it has not failed")
	}
	if left := k.configs(); len(left) != 1 {
		t.Fatalf("there are the configs %v, want one", left)
	}
	k.must(k.cli.UpdateNames(k.ctx, "engine-1"))
	if left := k.configs(); len(left) > 0 {
		t.Errorf("the configs %v are left", left)
	}
}

func TestAContainerThatComesAfterNothingWasHeardOfItHasItsConfigs(t *testing.T) {
	k := newKit(t)
	// The engine has the request, and goes on with it later.
	var target string
	var body []byte
	socket := k.inFrontOf(k.engines[0], func(r *http.Request) {
		if r.URL.Query().Get("name") != "web-1" {
			return
		}
		target = r.URL.RequestURI()
		body, _ = io.ReadAll(r.Body)
		panic(http.ErrAbortHandler)
	})
	cut := k.client(docker.Config{Machines: []docker.Machine{{ID: "engine-1", Endpoint: docker.Endpoint{Host: socket}}}})
	s := configured(spec(image1, 1))
	if _, err := cut.CreateContainer(k.ctx, "engine-1", api.CreateContainerOptions{Name: "web-1", ServiceID: "id-of-web", Spec: s}); err == nil {
		t.Fatal("nothing was heard of the container, and its creation has not failed")
	}
	k.must(cut.UpdateNames(k.ctx, "engine-1"))
	k.must(k.post(k.engines[0], target, body))
	k.must(k.cli.StartContainer(k.ctx, "engine-1", "web-1"))
	k.must(k.cli.WaitContainerReady(k.ctx, "engine-1", "web-1", s.Update.Wait()))
	if got := k.get(k.inspect("web-1"), "/file?path=/etc/settings"); got != "colour: blue" {
		t.Errorf("the config is %q", got)
	}
}

// post asks an engine, as a client has before.
func (k *kit) post(e *dockertest.Engine, target string, body []byte) error {
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", e.Socket())
	}}
	request, err := http.NewRequestWithContext(k.ctx, http.MethodPost, "http://engine"+target, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusCreated {
		said, _ := io.ReadAll(response.Body)
		return fmt.Errorf("%s: %s", response.Status, said)
	}
	return nil
}

func TestAContainerThatExistsAlreadyCanBeSeen(t *testing.T) {
	k := newKit(t)
	options := api.CreateContainerOptions{Name: "web-1", ServiceID: "id-of-web", Spec: spec(image1, 1)}
	const creators = 8
	var wg sync.WaitGroup
	made := make(chan string, creators)
	for range creators {
		wg.Go(func() {
			id, err := k.cli.CreateContainer(k.ctx, "engine-1", options)
			if err == nil {
				made <- id
				return
			}
			if _, seen := k.cli.InspectContainer(k.ctx, "engine-1", "web-1"); !errors.Is(err, api.ErrExists) || seen != nil {
				t.Errorf("it is told: %v; who looks sees: %v", err, seen)
			}
		})
	}
	wg.Wait()
	close(made)
	if id := <-made; id != k.inspect("web-1").ID || len(made) > 0 {
		t.Errorf("%s was made, and %d others", id, len(made))
	}
}
