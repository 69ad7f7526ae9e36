package docker

import (
	"archive/tar"
	stdbytes "bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	moby "github.com/moby/moby/client"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/names"
)

// Names are a network on each machine that the containers of a cluster share, on which they reach each other by the names of their
// services: http://api:8080. A name leads to those containers of the service on the machine that work, and an update leaves no gap: a
// container that works is led to before the one whose place it takes is not, and none is stopped that is led to.
//
// The network is made with the first container and goes with the last one. On it is a small DNS server, which this client makes and
// tells what to answer (package names). Pre-deploy hooks are on the network too; nobody is led to them. Containers that were made before
// there were Names are not on it: they are once they are made anew.
type Names struct {
	// Image has the program of package names. Required.
	Image string
	// Command are the arguments of its entrypoint. Default: those of the image.
	Command []string
}

// LabelNames is on networks with names and on their servers, and has the name of the network.
const LabelNames = labelPrefix + "names"

// LabelNamesImage is on such servers, and has the image and the command that they are made of.
const LabelNamesImage = labelPrefix + "names-image"

// leaveTime is how long a container is not stopped yet that is not led to any more: for those who have just asked for its address.
const leaveTime = time.Second

// inherited are options of the engine's own network which only that one is given by the configuration of the engine.
var inherited = []string{"com.docker.network.bridge.host_binding_ipv4", "com.docker.network.driver.mtu"}

// shared is a network with names.
type shared struct {
	name string
	// server is the address of its server.
	server netip.Addr
}

// join makes sure that there are the network for a new container, and its server. The caller calls done when the container is there.
func (m *machine) join(ctx context.Context, engine *moby.Client, host *container.HostConfig) (networking *network.NetworkingConfig, done func(), err error) {
	if m.client.config.Names == nil || host.NetworkMode != "" {
		return nil, func() {}, nil
	}
	m.naming.Lock()
	defer m.naming.Unlock()
	at, err := m.network(ctx, engine)
	if err == nil {
		err = m.serve(ctx, engine, at)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("make the network for names: %w", err)
	}
	m.joining.Add(1)
	host.NetworkMode, host.DNS = container.NetworkMode(at.name), []netip.Addr{at.server}
	return &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{at.name: {}}}, func() { m.joining.Add(-1) }, nil
}

// networkOf returns the name of the network of whoever ctx says.
func (c *Client) networkOf(ctx context.Context) string {
	own := api.OwnershipOf(ctx).Mark
	own.Resource = ""
	return "operatorkit-" + own.Hash("network", c.config.Cluster)
}

// network returns the network, and makes it if it is not there.
func (m *machine) network(ctx context.Context, engine *moby.Client) (shared, error) {
	name := m.client.networkOf(ctx)
	there, err := engine.NetworkInspect(ctx, name, moby.NetworkInspectOptions{})
	if errdefs.IsNotFound(err) {
		if err = m.makeNetwork(ctx, engine, name); err == nil {
			there, err = engine.NetworkInspect(ctx, name, moby.NetworkInspectOptions{})
		}
	}
	switch {
	case err != nil:
		return shared{}, err
	case !api.OwnershipOf(ctx).Shares(m.client.ownerOf(there.Network.Labels)):
		return shared{}, fmt.Errorf("network %s is of %s: %w", name, m.client.ownerOf(there.Network.Labels), api.ErrOthers)
	}
	subnet, err := subnetOf(&there.Network)
	return shared{name: name, server: last(subnet.Subnet)}, err
}

// makeNetwork makes a network. Only one whose addresses are given lets containers choose theirs, and only the engine knows which are free:
// it picks some for a network that goes again.
func (m *machine) makeNetwork(ctx context.Context, engine *moby.Client, name string) error {
	labels := m.client.mark(ctx, nil)
	labels[LabelNames] = name
	options := map[string]string{}
	own, err := engine.NetworkInspect(ctx, "bridge", moby.NetworkInspectOptions{})
	if err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	for _, option := range inherited {
		if value := own.Network.Options[option]; value != "" {
			options[option] = value
		}
	}
	draft := name + "-draft"
	// It may be there from an earlier try.
	if _, err := engine.NetworkRemove(ctx, draft, moby.NetworkRemoveOptions{}); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	if _, err := engine.NetworkCreate(ctx, draft, moby.NetworkCreateOptions{Driver: "bridge", Labels: labels}); err != nil {
		return err
	}
	picked, err := engine.NetworkInspect(ctx, draft, moby.NetworkInspectOptions{})
	if err != nil {
		return err
	}
	subnet, err := subnetOf(&picked.Network)
	if _, failed := engine.NetworkRemove(ctx, draft, moby.NetworkRemoveOptions{}); err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	_, err = engine.NetworkCreate(ctx, name, moby.NetworkCreateOptions{
		Driver: "bridge", Labels: labels, Options: options,
		IPAM: &network.IPAM{Config: []network.IPAMConfig{{Subnet: subnet.Subnet, Gateway: subnet.Gateway}}},
	})
	return err
}

// subnetOf returns the addresses of a network for IPv4.
func subnetOf(n *network.Inspect) (network.IPAMConfig, error) {
	for _, config := range n.IPAM.Config {
		if config.Subnet.IsValid() && config.Subnet.Addr().Is4() {
			return config, nil
		}
	}
	return network.IPAMConfig{}, fmt.Errorf("network %s has no addresses for IPv4", n.Name)
}

// last returns the last address of a subnet that something can have. Engines give the first ones first.
func last(subnet netip.Prefix) netip.Addr {
	address := subnet.Masked().Addr().As4()
	for bit := subnet.Bits(); bit < 31; bit++ {
		address[bit/8] |= 1 << (7 - bit%8)
	}
	return netip.AddrFrom4(address)
}

// serve makes sure that the server of a network runs.
func (m *machine) serve(ctx context.Context, engine *moby.Client, at shared) error {
	config := m.client.config.Names
	name, made := at.name+"-names", strings.Join(append([]string{config.Image}, config.Command...), " ")
	there, err := engine.ContainerInspect(ctx, name, moby.ContainerInspectOptions{})
	switch {
	case errdefs.IsNotFound(err):
	case err != nil:
		return err
	case there.Container.State == nil || there.Container.Config == nil:
		return errLeftOut
	case there.Container.State.Running && there.Container.Config.Labels[LabelNamesImage] == made:
		return nil
	default:
		if err := removeContainer(ctx, engine, there.Container.ID); err != nil && !errdefs.IsNotFound(err) {
			return err
		}
	}
	if _, err := engine.ImageInspect(ctx, config.Image); errdefs.IsNotFound(err) {
		if err := m.client.PullImage(ctx, m.spec().ID, config.Image, nil); err != nil {
			return fmt.Errorf("pull image %s: %w", config.Image, err)
		}
	}
	labels := m.client.mark(ctx, nil)
	labels[LabelNames], labels[LabelNamesImage] = at.name, made
	created, err := engine.ContainerCreate(ctx, moby.ContainerCreateOptions{
		Name: name, Config: &container.Config{Image: config.Image, Cmd: config.Command, Labels: labels},
		HostConfig: &container.HostConfig{
			NetworkMode: container.NetworkMode(at.name), RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyUnlessStopped},
			CapDrop: []string{"ALL"}, CapAdd: []string{"NET_BIND_SERVICE"},
		},
		NetworkingConfig: &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{
			at.name: {IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: at.server}},
		}},
	})
	if err != nil {
		return fmt.Errorf("create the server of names: %w", err)
	}
	// It answers with what is so from the beginning on.
	if err := m.lead(ctx, engine); err != nil {
		return err
	}
	if _, err := engine.ContainerStart(ctx, created.ID, moby.ContainerStartOptions{}); err != nil {
		return errors.Join(fmt.Errorf("start the server of names: %w", err), removeContainer(ctx, engine, created.ID))
	}
	return nil
}

// UpdateNames makes the names on a machine lead to the containers that work there now, of the services of whoever ctx says. Those who
// change containers by this client need not call it: it is for what happens by itself.
func (c *Client) UpdateNames(ctx context.Context, machineID string) error {
	if c.config.Names == nil {
		return nil
	}
	return c.on(ctx, machineID, func(ctx context.Context, engine *moby.Client) error {
		m, err := c.machine(machineID)
		if err != nil {
			return err
		}
		m.naming.Lock()
		defer m.naming.Unlock()
		list, err := m.neighbours(ctx, engine)
		switch {
		case err != nil || list.server == nil && list.users == 0:
			return err
		case list.users == 0:
			return m.sweep(ctx, engine, list)
		}
		at, err := m.network(ctx, engine)
		if err != nil {
			return err
		}
		// It may have been taken away, or have another image by now.
		if err := m.serve(ctx, engine, at); err != nil {
			return err
		}
		return m.lead(ctx, engine)
	})
}

// neighbours are what is on a network.
type neighbours struct {
	// server is nil without one.
	server *container.Summary
	// users is how many containers of services there are, and records say where names lead.
	users   int
	records names.Records
	// led are the containers that names lead to.
	led map[string]bool
}

// neighbours returns what is on the network of whoever ctx says.
func (m *machine) neighbours(ctx context.Context, engine *moby.Client) (neighbours, error) {
	c, at := m.client, m.client.networkOf(ctx)
	found := neighbours{records: names.Records{}, led: map[string]bool{}}
	list, err := engine.ContainerList(ctx, moby.ContainerListOptions{All: true, Filters: moby.Filters{}.Add("label", LabelCluster+"="+c.config.Cluster)})
	if err != nil {
		return found, err
	}
	for i := range list.Items {
		item := &list.Items[i]
		if item.Labels[LabelNames] == at && item.Labels[LabelForm] == identity.Form {
			found.server = item
			continue
		}
		if !c.known(item.Labels) || item.NetworkSettings == nil || item.NetworkSettings.Networks[at] == nil {
			continue
		}
		found.users++
		is := c.others(item)
		is.Health, is.ServiceName = healthOf(item), item.Labels[LabelService]
		if item.Labels[LabelHook] != "" || is.Failed() {
			continue
		}
		// The name of a service without a container that works is its name all the same.
		addresses := found.records[is.ServiceName]
		if address := item.NetworkSettings.Networks[at].IPAddress; is.Ready() && address.IsValid() && !m.isLeaving(item.ID) {
			addresses, found.led[item.ID] = append(addresses, address), true
		}
		slices.SortFunc(addresses, netip.Addr.Compare)
		found.records[is.ServiceName] = addresses
	}
	return found, nil
}

// lead writes the records for the server, unless it has them. It is called with naming locked.
func (m *machine) lead(ctx context.Context, engine *moby.Client) error {
	found, err := m.neighbours(ctx, engine)
	if err != nil || found.server == nil {
		return err
	}
	have, err := recordsIn(ctx, engine, found.server.ID)
	if err != nil || maps.EqualFunc(have, found.records, slices.Equal[[]netip.Addr]) && have != nil {
		return err
	}
	content, err := found.records.Encode()
	if err != nil {
		return err
	}
	var archive stdbytes.Buffer
	w := tar.NewWriter(&archive)
	err = errors.Join(
		w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path.Base(names.File), Mode: 0o444, Size: int64(len(content)), Format: tar.FormatPAX}),
		func() error { _, err := w.Write(content); return err }(), w.Close(),
	)
	if err != nil {
		return err
	}
	_, err = engine.CopyToContainer(ctx, found.server.ID, moby.CopyToContainerOptions{DestinationPath: path.Dir(names.File), Content: &archive})
	if err != nil {
		return fmt.Errorf("tell the server of names: %w", err)
	}
	return nil
}

// recordsIn returns what a server answers with, or nil for one that was not told yet.
func recordsIn(ctx context.Context, engine *moby.Client, server string) (names.Records, error) {
	copied, err := engine.CopyFromContainer(ctx, server, moby.CopyFromContainerOptions{SourcePath: names.File})
	if errdefs.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = copied.Content.Close() }()
	archive := tar.NewReader(copied.Content)
	if _, err := archive.Next(); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(archive, maxConfig))
	if err != nil {
		return nil, err
	}
	return names.Decode(text), nil
}

// arrive has names lead to a container that has come to work.
func (m *machine) arrive(ctx context.Context, engine *moby.Client) error {
	if m.client.config.Names == nil {
		return nil
	}
	m.naming.Lock()
	defer m.naming.Unlock()
	return m.lead(ctx, engine)
}

// leave has names not lead any more to a container that is about to be stopped, until the function that it returns is called. What keeps
// it from that does not keep the container from being stopped.
func (m *machine) leave(ctx context.Context, engine *moby.Client, id string) (stopped func()) {
	if m.client.config.Names == nil {
		return func() {}
	}
	m.naming.Lock()
	before, err := m.neighbours(ctx, engine)
	m.setLeaving(id, 1)
	if err == nil && before.led[id] {
		err = m.lead(ctx, engine)
	}
	m.naming.Unlock()
	if err == nil && before.led[id] {
		timer := time.NewTimer(leaveTime)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return func() { m.setLeaving(id, -1) }
}

func (m *machine) setLeaving(id string, by int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leaving[id] += by
	if m.leaving[id] == 0 {
		delete(m.leaving, id)
	}
}

func (m *machine) isLeaving(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leaving[id] > 0
}

// sweepNames removes the network and its server when no container of a service is on it any more, and is about to be.
func (m *machine) sweepNames(ctx context.Context, engine *moby.Client) error {
	if m.client.config.Names == nil {
		return nil
	}
	m.naming.Lock()
	defer m.naming.Unlock()
	found, err := m.neighbours(ctx, engine)
	if err != nil {
		return err
	}
	return m.sweep(ctx, engine, found)
}

// sweep is sweepNames when it is known what there is, with naming locked.
func (m *machine) sweep(ctx context.Context, engine *moby.Client, found neighbours) error {
	if found.users > 0 || m.joining.Load() > 0 {
		return nil
	}
	if found.server != nil {
		if err := removeContainer(ctx, engine, found.server.ID); err != nil && !errdefs.IsNotFound(err) {
			return err
		}
	}
	_, err := engine.NetworkRemove(ctx, m.client.networkOf(ctx), moby.NetworkRemoveOptions{})
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}
