package docker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// The defaults of Config.
const (
	DefaultConnectTimeout = 10 * time.Second
	DefaultHeartbeat      = 10 * time.Second
	// DefaultRetryInterval is the first pause before a machine that did not answer is tried again, DefaultMaxRetryInterval the
	// longest.
	DefaultRetryInterval    = 500 * time.Millisecond
	DefaultMaxRetryInterval = 30 * time.Second
)

// Config is what a Client needs.
type Config struct {
	// Machines are the machines at the beginning. Client.SetMachines changes them.
	Machines []Machine
	// Cluster tells the containers of one cluster from those of others on the same engine. Default: empty, which is a cluster
	// too.
	Cluster string
	// Domain is the domain of the cluster, of which host names are made. Default: none.
	Domain string
	// Names has containers reach each other by the names of their services. Default: they are on the network of the engine, and do not.
	Names *Names
	// Ingress has ports in mode ingress reached, and needs Names. Default: they are not, and no machine is for them.
	Ingress *Ingress
	// Credentials returns what a registry asks for, such as docker.io or registry.example.com:5000. It is called for each pull
	// and each question, at the same time by several goroutines. Default: none are needed.
	Credentials func(ctx context.Context, registry string) (Credentials, error)
	// BeforeRequest is called before each request to an engine, which is not sent if it returns an error. It is for who must not act
	// any more, such as a former leader: operator.Fence.CheckRequest. Default: all are sent.
	BeforeRequest func(r *http.Request) error
	// ConnectTimeout is how long an engine may take to answer when it is connected to, and at each heartbeat. Default:
	// DefaultConnectTimeout.
	ConnectTimeout time.Duration
	// Heartbeat is the time between two questions whether an engine still answers. Default: DefaultHeartbeat.
	Heartbeat time.Duration
	// BackOffFactory makes what decides how long is waited before a machine is tried again; it is reset when the machine answers.
	// backoff.Stop is its last pause again. Default: from DefaultRetryInterval to DefaultMaxRetryInterval, without an end.
	BackOffFactory func() backoff.BackOff
}

// Credentials are what a registry asks for. The zero value is nothing.
type Credentials struct {
	Username string
	Password api.Hidden
	// Token is a bearer token, which is sent as it is. With one, the others are not used.
	Token api.Hidden
	// Hint is added to errors when a registry does not let in who has the credentials, or nobody without some: where they are from, or
	// what to do to have some. Default: nothing is.
	Hint string
}

// Machine is a machine with an engine.
type Machine struct {
	// ID identifies the machine for good. It is the one of api.Machine.
	ID string
	// Name is what people call it, unique in the cluster. Default: the ID.
	Name string
	// Labels are labels for placement.
	Labels map[string]string
	// Addresses are IP addresses of the machine, as of api.Machine. Default: none, and no port is published on a range of addresses.
	Addresses []string
	// Ingress marks it for ports in mode ingress, if there is Config.Ingress. Default: it is not for them.
	Ingress *MachineIngress
	// MeshAddress is the IP address at which the proxies of other machines reach that of this one, such as the one in a mesh, at port 8442:
	// they know each other by certificates that they make. Default: none, and ports in mode ingress of the containers here are reached by
	// the proxy of this machine alone, if it has one.
	MeshAddress string
	// Endpoint says how its engine is reached.
	Endpoint Endpoint
	// Gone says that the machine won't come back, and that what was on it is not there any more. It is not connected to.
	Gone bool
}

// Endpoint says how an engine is reached.
type Endpoint struct {
	// Host is one of
	//   - unix:///path/of/socket
	//   - tcp://host:port, with TLS
	//   - ssh://user@host[:port][/path/of/socket], with SSH, whose defaults are port 22 and /var/run/docker.sock
	Host string
	// TLS is for tcp, which is refused without it, but for a loopback address.
	TLS *TLS
	// SSH is for ssh.
	SSH *SSH
}

// TLS is how an engine is told from others, and who asks.
type TLS struct {
	// CA are the certificates that may have signed that of the engine, in PEM. Default: those that the system trusts.
	CA []byte
	// Cert is the client's certificate, in PEM.
	Cert []byte
	// Key is its key, in PEM.
	Key api.Hidden
	// ServerName is the name in the engine's certificate. Default: the host.
	ServerName string
}

// SSH is how a machine is told from others, and who asks.
type SSH struct {
	// Key is the user's private key, in PEM or OpenSSH's format.
	Key api.Hidden
	// Passphrase is that of the key. Default: it has none.
	Passphrase api.Hidden
	// KnownHosts are the keys of hosts, in the format of OpenSSH's known_hosts. A host that is not among them is not connected to.
	KnownHosts []byte
}

// defaultSocket is where engines listen unless told otherwise.
const defaultSocket = "/var/run/docker.sock"

func (c *Config) setDefaults() {
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = DefaultConnectTimeout
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = DefaultHeartbeat
	}
	if c.BackOffFactory == nil {
		c.BackOffFactory = func() backoff.BackOff {
			return backoff.NewExponentialBackOff(
				backoff.WithInitialInterval(DefaultRetryInterval), backoff.WithMaxInterval(DefaultMaxRetryInterval), backoff.WithMaxElapsedTime(0))
		}
	}
	if c.BeforeRequest == nil {
		c.BeforeRequest = func(*http.Request) error { return nil }
	}
}

func (c *Config) validate() error {
	if c.ConnectTimeout < 0 || c.Heartbeat < 0 {
		return fmt.Errorf("a connect timeout of %s and a heartbeat of %s must not be negative", c.ConnectTimeout, c.Heartbeat)
	}
	if c.Names != nil && c.Names.Image == "" {
		return errors.New("Names needs an Image")
	}
	if c.Ingress != nil && (c.Ingress.Image == "" || c.Names == nil) {
		return errors.New("Ingress needs an Image, and Names")
	}
	if c.Ingress != nil && c.Ingress.Hold < 0 {
		return fmt.Errorf("Ingress.Hold must not be negative, is %s", c.Ingress.Hold)
	}
	return nil
}

// withDefaults returns machines with their defaults, or every fault.
func withDefaults(machines []Machine) ([]Machine, error) {
	machines = slices.Clone(machines)
	var errs []error
	for i := range machines {
		m := &machines[i]
		if m.Name == "" {
			m.Name = m.ID
		}
		if err := m.validate(machines[:i]); err != nil {
			errs = append(errs, fmt.Errorf("machine %q: %w", m.Name, err))
		}
	}
	return machines, errors.Join(errs...)
}

func (m *Machine) validate(others []Machine) error {
	if m.ID == "" {
		return errors.New("the ID is empty")
	}
	for _, o := range others {
		// Placement takes either, so that one must not be the other of another machine.
		if o.ID == m.ID || o.Name == m.Name || o.ID == m.Name || o.Name == m.ID {
			return fmt.Errorf("machine %q has its name or ID, too", o.Name)
		}
	}
	if m.Ingress != nil && m.Ingress.HostIP != "" {
		if _, err := netip.ParseAddr(m.Ingress.HostIP); err != nil {
			return fmt.Errorf("the address for ports in mode ingress: %w", err)
		}
	}
	if m.MeshAddress != "" {
		if _, err := netip.ParseAddr(m.MeshAddress); err != nil {
			return fmt.Errorf("the mesh address: %w", err)
		}
	}
	if m.Gone {
		return nil
	}
	return m.Endpoint.Validate()
}

// Validate returns what is wrong with an endpoint, such as a key that can't be read. It connects to nothing.
func (e *Endpoint) Validate() error {
	_, err := e.dialer()
	return err
}

// parse returns the parts of the host.
func (e *Endpoint) parse() (*url.URL, error) {
	u, err := url.Parse(e.Host)
	if err != nil {
		// The error quotes it, with what may be a password.
		return nil, errors.New("the host of an engine is no address such as tcp://name:port")
	}
	if _, secret := u.User.Password(); secret || u.User != nil && u.Scheme != "ssh" {
		return nil, errors.New("a password in the host of an engine is not supported, nor a user but in ssh://; use a key")
	}
	return u, nil
}
