package target

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
)

// pool is the network connections that are made with one kubeconfig. Those of client-go are not used, because it shares
// them between everybody in the process, and they can't be closed.
type pool struct {
	transport *http.Transport
	dialer    *connrotation.Dialer
	closed    atomic.Bool
}

func newPool(config *rest.Config, connectTimeout time.Duration) (*pool, error) {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	dial := config.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}).DialContext
	}
	p := &pool{dialer: connrotation.NewDialer(dial)}
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

// connect makes a connection that close knows, or else knows of close.
func (p *pool) connect(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := p.dialer.DialContext(ctx, network, address)
	if err == nil && p.closed.Load() {
		_ = conn.Close()
		return nil, fmt.Errorf("connect to %s: %w", address, errMoved)
	}
	return conn, err
}

// reset closes all connections, in use or not. Later requests make new ones.
func (p *pool) reset() {
	p.transport.CloseIdleConnections()
	p.dialer.CloseAll()
}

// close resets the pool and lets nobody connect any more.
func (p *pool) close() {
	p.closed.Store(true)
	p.reset()
}
