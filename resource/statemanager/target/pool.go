package target

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// pool is the network connections that are made with one kubeconfig. Those of client-go are not used, because it shares
// them between everybody in the process, and they can't be closed.
type pool struct {
	transport *http.Transport
	dial      func(ctx context.Context, network, address string) (net.Conn, error)

	mu     sync.Mutex
	conns  map[*pooled]struct{}
	closed bool
}

// pooled is a connection that its pool can close.
type pooled struct {
	net.Conn
	pool *pool
}

func newPool(config *rest.Config, connectTimeout time.Duration) (*pool, error) {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	p := &pool{dial: config.Dial, conns: map[*pooled]struct{}{}}
	if p.dial == nil {
		p.dial = (&net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}).DialContext
	}
	p.transport = utilnet.SetTransportDefaults(&http.Transport{
		Proxy:               config.Proxy,
		DialContext:         p.connect,
		TLSClientConfig:     tls,
		TLSHandshakeTimeout: connectTimeout,
		DisableCompression:  config.DisableCompression,
		MaxIdleConnsPerHost: 25,
		IdleConnTimeout:     90 * time.Second,
	})
	return p, nil
}

func (p *pool) connect(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := p.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &pooled{Conn: conn, pool: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = conn.Close()
		return nil, fmt.Errorf("connect to %s: %w", address, errMoved)
	}
	p.conns[c] = struct{}{}
	return c, nil
}

// Close implements net.Conn.
func (c *pooled) Close() error {
	c.pool.mu.Lock()
	delete(c.pool.conns, c)
	c.pool.mu.Unlock()
	return c.Conn.Close()
}

// reset closes all connections, in use or not. Later requests make new ones.
func (p *pool) reset() {
	p.transport.CloseIdleConnections()
	p.mu.Lock()
	conns := make([]*pooled, 0, len(p.conns))
	for c := range p.conns {
		conns = append(conns, c)
	}
	p.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

// close resets the pool and lets nobody connect any more.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.reset()
}
