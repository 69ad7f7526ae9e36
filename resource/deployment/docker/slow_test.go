package docker_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	moby "github.com/moby/moby/client"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

type waiting struct{}

func TestAContainerThatIsStartedAgainWhileTheEngineIsSlowDoesNotWork(t *testing.T) {
	var k *kit
	var looks int
	restart := func(r *http.Request) error {
		if r.Context().Value(waiting{}) == nil || !strings.HasSuffix(r.URL.Path, "/json") {
			return nil
		}
		// Between the first two looks, longer than the container is watched.
		if looks++; looks != 2 {
			return nil
		}
		_, err := k.engine(k.engines[0]).ContainerRestart(k.ctx, "slow", moby.ContainerRestartOptions{Timeout: new(int)})
		return err
	}
	k = newKitWith(t, docker.Config{ConnectTimeout: 5 * time.Second, BeforeRequest: restart})
	s := spec(image1, 1)
	s.Container.HealthCheck = &api.HealthCheck{Disable: true}
	k.create("slow", s)
	k.must(k.cli.StartContainer(k.ctx, "engine-1", "slow"))
	ctx := context.WithValue(k.ctx, waiting{}, true)
	err := k.cli.WaitContainerReady(ctx, "engine-1", "slow", api.WaitOptions{Monitor: 10 * time.Millisecond, HealthTimeout: time.Hour})
	if !errors.Is(err, api.ErrUnhealthy) || !strings.Contains(err.Error(), "it has ended and was started again") {
		t.Errorf("err = %v", err)
	}
}

func TestSSHNeedsNoPlaceToWrite(t *testing.T) {
	k := newKit(t)
	server := dockertest.StartSSH(t)
	t.Setenv("TMPDIR", "/nowhere")
	endpoint := docker.Endpoint{Host: server.Host("deploy", k.engines[0]), SSH: &docker.SSH{Key: server.UserKey(), KnownHosts: server.KnownHosts(server.Address())}}
	if got := reason(k, endpoint); got != "" {
		t.Errorf("reason = %q", got)
	}
	endpoint.SSH.KnownHosts = []byte("example.com ssh-rsa none\n")
	if err := endpoint.Validate(); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("err = %v, want one that says which line is wrong", err)
	}
}

func TestAPortThatSomebodyHasIsSaidToBeTaken(t *testing.T) {
	k := newKit(t)
	first, second := spec(image1, 1), spec(image1, 1)
	first.Ports[0].PublishedPort, second.Ports[0].PublishedPort = 18080, 18080
	k.create("first", first)
	k.create("second", second)
	k.must(k.cli.StartContainer(k.ctx, "engine-1", "first"))
	if err := k.cli.StartContainer(k.ctx, "engine-1", "second"); !errors.Is(err, api.ErrPortTaken) {
		t.Errorf("err = %v", err)
	}
}
