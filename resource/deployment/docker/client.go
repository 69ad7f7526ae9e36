package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

var (
	// ErrUnreachable is a machine that does not answer, to be found with errors.Is. It was not asked, or it is not known whether
	// it has done what it was asked for.
	ErrUnreachable = errors.New("the machine does not answer")
	// ErrClosed is a client that was closed.
	ErrClosed = errors.New("the client is closed")
)

// Client sees and changes machines with Docker engines. It implements deployment.Client, and is safe for concurrent use. Make one
// with New, and end it with Close.
type Client struct {
	config Config

	mu       sync.RWMutex
	closed   bool
	machines map[string]*machine
	// engines are the machines by the IDs of their engines.
	engines map[string]string
	// offers are what machines have for the proxies of others, as far as it is known.
	offers         map[offerKey]*offer
	subscribers    map[int]func(Notice)
	nextSubscriber int

	// running counts the goroutines of machines.
	running sync.WaitGroup

	reservations scheduler.Reservations
	// clock counts what happens on machines.
	clock atomic.Int64
}

// Reservations implements scheduler.Reserver: those who plan with this client see what plans take that it carries out.
func (c *Client) Reservations() *scheduler.Reservations { return &c.reservations }

// New returns a client that connects to its machines. It does not wait for them: what is asked of a machine before it has
// answered, or has not in Config.ConnectTimeout, is held until then.
func New(config Config) (*Client, error) {
	config.setDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	c := &Client{
		config: config, machines: map[string]*machine{}, engines: map[string]string{}, offers: map[offerKey]*offer{}, subscribers: map[int]func(Notice){},
	}
	if err := c.SetMachines(config.Machines); err != nil {
		return nil, err
	}
	return c, nil
}

// SetMachines says which machines there are now. Those that are as before stay connected; those whose endpoint is another one are
// connected to again, with what was seen last; those that are not there any more are forgotten. With any fault in it, all stays as
// it was.
func (c *Client) SetMachines(machines []Machine) error {
	machines, err := withDefaults(machines)
	if err != nil {
		return err
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return ErrClosed
	}
	before := c.machines
	c.machines = make(map[string]*machine, len(machines))
	var changed []string
	for _, spec := range machines {
		m := before[spec.ID]
		delete(before, spec.ID)
		if m == nil || !reflect.DeepEqual(m.spec(), spec) {
			changed = append(changed, spec.ID)
			m = m.become(c, spec)
		}
		c.machines[spec.ID] = m
	}
	for id, m := range before {
		m.stop(errRemoved)
		c.forgetEngine(id)
		changed = append(changed, id)
	}
	c.mu.Unlock()
	for _, id := range changed {
		c.notify(Notice{MachineID: id})
	}
	return nil
}

// Close ends all connections, and waits for their goroutines. What is under way fails with ErrClosed.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	for _, m := range c.machines {
		m.stop(ErrClosed)
	}
	c.mu.Unlock()
	c.running.Wait()
	return nil
}

var errRemoved = errors.New("the machine was taken out of the configuration")

// machine returns a machine by its ID.
func (c *Client) machine(id string) (*machine, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	m, ok := c.machines[id]
	switch {
	case c.closed:
		return nil, ErrClosed
	case !ok:
		return nil, fmt.Errorf("machine %q: %w", id, api.ErrNotFound)
	}
	return m, nil
}

// all returns the machines by name.
func (c *Client) all() ([]*machine, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return nil, ErrClosed
	}
	return slices.SortedFunc(maps.Values(c.machines), func(a, b *machine) int {
		return cmp.Compare(a.spec().Name, b.spec().Name)
	}), nil
}

// claimEngine makes an engine that of a machine, or returns the name of the machine of which it is. Of two machines, the one with
// the lesser ID has it.
func (c *Client) claimEngine(engine string, m *machine) (other string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := m.spec().ID
	if c.machines[id] != m {
		return ""
	}
	owner := c.engines[engine]
	if o := c.machines[owner]; o != nil && o != m {
		if owner < id {
			return o.spec().Name
		}
		o.recheck()
	}
	c.forgetEngine(id)
	c.engines[engine] = id
	return ""
}

// forgetEngine is called with the lock held.
func (c *Client) forgetEngine(machineID string) {
	maps.DeleteFunc(c.engines, func(_, owner string) bool { return owner == machineID })
}

// ListMachines implements api.MachineClient. Machines that were not connected to yet are waited for, as long as that may take.
func (c *Client) ListMachines(ctx context.Context) ([]api.Machine, error) {
	machines, err := c.all()
	if err != nil {
		return nil, err
	}
	out := make([]api.Machine, len(machines))
	for i, m := range machines {
		if err := m.decided(ctx); err != nil {
			return nil, err
		}
		out[i] = m.describe()
	}
	return out, nil
}

// GetDomain implements api.DNSClient.
func (c *Client) GetDomain(context.Context) (string, error) {
	if c.config.Domain == "" {
		return "", fmt.Errorf("the domain of the cluster: %w", api.ErrNotFound)
	}
	return c.config.Domain, nil
}
