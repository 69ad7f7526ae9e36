package machines

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/operator/machines"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

// Balancer leads requests to the containers of a service that work, one after the other. It asks the engines where they are, whenever
// these tell of a change. A request that a container does not answer, because it is about to stop, goes to the next one.
type Balancer struct {
	engines *docker.Client
	service string
	proxy   *httputil.ReverseProxy
	changed chan struct{}

	mu      sync.Mutex
	targets []target
	turn    int
}

// target is a container, and where it is.
type target struct{ container, address string }

// patience is how long a container may take to accept a connection, and to begin its answer, before the request goes to the next one.
// Who stops at the wrong moment may leave a connection behind that nobody ends.
const patience = 2 * time.Second

// NewBalancer returns a balancer for a service. It leads nowhere before it runs.
func NewBalancer(engines *docker.Client, service string) *Balancer {
	b := &Balancer{engines: engines, service: service, changed: make(chan struct{}, 1)}
	b.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: service}) },
		// Connections are not kept: a container that stops would have to wait for them.
		Transport: &spread{balancer: b, transport: &http.Transport{
			DisableKeepAlives: true, DialContext: (&net.Dialer{Timeout: patience}).DialContext, ResponseHeaderTimeout: patience,
		}},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	return b
}

// ServeHTTP implements http.Handler.
func (b *Balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) { b.proxy.ServeHTTP(w, r) }

// Run keeps up with the engines until the context ends.
func (b *Balancer) Run(ctx context.Context) error {
	ctx = identity.NewContext(ctx, &identity.Scope{Identity: machines.ServicesOf(Name)})
	defer b.engines.Subscribe(func(docker.Notice) { b.wake() })()
	for b.wake(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-b.changed:
		}
		if err := b.look(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("look where the containers of %s are: %w", b.service, err)
		}
	}
}

func (b *Balancer) wake() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// look asks the engines where containers are that work. There is none on machines that don't answer.
func (b *Balancer) look(ctx context.Context) error {
	service, err := b.engines.InspectService(ctx, b.service)
	if err != nil && !errors.Is(err, api.ErrNotFound) {
		return err
	}
	var targets []target
	for i := range service.Containers {
		if c := &service.Containers[i]; c.Ready() {
			for _, port := range c.Ports {
				targets = append(targets, target{c.ID, fmt.Sprintf("%s:%d", port.HostIP, port.PublishedPort)})
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.targets = targets
	return nil
}

// next returns the targets, the one whose turn it is first.
func (b *Balancer) next() []target {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.targets) == 0 {
		return nil
	}
	b.turn = (b.turn + 1) % len(b.targets)
	return slices.Concat(b.targets[b.turn:], b.targets[:b.turn])
}

// spread is a transport that goes to the targets of a balancer.
type spread struct {
	balancer  *Balancer
	transport *http.Transport
}

// rounds is how often a request goes round all targets, of which it asks anew each time.
const rounds = 3

// RoundTrip implements http.RoundTripper. Requests with a body are sent once: who knows what has become of it.
func (s *spread) RoundTrip(r *http.Request) (*http.Response, error) {
	err := errors.New("no container works")
	for range rounds {
		for _, t := range s.balancer.next() {
			response, failed := s.ask(r, t)
			if failed == nil || r.Context().Err() != nil || r.Body != nil && r.Body != http.NoBody {
				return response, failed
			}
			err = failed
		}
	}
	return nil, err
}

// ask sends a request to a container. Another one may have the port of a container that is gone by now.
func (s *spread) ask(r *http.Request, t target) (*http.Response, error) {
	request := r.Clone(r.Context())
	request.URL.Host = t.address
	response, err := s.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if host := response.Header.Get(dockertest.HostHeader); host == "" || !strings.HasPrefix(t.container, host) {
		_ = response.Body.Close()
		return nil, fmt.Errorf("container %s is not at %s any more", t.container, t.address)
	}
	return response, nil
}
