package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	moby "github.com/moby/moby/client"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/names"
)

// Names are a network on each machine that the containers of a cluster share, on which they reach each other by the names of their
// services: http://api:8080. A name leads to those containers of the service on the machine that work, and an update leaves no gap: a
// container that works is led to before the one whose place it takes is not, and none is stopped that is led to. Where none works, ports in
// mode ingress of the service on other machines are reached by the name, through the proxies (Ingress, Machine.MeshAddress).
//
// The network is made with the first container and goes with the last one, also when its owner has another name by then. On it is a small
// DNS server, which this client makes and tells what to answer (package names). Pre-deploy hooks are on the network too; nobody is led to
// them. Containers that were made before there were Names are not on it: they are once they are made anew.
type Names struct {
	// Image has the program of package names. A server of another image runs until this one is on the machine. Required.
	Image string
	// Command are the arguments of its entrypoint. Default: those of the image.
	Command []string
}

// LabelNames is on networks with names and on their servers, and has the name of the network.
const LabelNames = labelPrefix + "names"

// LabelNamesImage is on such servers, and has the image and the command that they are made of.
const LabelNamesImage = labelPrefix + "names-image"

// namesSuffix is what the name of such a server has after that of its network.
const namesSuffix = "-names"

// leaveTime is how long a container is not stopped yet that is not led to any more: for those who have just asked for its address.
const leaveTime = time.Second

// join makes sure that there are the network for a new container, its server, and the proxy if the container needs one. The caller calls
// done when the container is there. What fails is api.ErrUnprepared.
func (m *machine) join(
	ctx context.Context, engine *moby.Client, spec *api.ServiceSpec, host *container.HostConfig,
) (networking *network.NetworkingConfig, done func(), err error) {
	if m.client.config.Names == nil || host.NetworkMode != "" {
		return nil, func() {}, nil
	}
	m.naming.Lock()
	defer m.naming.Unlock()
	m.joining.Add(1)
	done = func() { m.joining.Add(-1) }
	at, err := m.network(ctx, engine)
	if err == nil {
		err = unlessKept(m.serve(ctx, engine, at))
	}
	if err != nil {
		err = fmt.Errorf("make the network for names: %w", err)
	} else {
		err = unlessKept(m.frontFor(ctx, engine, spec, at))
	}
	if err != nil {
		done()
		return nil, nil, fmt.Errorf("%w: %w", api.ErrUnprepared, err)
	}
	host.NetworkMode, host.DNS = container.NetworkMode(at.name), []netip.Addr{at.server}
	return &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{at.name: {}}}, done, nil
}

// frontFor makes sure that the proxy runs if a container that is about to come needs it. It is called with naming locked.
func (m *machine) frontFor(ctx context.Context, engine *moby.Client, spec *api.ServiceSpec, at shared) error {
	if !m.reached() {
		return nil
	}
	needed := len(spec.IngressPorts()) > 0
	if !needed {
		found, err := m.survey(ctx, engine)
		if err != nil {
			return err
		}
		needed = len(found.named) > 0
	}
	if !needed {
		return nil
	}
	return m.front(ctx, engine, at)
}

// serve makes sure that the server of a network runs.
func (m *machine) serve(ctx context.Context, engine *moby.Client, at shared) error {
	config := m.client.config.Names
	return m.ensure(ctx, engine, aide{
		name: at.name + namesSuffix, what: "the server of names", image: config.Image, made: LabelNamesImage,
		of:      strings.Join(append([]string{config.Image}, config.Command...), " "),
		labels:  map[string]string{LabelNames: at.name},
		config:  container.Config{Cmd: config.Command},
		address: network.EndpointSettings{IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: at.server}},
		// It answers with what is so from the beginning on.
		prepare: func(string) error { return m.lead(ctx, engine) },
	}, at)
}

// UpdateNames makes the names on a machine lead to the containers that work there now, of the services of whoever ctx says, and removes
// configs of which there is no container any more, also without Names. Those who change containers by this client need not call it: it is
// for what happens by itself, and for what was cut off.
func (c *Client) UpdateNames(ctx context.Context, machineID string) error {
	m, err := c.machine(machineID)
	if err != nil {
		return err
	}
	err = m.do(ctx, m.sweepConfigs)
	if c.config.Names == nil {
		return err
	}
	err = errors.Join(err, m.do(ctx, m.settle))
	m.spread(ctx)
	return err
}

// settle is UpdateNames without telling other machines.
func (m *machine) settle(ctx context.Context, engine *moby.Client) error {
	return errors.Join(m.settleNames(ctx, engine), m.direct(ctx, engine))
}

// settleNames is settle without the configuration of the proxy.
func (m *machine) settleNames(ctx context.Context, engine *moby.Client) error {
	m.naming.Lock()
	defer m.naming.Unlock()
	found, err := m.survey(ctx, engine)
	switch {
	case err != nil || found.server == nil && found.proxy == nil && !m.isUsed(&found):
		return err
	case !m.isUsed(&found):
		return m.sweep(ctx, engine, found)
	}
	at, err := m.network(ctx, engine)
	if err != nil {
		return err
	}
	// They may have been taken away, or have another image by now. Where that can't be had the ones before go on, and are told what is so.
	err = m.serve(ctx, engine, at)
	if m.needsProxy(&found) {
		err = errors.Join(err, m.front(ctx, engine, at))
	} else {
		err = errors.Join(err, m.dropProxy(ctx, engine, found))
	}
	return errors.Join(err, m.lead(ctx, engine))
}

// isUsed tells whether somebody needs the network.
func (m *machine) isUsed(found *neighbours) bool { return found.users > 0 || m.needsProxy(found) }

// needsProxy tells whether there is something to serve for a proxy.
func (m *machine) needsProxy(found *neighbours) bool {
	return len(found.routes) > 0 || m.fronts() && len(found.elsewhere) > 0 || found.users > 0 && len(found.named) > 0
}

// neighbours are what is on a network.
type neighbours struct {
	// network is its name.
	network string
	// server is nil without one.
	server *container.Summary
	// coming tells that containers were about to come before it was looked: they may be there by now, and not be among those that are.
	coming bool
	// users is how many containers of services there are, and records say where names lead.
	users   int
	records names.Records
	// led are the containers that names lead to.
	led map[string]bool
	// proxy is nil without one, and routes are what it leads to where on this machine.
	proxy  *container.Summary
	routes routes
	// own is what there is for other machines, others what these have, by their IDs, elsewhere what that is where, and named what of it is
	// reached by the name of its service. They are empty on machines on which ports in mode ingress are not reached.
	own       *offer
	others    map[string]*offer
	elsewhere routes
	named     map[target]bool
}

// neighbours returns what is on the network of whoever ctx says.
func (m *machine) neighbours(ctx context.Context, engine *moby.Client) (neighbours, error) {
	c := m.client
	at, err := m.networkName(ctx, engine)
	if err != nil {
		return neighbours{}, err
	}
	found := neighbours{
		network: at, coming: m.joining.Load() > 0, records: names.Records{}, led: map[string]bool{}, routes: routes{}, elsewhere: routes{},
		named: map[target]bool{},
	}
	list, err := engine.ContainerList(ctx, moby.ContainerListOptions{All: true, Filters: moby.Filters{}.Add("label", LabelCluster+"="+c.config.Cluster)})
	if err != nil {
		return found, err
	}
	for i := range list.Items {
		item := &list.Items[i]
		if isAide(item, LabelNames, at, namesSuffix) {
			found.server = item
			continue
		}
		if isAide(item, LabelIngress, at, ingressSuffix) {
			found.proxy = item
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
		address := item.NetworkSettings.Networks[at].IPAddress
		found.led[item.ID] = is.Ready() && address.IsValid() && !m.isLeaving(item.ID)
		for _, name := range append(found.routes.add(m.portsOf(item), is.ServiceName), is.ServiceName) {
			// The name of a service without a container that works is its name all the same.
			addresses := found.records[name]
			if found.led[item.ID] {
				addresses = append(addresses, address)
			}
			slices.SortFunc(addresses, netip.Addr.Compare)
			found.records[name] = addresses
		}
	}
	return found, nil
}

// survey is neighbours, with what the proxy has to know of other machines.
func (m *machine) survey(ctx context.Context, engine *moby.Client) (neighbours, error) {
	found, err := m.neighbours(ctx, engine)
	if err == nil && m.reached() {
		err = m.see(ctx, engine, &found)
	}
	return found, err
}

// lead writes the records for the server, unless it has them. It is called with naming locked.
func (m *machine) lead(ctx context.Context, engine *moby.Client) error {
	found, err := m.survey(ctx, engine)
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
	if err := writeFile(ctx, engine, found.server.ID, names.File, content); err != nil {
		return fmt.Errorf("tell the server of names: %w", err)
	}
	return nil
}

// recordsIn returns what a server answers with, or nil for one that was not told yet.
func recordsIn(ctx context.Context, engine *moby.Client, server string) (names.Records, error) {
	text, err := readFile(ctx, engine, server, names.File)
	if err != nil || text == nil {
		return nil, err
	}
	return names.Decode(text), nil
}

// announce has the proxy know of a container that has just been made, before any that it takes the place of is stopped: a proxy that is
// told something new waits for requests that it has begun with.
func (m *machine) announce(ctx context.Context, engine *moby.Client, spec *api.ServiceSpec) error {
	if !m.reached() || len(spec.IngressPorts()) == 0 {
		return nil
	}
	return m.arrive(ctx, engine)
}

// arrive has names lead to a container that has come to work. What fails is api.ErrUnprepared.
func (m *machine) arrive(ctx context.Context, engine *moby.Client) error {
	if m.client.config.Names == nil {
		return nil
	}
	m.naming.Lock()
	err := m.lead(ctx, engine)
	m.naming.Unlock()
	err = errors.Join(err, m.direct(ctx, engine))
	m.spread(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", api.ErrUnprepared, err)
	}
	return nil
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
	m.spread(ctx)
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

// sweepNames removes the network, its server and the proxy when no container of a service is on it any more, and is about to be. While
// there are some the proxy forgets those that are gone.
func (m *machine) sweepNames(ctx context.Context, engine *moby.Client) error {
	if m.client.config.Names == nil {
		return nil
	}
	m.naming.Lock()
	found, err := m.survey(ctx, engine)
	if err == nil {
		err = m.sweep(ctx, engine, found)
	}
	m.naming.Unlock()
	err = errors.Join(err, m.direct(ctx, engine))
	m.spread(ctx)
	return err
}

// sweep is sweepNames when it is known what there is, with naming locked.
func (m *machine) sweep(ctx context.Context, engine *moby.Client, found neighbours) error {
	if err := m.dropProxy(ctx, engine, found); err != nil || m.isUsed(&found) || found.coming {
		return err
	}
	if found.server != nil {
		if err := removeContainer(ctx, engine, found.server.ID); err != nil && !errdefs.IsNotFound(err) {
			return err
		}
	}
	_, err := engine.NetworkRemove(ctx, found.network, moby.NetworkRemoveOptions{})
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}
