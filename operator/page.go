package operator

import (
	"context"
	"fmt"
	"net"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/operator/inspector"
)

// newInspector makes the inspector, if it is to be there.
func newInspector(config DependenciesConfig, restConfig *rest.Config) (*inspector.Inspector, error) {
	if config.InspectorAddress == "" {
		return nil, nil
	}
	return inspector.New(inspector.Config{
		Name: config.Name, Address: config.InspectorAddress, Logger: config.Logger, RESTConfig: restConfig, Memory: config.InspectorMemory,
		CertFile: config.InspectorCertFile, KeyFile: config.InspectorKeyFile,
	})
}

// inspected is an inspector that is being served. The zero value is none.
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

// close ends live pages, and then serving. It returns why that ended earlier, if it did.
func (p *inspected) close() error {
	if p.inspector == nil {
		return nil
	}
	p.stop()
	p.running.Wait()
	defer p.inspector.Close()
	return p.server.close()
}

// InspectorAddr returns the address of the inspector. It is nil before Run has bound it, and without one.
func (o *Operator) InspectorAddr() net.Addr {
	if addr := o.pageAddr.Load(); addr != nil {
		return *addr
	}
	return nil
}
