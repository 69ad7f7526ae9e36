package machines_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

// servedAt is a service that is served in a place by a proxy, without a host name in that of the operator's domain.
func servedAt(name, image, host string) *v1alpha1.MachineService {
	s := service(name, image, 1)
	s.Spec.Ports = []api.PortSpec{{Hostname: host, ContainerPort: 8080, Protocol: api.ProtocolHTTP}}
	return s
}

// wantServed waits until the proxy of a machine says something at a place.
func (w *world) wantServed(e *dockertest.Engine, url, want string) {
	w.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(e.Address(), "80"))
	}}}
	operatortest.Eventually(w.t, url+" says "+want, func() error {
		response, err := client.Get(url)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err == nil && !strings.HasPrefix(string(body), want) {
			err = fmt.Errorf("it says %s: %q", response.Status, body)
		}
		return err
	})
}

func TestVersionsAreNotGivenUpBecauseSomebodyElseHasThePortsOfTheProxy(t *testing.T) {
	dockertest.RequireCaddy(t)
	w := newWorld(t, 1)
	if err := w.engines[0].Load(t.Context(), dockertest.Caddy("caddy:1")); err != nil {
		t.Fatal(err)
	}
	w.names, w.ingress = &docker.Names{Image: "names:1"}, &docker.Ingress{Image: "caddy:1", Internal: true}
	change(w, w.machine(0), func(m *v1alpha1.Machine) { m.Spec.Ingress = &v1alpha1.MachineIngress{} })
	held := listen(t, w.engines[0], 80)
	w.start()
	web := servedAt("web", "app:1", "")
	w.create(web)
	w.wantHolding(web, "Ready=False Retrying: ", "start the proxy for ports in mode ingress: a port of the machine is taken: ")
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	w.want(web, "Ready=True Deployed")
	w.wantServed(w.engines[0], "http://web.example.test/", "version 1 ")
}

func TestServicesAreServedByTheProxyOfAMarkedMachineAndWaitForOneAndForTheirPlace(t *testing.T) {
	dockertest.RequireCaddy(t)
	w := newWorld(t, 1)
	if err := w.engines[0].Load(t.Context(), dockertest.Caddy("caddy:1")); err != nil {
		t.Fatal(err)
	}
	w.names, w.ingress = &docker.Names{Image: "names:1"}, &docker.Ingress{Image: "caddy:1", Internal: true}
	w.start()
	web := servedAt("web", "app:1", "")
	w.create(web)
	w.want(web, "Blocked=True NoIngress: plan service web: port web.example.test:80:8080/http of service web: no machine of the cluster is for ports in mode ingress")

	machine := machineOf(w.engines[0])
	machine.Namespace = w.namespace
	change(w, machine, func(m *v1alpha1.Machine) { m.Spec.Ingress = &v1alpha1.MachineIngress{} })
	w.want(web, "Ready=True Deployed")
	w.wantServed(w.engines[0], "http://web.example.test/", "version 1 ")
	w.takeAway(w.engines[0], docker.LabelIngress)
	w.wantServed(w.engines[0], "http://web.example.test/", "version 1 ")

	second := servedAt("second", "app:2", "web.example.test")
	w.create(second)
	w.want(second, "Blocked=True LocationTaken: plan service second: service second can't be served at web.example.test: service \"web\" ")
	if err := w.user.Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	w.want(second, "Ready=True Deployed")
	w.wantServed(w.engines[0], "http://web.example.test/", "version 2 ")

	change(w, machine, func(m *v1alpha1.Machine) { m.Spec.Ingress = nil })
	w.want(second, "Blocked=True NoIngress")
	operatortest.Eventually(t, "the proxy has gone", func() error {
		for _, c := range w.inventory(w.engines[0]).Containers {
			if strings.HasSuffix(c.Name, "-ingress") {
				return fmt.Errorf("there is %s", c.Name)
			}
		}
		return nil
	})
}
