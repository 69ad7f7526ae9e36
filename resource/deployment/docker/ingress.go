package docker

import (
	stdbytes "bytes"
	"context"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	moby "github.com/moby/moby/client"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// Ingress has ports in mode ingress reached on the machines that are marked for it (Machine.Ingress): a proxy on each, Caddy, at ports 80
// and 443, leads by host name and path to the containers that work on that machine, and on those with a Machine.MeshAddress, which have a
// proxy too. An update loses no request: nobody is led to a container that is about to be stopped, and while none works, requests wait for
// one.
//
// The proxy is made with the first container that has such a port, on the network that containers have for their names, and goes with the
// last one, with its certificates. It is configured in its container: nothing is published but the two ports on machines that are marked,
// and port 8442 at Machine.MeshAddress, for other proxies.
type Ingress struct {
	// Image has Caddy, from version 2.6 on, as the program caddy in its PATH, such as caddy:2. A proxy of another image runs until
	// this one is on the machine. Required.
	Image string
	// Hold is how long a request waits while no container works that could answer it. Default: DefaultHold.
	Hold time.Duration
	// Internal has certificates made by the proxy itself: whoever trusts its root (Client.IngressRoot) trusts them. Default: they are asked
	// for by ACME, but for names that nobody else could have, such as localhost.
	Internal bool
	// ACME says whom certificates are asked of. Default: those whom Caddy asks.
	ACME ACME
}

// ACME is an authority that certificates are asked of (RFC 8555).
type ACME struct {
	// Directory is its URL. Default: Caddy's own.
	Directory string
	// Email is told to it, for messages about certificates. Default: none is.
	Email string
	// Roots are the certificates that may have signed its own, in PEM. Default: those that the image trusts.
	Roots []byte
}

// MachineIngress marks a machine for ports in mode ingress.
type MachineIngress struct {
	// HostIP is the address of the machine at which ports 80 and 443 are published. Default: all addresses.
	HostIP string
}

// LabelIngress is on proxies, and has the name of their network.
const LabelIngress = labelPrefix + "ingress"

// LabelIngressMade is on proxies, and has what they are made of.
const LabelIngressMade = labelPrefix + "ingress-made"

// DefaultHold is the default of Ingress.Hold.
const DefaultHold = 30 * time.Second

const (
	// ingressFile has the configuration that the proxy begins with, which is the one that it has, and nextIngressFile the one that it is to
	// have.
	ingressFile     = "/operatorkit-ingress.json"
	nextIngressFile = "/operatorkit-ingress-next.json"
	// rootsFile has ACME.Roots.
	rootsFile = "/operatorkit-acme.pem"
	// dataFolder is where the proxy has its certificates, which is a volume, and rootFile that of its own authority.
	dataFolder = "/data"
	rootFile   = dataFolder + "/caddy/pki/authorities/local/root.crt"
	// plainPort and securePort are what is published as 80 and 443, which stay free in its container for services that have these ports.
	plainPort, securePort = 8440, 8441
	// adminPort is where the proxy is configured, within its container.
	adminPort = 2019
	// beginTime is how long a proxy may take until it can be configured.
	beginTime = time.Minute
	// beginPeriod is the time between two looks whether it can.
	beginPeriod = 100 * time.Millisecond
)

// adminAddress is adminPort, for nobody else.
var adminAddress = fmt.Sprintf("127.0.0.1:%d", adminPort)

// takenPorts are those at which no service of another machine is reached by its name: the proxy's own, and the one at which TLS is spoken.
var takenPorts = []uint16{plainPort, securePort, meshPort, adminPort, 443}

// fronts tells whether a proxy is to be on the machine for the containers that need one.
func (m *machine) fronts() bool { return m.client.config.Ingress != nil && m.spec().Ingress != nil }

// portsOf returns the ports of a container that the proxy of the machine serves.
func (m *machine) portsOf(item *container.Summary) []api.PortSpec {
	if !m.reached() {
		return nil
	}
	spec := recorded(item.Labels)
	return spec.IngressPorts()
}

// front makes sure that the proxy runs. It is called with naming locked.
func (m *machine) front(ctx context.Context, engine *moby.Client, at shared) error {
	config, spec := m.client.config.Ingress, m.spec()
	of := []string{config.Image, at.server.String(), spec.MeshAddress, fmt.Sprintf("%x", sha256.Sum256(config.ACME.Roots))}
	host := container.HostConfig{
		PortBindings: network.PortMap{},
		// The engine makes the volume, which is ours.
		Mounts: []mount.Mount{{
			Type: mount.TypeVolume, Source: ingressVolume(at.name), Target: dataFolder, VolumeOptions: &mount.VolumeOptions{Labels: m.client.mark(ctx, nil)},
		}},
	}
	exposed := network.PortSet{}
	publish := func(number, as uint16, address string) error {
		port, _ := network.PortFrom(number, network.TCP)
		binding := network.PortBinding{HostPort: strconv.Itoa(int(as))}
		if address != "" {
			ip, err := netip.ParseAddr(address)
			if err != nil {
				return fmt.Errorf("publish the proxy for ports in mode ingress: %w", err)
			}
			binding.HostIP = ip
		}
		host.PortBindings[port], exposed[port] = []network.PortBinding{binding}, struct{}{}
		return nil
	}
	if spec.Ingress != nil {
		of = append(of, fmt.Sprintf("%d:80 %d:443", plainPort, securePort), spec.Ingress.HostIP)
		if err := errors.Join(publish(plainPort, 80, spec.Ingress.HostIP), publish(securePort, 443, spec.Ingress.HostIP)); err != nil {
			return err
		}
	}
	if spec.MeshAddress != "" {
		if err := publish(meshPort, meshPort, spec.MeshAddress); err != nil {
			return err
		}
	}
	return m.ensure(ctx, engine, aide{
		name: at.name + ingressSuffix, what: "the proxy for ports in mode ingress", image: config.Image, made: LabelIngressMade,
		of: strings.Join(of, " "), labels: map[string]string{LabelIngress: at.name},
		config: container.Config{
			Entrypoint: []string{"caddy"}, Cmd: []string{"run", "--config", ingressFile}, ExposedPorts: exposed,
			Env: []string{"XDG_DATA_HOME=" + dataFolder, "XDG_CONFIG_HOME=" + dataFolder},
		},
		host: host,
		prepare: func(id string) error {
			if len(config.ACME.Roots) > 0 {
				if err := writeFile(ctx, engine, id, rootsFile, config.ACME.Roots); err != nil {
					return err
				}
			}
			return m.configure(ctx, engine)
		},
		// Whoever changes what it serves must reach it.
		begun: func(id string) error { return m.load(ctx, engine, id, ingressFile) },
	}, at)
}

func ingressVolume(network string) string { return network + ingressSuffix }

// isIngressVolume tells whether a volume is ingressVolume of a network of ours.
func isIngressVolume(name string) bool {
	return strings.HasPrefix(name, "operatorkit-"+identity.Form+"-") && strings.HasSuffix(name, ingressSuffix)
}

// ingressSuffix is what the names of a proxy and its volume have after that of their network.
const ingressSuffix = "-ingress"

// dropProxy removes the proxy, with its certificates, if nobody needs it, and is about to. It is called with naming locked.
func (m *machine) dropProxy(ctx context.Context, engine *moby.Client, found neighbours) error {
	if found.proxy == nil || m.needsProxy(&found) || found.coming {
		return nil
	}
	if err := removeContainer(ctx, engine, found.proxy.ID); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	_, err := engine.VolumeRemove(ctx, ingressVolume(found.network), moby.VolumeRemoveOptions{})
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// direct has the proxy serve what is there, unless it does. It is called without naming locked: a proxy that is told something new goes on
// with the requests that it has begun with first, and those may wait for a name.
func (m *machine) direct(ctx context.Context, engine *moby.Client) error {
	if !m.reached() {
		return nil
	}
	m.directing.Lock()
	defer m.directing.Unlock()
	err := m.configure(ctx, engine)
	if errdefs.IsNotFound(err) {
		// It has gone meanwhile.
		return nil
	}
	return err
}

// configure is direct for who has a proxy to himself.
func (m *machine) configure(ctx context.Context, engine *moby.Client) error {
	found, err := m.survey(ctx, engine)
	if err != nil || found.proxy == nil {
		return err
	}
	at, err := m.network(ctx, engine)
	if err != nil {
		return err
	}
	want, err := m.client.config.Ingress.configure(&found, m.spec(), at.server)
	if err != nil {
		return err
	}
	id := found.proxy.ID
	if err := remember(ctx, engine, id, found.others); err != nil {
		return err
	}
	have, err := readFile(ctx, engine, id, ingressFile)
	if err != nil || stdbytes.Equal(have, want) {
		return err
	}
	if found.proxy.State == container.StateRunning {
		// It begins with what it has taken, also when it is started again.
		if err := writeFile(ctx, engine, id, nextIngressFile, want); err != nil {
			return err
		}
		if err := m.load(ctx, engine, id, nextIngressFile); err != nil {
			return err
		}
	}
	return writeFile(ctx, engine, id, ingressFile, want)
}

// load has the proxy take a configuration, as soon as it can be told.
func (m *machine) load(ctx context.Context, engine *moby.Client, id, file string) error {
	late := time.NewTimer(beginTime)
	defer late.Stop()
	ticker := time.NewTicker(beginPeriod)
	defer ticker.Stop()
	for {
		var output stdbytes.Buffer
		code, err := run(ctx, engine, id, reload(file, adminAddress), nil, &output, &output)
		switch {
		case err != nil:
			return err
		case code == 0:
			return nil
		}
		err = errors.New(strings.TrimSpace(output.String()))
		if !unanswered(err.Error()) {
			return fmt.Errorf("configure the proxy for ports in mode ingress: %w", err)
		}
		select {
		case <-ticker.C:
		case <-late.C:
			return fmt.Errorf("the proxy for ports in mode ingress can't be configured: %w", err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// reload is the command that has a proxy take a configuration.
func reload(file, address string) []string {
	return []string{"caddy", "reload", "--config", file, "--address", address}
}

// unanswered tells whether that failed because the proxy did not answer, from what the command wrote. A proxy that has just begun with a
// configuration hangs up on who was about to hand over the next one; to hand over one that it has taken all the same does no harm.
func unanswered(output string) bool { return strings.Contains(output, "performing request: ") }

// IngressRoot returns the certificate, in PEM, of the authority that the proxy of a machine is itself: of whoever ctx says. It is
// api.ErrNotFound where no proxy has made a certificate.
func (c *Client) IngressRoot(ctx context.Context, machineID string) ([]byte, error) {
	m, err := c.machine(machineID)
	if err != nil {
		return nil, err
	}
	var root []byte
	err = m.do(ctx, func(ctx context.Context, engine *moby.Client) error {
		network, err := m.networkName(ctx, engine)
		if err != nil {
			return err
		}
		root, err = readRoot(ctx, engine, network+ingressSuffix)
		if err == nil && root == nil {
			err = fmt.Errorf("the root of the proxy: %w", api.ErrNotFound)
		}
		return err
	})
	return root, err
}

// readRoot returns the certificate of the authority that a proxy is itself, or nil as long as that is not written whole.
func readRoot(ctx context.Context, engine *moby.Client, proxy string) ([]byte, error) {
	root, err := readFile(ctx, engine, proxy, rootFile)
	if whole, _ := pem.Decode(root); whole == nil {
		return nil, err
	}
	return root, err
}
