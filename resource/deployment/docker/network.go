package docker

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/network"
	moby "github.com/moby/moby/client"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// inherited are options of the engine's own network which only that one is given by the configuration of the engine.
var inherited = []string{"com.docker.network.bridge.host_binding_ipv4", "com.docker.network.driver.mtu"}

// shared is a network with names.
type shared struct {
	name string
	// server is the address of its server.
	server netip.Addr
}

// networksOf returns the name of the networks that whoever ctx says makes, and then those of the networks that it made under former names.
func (c *Client) networksOf(ctx context.Context) []string {
	var names []string
	own := api.OwnershipOf(ctx)
	for _, mark := range append([]identity.Mark{own.Mark}, own.Former...) {
		mark.Resource = ""
		if name := "operatorkit-" + mark.Hash("network", c.config.Cluster); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// networkName returns the name of the network on the machine of whoever ctx says, also if it is not there yet. One that was made under a
// former name is used for as long as it is there: what is on it goes on.
func (m *machine) networkName(ctx context.Context, engine *moby.Client) (string, error) {
	names := m.client.networksOf(ctx)
	if len(names) == 1 {
		return names[0], nil
	}
	list, err := engine.NetworkList(ctx, moby.NetworkListOptions{Filters: moby.Filters{}.Add("label", LabelNames)})
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if slices.ContainsFunc(list.Items, func(n network.Summary) bool { return n.Name == name }) {
			return name, nil
		}
	}
	return names[0], nil
}

// network returns the network, and makes it if it is not there.
func (m *machine) network(ctx context.Context, engine *moby.Client) (shared, error) {
	name, err := m.networkName(ctx, engine)
	if err != nil {
		return shared{}, err
	}
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
