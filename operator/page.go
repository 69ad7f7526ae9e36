package operator

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/operator/inspector"
)

// newInspector makes the inspector, if it has an address.
func newInspector(config DependenciesConfig, restConfig *rest.Config) (*inspector.Inspector, error) {
	if config.InspectorAddress == "" {
		return nil, nil
	}
	return inspector.New(inspector.Config{
		Name: config.Name, Address: config.InspectorAddress, Logger: config.Logger, RESTConfig: restConfig, Memory: config.InspectorMemory,
		CertFile: config.InspectorCertFile, KeyFile: config.InspectorKeyFile,
	})
}

// inspected is an inspector that is being served. The zero value has none.
type inspected struct {
	inspector *inspector.Inspector
	server    *server
	stop      context.CancelFunc
	running   sync.WaitGroup
}

// inspect serves the inspector, if there is one.
func (o *Operator) inspect(failed func()) (*inspected, error) {
	i := o.config.Inspector
	if i == nil {
		return &inspected{}, nil
	}
	server, err := o.serve("the inspector", i.Address(), beyondFence(i), i.TLSConfig(), &o.pageAddr, failed)
	if err != nil {
		return nil, fmt.Errorf("%w: choose another address for it, or none", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	page := &inspected{inspector: i, server: server, stop: cancel}
	page.running.Go(func() { i.Run(ctx) })
	return page, nil
}

// close ends live pages, and then serving. It returns the reason if serving ended earlier.
func (p *inspected) close() error {
	if p.inspector == nil {
		return nil
	}
	p.stop()
	p.running.Wait()
	defer p.inspector.Close()
	return p.server.close()
}

// InspectorAddr returns the address of the inspector. It is nil before Run has bound it, and
// without an inspector.
func (o *Operator) InspectorAddr() net.Addr {
	if addr := o.pageAddr.Load(); addr != nil {
		return *addr
	}
	return nil
}

// pageForOthers returns the location of this replica's page. It is empty before Run has bound it,
// and without a page.
func (o *Operator) pageForOthers() location {
	bound, ok := o.InspectorAddr().(*net.TCPAddr)
	if !ok {
		return location{}
	}
	ip := bound.IP
	if ip.IsUnspecified() {
		ip = o.ownIP()
	}
	if ip == nil {
		return location{}
	}
	scheme, certificate := "http", o.config.Inspector.CertificateDigest()
	if certificate != "" {
		scheme = "https"
	}
	page := location{URL: scheme + "://" + net.JoinHostPort(ip.String(), strconv.Itoa(bound.Port)), Certificate: certificate}
	if ip.IsLoopback() {
		page.Host, _ = os.Hostname()
	}
	return page
}

// ownIPTimeout is how long it may take to resolve the name of the API server.
const ownIPTimeout = 2 * time.Second

// ownAddress returns the address from which this process reaches the API server, or nil if it is
// not known. In a Pod it is the address of the Pod.
func ownAddress(config *rest.Config) net.IP {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil
	}
	// Nothing is sent.
	c, err := (&net.Dialer{Timeout: ownIPTimeout}).Dial("udp", net.JoinHostPort(server.Hostname(), cmp.Or(server.Port(), "443")))
	if err != nil {
		return nil
	}
	defer func() { _ = c.Close() }()
	local, _ := c.LocalAddr().(*net.UDPAddr)
	if local == nil {
		return nil
	}
	return local.IP
}
