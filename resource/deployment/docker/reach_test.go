package docker_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

// reason returns why the only machine of a client can't be seen, or nothing.
func reason(k *kit, endpoint docker.Endpoint) string {
	cli := k.client(docker.Config{Machines: []docker.Machine{{ID: "m", Endpoint: endpoint}}})
	machines, err := cli.ListMachines(k.ctx)
	k.must(err)
	if _, err := cli.InspectMachine(k.ctx, "m"); (err == nil) != (machines[0].State == api.MachineAvailable) {
		k.Errorf("machine = %+v, but inspect: %v", machines[0], err)
	}
	return machines[0].Reason
}

func TestAnEngineIsReachedByTLS(t *testing.T) {
	k := newKit(t)
	ours, others := dockertest.NewAuthority(t), dockertest.NewAuthority(t)
	engine := dockertest.Start(t, 1)[0]
	address, err := engine.ListenTLS(k.ctx, ours, "engine.test")
	k.must(err)
	ca, client, otherClient := ours.PEM(), ours.Client(t), others.Client(t)
	for name, test := range map[string]struct {
		tls   *docker.TLS
		fault string
	}{
		"by name":            {&docker.TLS{CA: ca, Cert: client.Cert, Key: client.Key, ServerName: "engine.test"}, ""},
		"by another name":    {&docker.TLS{CA: ca, Cert: client.Cert, Key: client.Key}, "certificate"},
		"by another CA":      {&docker.TLS{CA: others.PEM(), Cert: client.Cert, Key: client.Key, ServerName: "engine.test"}, "certificate"},
		"for another client": {&docker.TLS{CA: ca, Cert: otherClient.Cert, Key: otherClient.Key, ServerName: "engine.test"}, "tls"},
		"for nobody":         {&docker.TLS{CA: ca, ServerName: "engine.test"}, "tls"},
		"without it":         {nil, "HTTPS"},
	} {
		t.Run(name, func(t *testing.T) {
			got := reason(k, docker.Endpoint{Host: "tcp://" + address, TLS: test.tls})
			if (got == "") != (test.fault == "") || !strings.Contains(strings.ToLower(got), strings.ToLower(test.fault)) {
				t.Errorf("reason = %q, want %q", got, test.fault)
			}
		})
	}
}

func TestAnEngineIsReachedBySSH(t *testing.T) {
	k := newKit(t)
	server, other := dockertest.StartSSH(t), dockertest.StartSSH(t)
	key, otherKey := server.UserKey(), other.UserKey()
	known, foreign := server.KnownHosts(server.Address()), other.KnownHosts(server.Address())
	at := func(user string) string { return server.Host(user, k.engines[0]) }
	for name, test := range map[string]struct {
		endpoint docker.Endpoint
		fault    string
	}{
		"with a key":        {docker.Endpoint{Host: at("deploy"), SSH: &docker.SSH{Key: key, KnownHosts: known}}, ""},
		"with another key":  {docker.Endpoint{Host: at("deploy"), SSH: &docker.SSH{Key: otherKey, KnownHosts: known}}, "unable to authenticate"},
		"as another user":   {docker.Endpoint{Host: at("root"), SSH: &docker.SSH{Key: key, KnownHosts: known}}, "unable to authenticate"},
		"at another host":   {docker.Endpoint{Host: at("deploy"), SSH: &docker.SSH{Key: key, KnownHosts: foreign}}, "key"},
		"at another socket": {docker.Endpoint{Host: at("deploy") + "x", SSH: &docker.SSH{Key: key, KnownHosts: known}}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			got := reason(k, test.endpoint)
			if (got == "") != (test.fault == "") || !strings.Contains(got, test.fault) {
				t.Errorf("reason = %q, want %q", got, test.fault)
			}
		})
	}
	_, err := docker.New(docker.Config{Machines: []docker.Machine{{ID: "m", Endpoint: docker.Endpoint{Host: at("deploy"), SSH: &docker.SSH{Key: key}}}}})
	if err == nil || !strings.Contains(err.Error(), "no key of it is in SSH.KnownHosts") {
		t.Errorf("a host that is not known: %v", err)
	}

	// A service is deployed over it, and a connection that is cut comes back.
	k.cli = k.client(docker.Config{Machines: []docker.Machine{
		{ID: "engine-1", Endpoint: docker.Endpoint{Host: at("deploy"), SSH: &docker.SSH{Key: key, KnownHosts: known}}},
	}})
	var gone sync.Once
	away := make(chan struct{})
	t.Cleanup(k.cli.Subscribe(func(n docker.Notice) {
		if status, _ := k.cli.Status("engine-1"); status.Connected && n.Service == "" {
			gone.Do(func() { close(away) })
		}
	}))
	k.mustDeploy(spec(image1, 2), nil)
	server.Cut()
	ctx, cancel := context.WithTimeout(k.ctx, patience)
	defer cancel()
	select {
	case <-away:
	case <-ctx.Done():
		t.Fatal("the connection did not come back")
	}
	k.mustBeDone(spec(image1, 2), nil)
}
