package docker

import (
	"cmp"
	"context"
	"encoding/json"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"sync"

	moby "github.com/moby/moby/client"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

const (
	// meshPort is where proxies answer each other, at Machine.MeshAddress.
	meshPort = 8442
	// othersFile has the offers of other machines that a proxy knows of, for clients that have not seen these machines yet. It is where the
	// certificates are: a proxy that is made anew knows of them too.
	othersFile = dataFolder + "/operatorkit-ingress-others.json"
)

// offer is what a machine has for the proxies of others.
type offer struct {
	// Ports are those in mode ingress of its containers, and Ready the names of targets for which one works.
	Ports []offeredPort
	Ready []string
	// Root is the authority of its proxy, in PEM, and Proxy that one's ID. They are empty before it has one.
	Root  []byte
	Proxy string
}

// offeredPort is a port in mode ingress of a service.
type offeredPort struct {
	Protocol      api.Protocol
	Host, Path    string
	Service       string
	ContainerPort uint16
}

// reached tells whether ports in mode ingress are reached on the machine, through its own proxy or through those of others.
func (m *machine) reached() bool {
	spec := m.spec()
	return m.client.config.Ingress != nil && (spec.Ingress != nil || spec.MeshAddress != "")
}

// offerOf returns what the machine has for others.
func (m *machine) offerOf(ctx context.Context, engine *moby.Client, found *neighbours) (*offer, error) {
	o := &offer{}
	for at, targets := range found.routes {
		for to := range targets {
			o.Ports = append(o.Ports, offeredPort{at.protocol, at.host, at.path, to.service, to.port})
			if name := to.name(); len(found.records[name]) > 0 && !slices.Contains(o.Ready, name) {
				o.Ready = append(o.Ready, name)
			}
		}
	}
	slices.SortFunc(o.Ports, func(a, b offeredPort) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Service, b.Service), cmp.Compare(a.ContainerPort, b.ContainerPort))
	})
	slices.Sort(o.Ready)
	if found.proxy == nil {
		return o, nil
	}
	o.Proxy = found.proxy.ID
	if known := m.client.offered(ctx, m.spec().ID); known != nil && known.Proxy == o.Proxy {
		o.Root = known.Root
	}
	var err error
	if o.Root == nil {
		o.Root, err = readRoot(ctx, engine, o.Proxy)
	}
	return o, err
}

func (p offeredPort) place() place   { return place{p.Protocol, p.Host, p.Path} }
func (p offeredPort) target() target { return target{p.Service, p.ContainerPort} }

// offered returns what is known of a machine, or nil.
func (c *Client) offered(ctx context.Context, machineID string) *offer {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.offers[c.offerKey(ctx, machineID)]
}

// offerKey is a machine, and whose what it offers is, which the name of networks says that these make: on a machine it may be another one.
type offerKey struct{ network, machineID string }

func (c *Client) offerKey(ctx context.Context, machineID string) offerKey {
	return offerKey{c.networksOf(ctx)[0], machineID}
}

// offers remembers what the machine has for others, and that these are to be told if that is new.
func (m *machine) offers(ctx context.Context, o *offer) {
	c, key := m.client, m.client.offerKey(ctx, m.spec().ID)
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.offers[key]
	c.offers[key] = o
	if was == nil || !reflect.DeepEqual(was, o) {
		m.untold.Store(true)
	}
}

// others returns what the other machines have, by their IDs.
func (m *machine) others(ctx context.Context, engine *moby.Client, proxy string) (map[string]*offer, error) {
	all, err := m.client.all()
	if err != nil {
		return nil, err
	}
	out := map[string]*offer{}
	var remembered map[string]*offer
	for _, other := range all {
		id := other.spec().ID
		if other == m || !other.reached() || other.spec().Gone {
			continue
		}
		known := m.client.offered(ctx, id)
		if known == nil && other.isConnected() {
			err := other.do(ctx, func(ctx context.Context, engine *moby.Client) error {
				found, err := other.neighbours(ctx, engine)
				if err != nil {
					return err
				}
				seen, err := other.offerOf(ctx, engine, &found)
				if err != nil {
					return err
				}
				other.offers(ctx, seen)
				known = seen
				return nil
			})
			// What is wrong there is not this machine's: what is remembered counts.
			if err != nil && ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
		}
		if known == nil && proxy != "" {
			if remembered == nil {
				text, err := readFile(ctx, engine, proxy, othersFile)
				if err != nil {
					return nil, err
				}
				// What can't be read says nothing.
				_ = json.Unmarshal(text, &remembered)
			}
			known = remembered[id]
		}
		if known != nil {
			out[id] = known
		}
	}
	return out, nil
}

func (m *machine) isConnected() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.conn != nil
}

// see adds to what is on the network of the machine what the proxy has to know of other machines.
func (m *machine) see(ctx context.Context, engine *moby.Client, found *neighbours) error {
	own, err := m.offerOf(ctx, engine, found)
	if err != nil {
		return err
	}
	m.offers(ctx, own)
	if found.others, err = m.others(ctx, engine, own.Proxy); err != nil {
		return err
	}
	found.own = own
	for id, o := range found.others {
		address := m.client.meshAddress(id)
		if !address.IsValid() {
			continue
		}
		for _, p := range o.Ports {
			if found.elsewhere[p.place()] == nil {
				found.elsewhere[p.place()] = map[target]bool{}
			}
			found.elsewhere[p.place()][p.target()] = true
			if !slices.Contains(takenPorts, p.ContainerPort) {
				found.named[p.target()] = true
			}
			name := p.target().machines()
			addresses := found.records[name]
			if slices.Contains(o.Ready, p.target().name()) && !slices.Contains(addresses, address) {
				addresses = append(addresses, address)
			}
			// Without one on which it works it is a name all the same.
			found.records[name] = addresses
		}
	}
	for at := range found.elsewhere {
		for to := range found.routes[at] {
			if len(found.records[to.name()]) > 0 {
				found.records[to.machines()] = append(found.records[to.machines()], netip.AddrFrom4([4]byte{127, 0, 0, 1}))
			}
		}
	}
	found.nameOthers()
	for name, addresses := range found.records {
		slices.SortFunc(addresses, netip.Addr.Compare)
		found.records[name] = slices.Compact(addresses)
	}
	return nil
}

// nameOthers leads the names of services that don't work on this machine to its proxy, if they may work on others.
func (n *neighbours) nameOthers() {
	for to := range n.named {
		if len(n.records[to.service]) > 0 {
			continue
		}
		// Without a proxy it is a name all the same.
		n.records[to.service] = nil
		if n.proxy == nil || n.proxy.NetworkSettings == nil {
			continue
		}
		if at := n.proxy.NetworkSettings.Networks[n.network]; at != nil && at.IPAddress.IsValid() {
			n.records[to.service] = []netip.Addr{at.IPAddress}
		}
	}
}

// meshAddress returns the address at which the proxy of a machine answers others, if it has one.
func (c *Client) meshAddress(machineID string) netip.Addr {
	m, err := c.machine(machineID)
	if err != nil {
		return netip.Addr{}
	}
	// What is no address was refused before.
	address, _ := netip.ParseAddr(m.spec().MeshAddress)
	return address
}

// spread has the proxies and the names of other machines know of what has changed on this one, and on those that have changed for that. It
// is called without naming locked. Those that can't be told now are looked at by whoever hears of them next.
func (m *machine) spread(ctx context.Context) {
	if !m.reached() {
		return
	}
	all, err := m.client.all()
	if err != nil {
		return
	}
	for queue := []*machine{m}; len(queue) > 0; queue = queue[1:] {
		if !queue[0].untold.Swap(false) {
			continue
		}
		var telling sync.WaitGroup
		for _, other := range all {
			if other == queue[0] || !other.reached() || !other.isConnected() {
				continue
			}
			telling.Go(func() {
				if err := other.do(ctx, other.settle); err != nil {
					m.client.notify(Notice{MachineID: other.spec().ID})
				}
			})
			queue = append(queue, other)
		}
		telling.Wait()
	}
}

// machines returns the name of the machines on which a container works that has the port.
func (t target) machines() string { return strconv.Itoa(int(t.port)) + "." + t.service + ".machines" }

// remember writes what other machines have for who has not seen them yet, unless it is there.
func remember(ctx context.Context, engine *moby.Client, proxy string, others map[string]*offer) error {
	want, err := json.Marshal(others)
	if err != nil {
		return err
	}
	have, err := readFile(ctx, engine, proxy, othersFile)
	if err != nil || string(have) == string(want) || have == nil && len(others) == 0 {
		return err
	}
	return writeFile(ctx, engine, proxy, othersFile, want)
}
