package docker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	moby "github.com/moby/moby/client"
)

// dialer opens connections to an engine.
type dialer interface {
	// open returns a client of the engine with an option, and what takes down all that is below it.
	open(ctx context.Context, option moby.Opt) (*moby.Client, func(), error)
}

// dialer returns what the endpoint says, or what is wrong with it.
func (e *Endpoint) dialer() (dialer, error) {
	u, err := e.parse()
	if err != nil {
		return nil, err
	}
	if e.TLS != nil && u.Scheme != "tcp" || e.SSH != nil && u.Scheme != "ssh" {
		return nil, fmt.Errorf("host %s: TLS is for tcp, and SSH for ssh", e.Host)
	}
	switch u.Scheme {
	case "unix":
		if u.Host != "" || u.Path == "" {
			return nil, fmt.Errorf("host %s: after unix:// comes an absolute path", e.Host)
		}
		return socketDialer(e.Host), nil
	case "tcp":
		return newTCPDialer(e, u)
	case "ssh":
		return newSSHDialer(e, u)
	}
	return nil, fmt.Errorf("host %q begins with none of unix://, tcp://, ssh://", e.Host)
}

// idle is how many connections to an engine wait for use.
const idle = 16

// engineOver returns a client of an engine over a transport of its own.
func engineOver(transport *http.Transport, options ...moby.Opt) (*moby.Client, func(), error) {
	transport.MaxIdleConnsPerHost, transport.IdleConnTimeout = idle, 30*time.Second
	scheme := "http"
	if transport.TLSClientConfig != nil {
		scheme = "https"
	}
	engine, err := moby.New(append([]moby.Opt{
		moby.WithHTTPClient(&http.Client{Transport: transport, CheckRedirect: moby.CheckRedirect}), moby.WithScheme(scheme),
	}, options...)...)
	if err != nil {
		return nil, nil, err
	}
	return engine, func() { _ = engine.Close() }, nil
}

// socketDialer is the host of an engine on this machine.
type socketDialer string

func (d socketDialer) open(_ context.Context, option moby.Opt) (*moby.Client, func(), error) {
	return engineOver(&http.Transport{}, option, moby.WithHost(string(d)))
}

// tcpDialer is for an engine at a port.
type tcpDialer struct {
	host   string
	config *tls.Config
}

func newTCPDialer(e *Endpoint, u *url.URL) (dialer, error) {
	host := u.Hostname()
	if host == "" {
		return nil, fmt.Errorf("host %s: after tcp:// comes a host and a port", e.Host)
	}
	if e.TLS == nil {
		if a, err := netip.ParseAddr(host); err != nil || !a.IsLoopback() {
			return nil, fmt.Errorf("host %s: without TLS, whoever reaches the engine is root on its machine", e.Host)
		}
		return tcpDialer{host: e.Host}, nil
	}
	config, err := e.TLS.config(host)
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", e.Host, err)
	}
	return tcpDialer{host: e.Host, config: config}, nil
}

func (t *TLS) config(host string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if config.ServerName == "" {
		config.ServerName = host
	}
	if len(t.CA) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(t.CA) {
			return nil, errors.New("there is no certificate in TLS.CA")
		}
	}
	if len(t.Cert) == 0 && t.Key == "" {
		return config, nil
	}
	pair, err := tls.X509KeyPair(t.Cert, []byte(t.Key))
	if err != nil {
		return nil, fmt.Errorf("read TLS.Cert and TLS.Key: %w", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

func (d tcpDialer) open(_ context.Context, option moby.Opt) (*moby.Client, func(), error) {
	dial := &net.Dialer{KeepAlive: 15 * time.Second}
	return engineOver(&http.Transport{TLSClientConfig: d.config}, option, moby.WithHost(d.host), moby.WithDialContext(dial.DialContext))
}
