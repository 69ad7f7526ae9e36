package target

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// DirectConfig returns a configuration with the address and the certificates of the cluster as they are now, for libraries that have
// to know them: those that upgrade connections (exec, attach, port-forward), and those that make clients of their own. It is the
// caller's own. It holds no token and no password: its WrapTransport adds the credentials of the newest kubeconfig to each request,
// and sends it to the newest address, so that a client goes on as Client does when the kubeconfig changes. Requests of HTTP go the
// way of Client, with its connections, rates and errors. Upgrades use a connection of their own, with the CA and the client
// certificate from the time of the call; what was upgraded stays open when credentials are renewed, and ends with who opened it.
//
// A program that takes the fields of a configuration and leaves its WrapTransport out is a stranger to the cluster, which answers 401.
// While there is no kubeconfig that can be used, the address is a name that no server has, and everything fails with an
// UnreachableError.
func (c *Cluster) DirectConfig() *rest.Config {
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	config, base := c.RESTConfig(), &url.URL{Scheme: "https", Host: c.host}
	config.Transport = nil
	if conn != nil {
		base = conn.base
		config.Host, config.TLSClientConfig = base.String(), conn.config.TLSClientConfig
		config.Proxy, config.DisableCompression = conn.config.Proxy, conn.config.DisableCompression
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &entrance{cluster: c, base: base, next: next} })
	return config
}

// entrance leads requests to an address of a cluster the cluster's own way.
type entrance struct {
	cluster *Cluster
	// base is the address that requests carry.
	base *url.URL
	// next is what the configuration would send requests with, and upgrades are made by.
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (e *entrance) RoundTrip(req *http.Request) (*http.Response, error) {
	inside, err := e.inside(req)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	var resp *http.Response
	if speaksHTTP(e.next) {
		resp, err = (&gate{cluster: e.cluster, admit: e.cluster.admit}).RoundTrip(inside)
	} else {
		resp, err = e.upgrade(inside)
	}
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}

// WrappedRoundTripper lets others find the transport below.
func (e *entrance) WrappedRoundTripper() http.RoundTripper { return e.next }

// inside returns a request as the gate takes it.
func (e *entrance) inside(req *http.Request) (*http.Request, error) {
	prefix := strings.TrimSuffix(e.base.Path, "/")
	path, ok := strings.CutPrefix(req.URL.Path, prefix)
	if req.URL.Host != e.base.Host || !ok {
		return nil, errForeignHost
	}
	out := req.Clone(req.Context())
	out.URL.Host, out.URL.Path = e.cluster.host, path
	if out.URL.RawPath != "" {
		out.URL.RawPath = strings.TrimPrefix(out.URL.RawPath, strings.TrimSuffix(e.base.EscapedPath(), "/"))
	}
	return out, nil
}

// upgrade has next make a connection of its own, with the credentials that there are now.
func (e *entrance) upgrade(req *http.Request) (*http.Response, error) {
	g := &gate{cluster: e.cluster, admit: e.cluster.admit}
	conn, err := g.admit(req.Context())
	if err != nil {
		return nil, g.refused(err)
	}
	if err := e.cluster.limiter.Wait(req.Context()); err != nil {
		return nil, fmt.Errorf("wait for the rate limit of %s: %w", describe(e.cluster.key), err)
	}
	transport, err := rest.HTTPWrappersForConfig(conn.config, e.next)
	if err != nil {
		return nil, fmt.Errorf("the credentials of the kubeconfig can't be used: %w", err)
	}
	if wrap := e.cluster.clusters.config.WrapTransport; wrap != nil {
		transport = wrap(e.cluster.key, transport)
	}
	resp, err := transport.RoundTrip(conn.address(req.Context(), req))
	switch {
	case err == nil:
		e.cluster.observe(conn, outcome{code: resp.StatusCode})
	case !errors.Is(req.Context().Err(), context.Canceled):
		e.cluster.observe(conn, outcome{broken: true})
	}
	return resp, err
}

// speaksHTTP tells whether a transport sends requests as they are, and does not upgrade connections.
func speaksHTTP(transport http.RoundTripper) bool {
	for {
		switch t := transport.(type) {
		case *http.Transport:
			return true
		case utilnet.RoundTripperWrapper:
			transport = t.WrappedRoundTripper()
		default:
			return false
		}
	}
}
