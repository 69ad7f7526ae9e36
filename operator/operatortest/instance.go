package operatortest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// Instance is a running control plane. Its methods are safe for concurrent use.
type Instance struct {
	config     *rest.Config
	kubeconfig string
	dataDir    string
	plane      *plane // nil when the instance isn't this caller's to stop

	mu sync.Mutex
	// transports are those of RESTConfig, of each User, and of all who show a token. client-go gives clients with the same certificates the
	// same transport, but only for as long as somebody holds it; another one could not close its connections.
	transports []http.RoundTripper
	// installed are the definitions that InstallCRDs has installed, by name.
	installed map[string]installedCRD
}

var errNotOwned = errors.New("this control plane is shared with others: ask for one of your own with operatortest.Dedicated or operatortest.Run")

// newInstance reads what there is to know of a control plane from its
// kubeconfig file.
// dataDirs has the data folder of each control plane that this process uses, by the address of its API server: a configuration of clients is
// all that a scenario says of its control plane.
var dataDirs sync.Map

func newInstance(kubeconfig string, owned *plane) (*Instance, error) {
	config, from, err := loadKubeconfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	instance := &Instance{config: config, kubeconfig: kubeconfig, dataDir: from.DataDir, plane: owned}
	dataDirs.Store(config.Host, from.DataDir)
	for _, of := range []*rest.Config{config, rest.AnonymousClientConfig(config)} {
		if err := instance.keepTransport(of); err != nil {
			return nil, fmt.Errorf("use kubeconfig %s: %w", kubeconfig, err)
		}
	}
	return instance, nil
}

// RESTConfig returns a configuration for clients with all rights. The copy is
// the caller's. Requests are not limited on the client's side (QPS is -1).
func (i *Instance) RESTConfig() *rest.Config { return rest.CopyConfig(i.config) }

// Kubeconfig returns the path of a kubeconfig file with all rights. It holds the
// certificate of the authority and a token, and may be copied.
func (i *Instance) Kubeconfig() string { return i.kubeconfig }

// DataDir returns the folder with the store, the certificates, and the logs in
// logs/*.log. It is empty for a cluster that this package did not start.
func (i *Instance) DataDir() string { return i.dataDir }

// User returns a configuration for clients of a user without any rights but
// those that RBAC gives to the name, the groups and system:authenticated. The
// user shows a client certificate; on a cluster that this package did not start,
// the administrator impersonates the user.
func (i *Instance) User(name string, groups ...string) (*rest.Config, error) {
	if i.dataDir == "" {
		config := i.RESTConfig()
		config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: groups}
		return config, nil
	}
	clients, err := loadAuthority(filepath.Join(i.dataDir, "certificates"), clientAuthority)
	if err != nil {
		return nil, fmt.Errorf("make user %s: %w", name, err)
	}
	pair, err := clients.issueClient(name, groups...)
	if err != nil {
		return nil, fmt.Errorf("make user %s: %w", name, err)
	}
	config := rest.AnonymousClientConfig(i.config)
	config.QPS = i.config.QPS
	config.CertData, config.KeyData = pair.cert, pair.key
	if err := i.keepTransport(config); err != nil {
		return nil, fmt.Errorf("make user %s: %w", name, err)
	}
	return config, nil
}

// Stop ends the control plane and returns when its processes are gone. Each has
// five seconds to end by itself, none when ctx has ended. A temporary data
// folder is removed. Stop may be called again.
func (i *Instance) Stop(ctx context.Context) error {
	return i.own(func(p *plane) error { return p.stop(ctx) })
}

// Restart stops the processes that run and starts all of them, with the same
// data, ports and certificates: clients connect again by themselves. It returns
// when the API server is ready.
func (i *Instance) Restart(ctx context.Context) error {
	return i.own(func(p *plane) error { return p.restart(ctx) })
}

// Resume starts the processes that were killed, as Restart would, and leaves
// the others running, except for the controllers. It returns when the API
// server is ready.
func (i *Instance) Resume(ctx context.Context) error {
	return i.own(func(p *plane) error { return p.resume(ctx) })
}

// KillAPIServer ends the API server with SIGKILL and returns when it is gone.
// Clients are refused until Resume or Restart.
func (i *Instance) KillAPIServer() error {
	return i.own(func(p *plane) error { return p.kill(p.apiServer) })
}

// KillEtcd ends the store with SIGKILL and returns when it is gone. The API
// server goes on, with errors, until Resume or Restart.
func (i *Instance) KillEtcd() error {
	return i.own(func(p *plane) error { return p.kill(p.etcd) })
}

// keepTransport keeps the transport of a configuration, so that closeIdle reaches it.
func (i *Instance) keepTransport(config *rest.Config) error {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return fmt.Errorf("make the transport: %w", err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.transports = append(i.transports, transport)
	return nil
}

// closeIdle closes the idle connections of clients that use RESTConfig, User or a token.
func (i *Instance) closeIdle() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, transport := range i.transports {
		utilnet.CloseIdleConnectionsFor(transport)
	}
}

// own calls f if the control plane is this caller's to end.
func (i *Instance) own(f func(*plane) error) error {
	if i.plane == nil {
		return errNotOwned
	}
	return f(i.plane)
}
