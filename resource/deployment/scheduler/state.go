package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// inspections is how many machines are inspected at once.
const inspections = 32

// Client sees machines.
type Client interface {
	api.MachineClient
}

// ClusterState is what is on the machines of a cluster at one time. It is safe for concurrent use as long as nobody changes it.
type ClusterState struct {
	// Machines come in any order.
	Machines []*Machine
	// Owner is whose services it is about: those of others hold their ports and volumes, and are left alone.
	Owner api.Ownership
	// Single are the services that are to have volumes and are not global, by the names of the volumes, as far as the client knows
	// (VolumePlanner).
	Single map[string]string

	names nameIndex
}

// Machine is a machine and what is on it.
type Machine struct {
	api.Machine
	// Inventory is what is on it. For a machine that is unknown it is empty, which says nothing.
	Inventory api.Inventory
	// Coming is what plans that are carried out now will put there, or may bring back.
	Coming api.Inventory
	// Refused are ports that the engine did not give, although nobody is seen to hold them.
	Refused []api.PortSpec
}

// Follower is a client that hears of what happens on its machines.
type Follower interface {
	// Unchanged tells whether it has heard of nothing that has happened on a machine since it looked, which returned the inventory, and
	// would have heard of it.
	Unchanged(machineID string, seen *api.Inventory) bool
}

// VolumePlanner is a client that knows of services which are to be on its machines.
type VolumePlanner interface {
	// SingleVolumes returns the services that are to have volumes and are not global, by the names of the volumes.
	SingleVolumes(ctx context.Context) (map[string]string, error)
}

// Inspected is a client that has a state already, which Inspect returns.
type Inspected interface {
	ClusterState() *ClusterState
}

// Inspect asks for what is on all machines, for the owner that ctx says (api.OwnershipOf), and what is about to be (Reserver). One that
// does not answer is unknown, with the error as the reason; it is an error only when the list of machines can't be had, or the context
// ends.
func Inspect(ctx context.Context, cli Client) (*ClusterState, error) {
	return InspectFor(ctx, cli, nil, nil)
}

// InspectFor is Inspect for the plan that has a reservation: what it is about to take itself is not there. Machines on which nothing has
// happened since they were seen, as far as the client hears of it (Follower), are not asked again.
func InspectFor(ctx context.Context, cli Client, own *Reservation, seen *ClusterState) (*ClusterState, error) {
	if inspected, ok := cli.(Inspected); ok {
		return inspected.ClusterState(), nil
	}
	// Before the machines: what is released after this is there when they are looked at.
	coming := ReservationsOf(cli).now(own)
	machines, err := cli.ListMachines(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the machines: %w", err)
	}
	state := &ClusterState{Machines: make([]*Machine, len(machines)), Owner: api.OwnershipOf(ctx)}
	if planner, ok := cli.(VolumePlanner); ok {
		if state.Single, err = planner.SingleVolumes(ctx); err != nil {
			return nil, fmt.Errorf("look which services are to have volumes: %w", err)
		}
	}
	var group errgroup.Group
	group.SetLimit(inspections)
	for i, m := range machines {
		state.Machines[i] = &Machine{Machine: m}
		if m.State != api.MachineAvailable && m.State != "" {
			continue
		}
		if was := seen.stillSo(cli, m.ID); was != nil {
			state.Machines[i].State, state.Machines[i].Inventory = api.MachineAvailable, *was
			continue
		}
		group.Go(func() error {
			state.Machines[i].inspect(ctx, cli)
			return nil
		})
	}
	_ = group.Wait()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("inspect the machines: %w", context.Cause(ctx))
	}
	state.put(coming)
	return state, nil
}

// stillSo returns what is on a machine if nothing has happened there since.
func (s *ClusterState) stillSo(cli Client, machineID string) *api.Inventory {
	follower, ok := cli.(Follower)
	if !ok || s == nil {
		return nil
	}
	for _, m := range s.Machines {
		if m.ID == machineID && m.Available() && follower.Unchanged(machineID, &m.Inventory) {
			return &m.Inventory
		}
	}
	return nil
}

func (m *Machine) inspect(ctx context.Context, cli Client) {
	inventory, err := cli.InspectMachine(ctx, m.ID)
	if err != nil {
		m.State, m.Reason = api.MachineUnknown, err.Error()
		return
	}
	m.State, m.Inventory = api.MachineAvailable, inventory
}

// Available tells whether the machine can be seen.
func (m *Machine) Available() bool {
	return m.State == api.MachineAvailable || m.State == ""
}

// Unknown tells whether the machine can't be seen, and may come back.
func (m *Machine) Unknown() bool {
	return !m.Available() && m.State != api.MachineGone
}

// Blind tells whether nothing is known of what is on the machine.
func (m *Machine) Blind() bool {
	return m.Unknown() && m.LastSeen == nil
}

// Owns tells whether a container belongs to a service of the owner.
func (s *ClusterState) Owns(service string, c *api.Container) bool {
	return c.ServiceName == service && s.Owner.Owns(c.Owner)
}

// HasService tells whether containers of a service of a name are, or are about to be, on the machines, whosever it is, or else on which
// machines they may be because nothing is known of them.
func (s *ClusterState) HasService(name string) (has bool, blind []string) {
	of := func(c api.Container) bool { return c.ServiceName == name }
	for _, m := range s.sorted() {
		if m.Blind() && !m.Untouched {
			blind = append(blind, m.Name)
		}
		has = has || slices.ContainsFunc(m.Inventory.Containers, of) || slices.ContainsFunc(m.Coming.Containers, of) ||
			m.Unknown() && m.LastSeen != nil && slices.ContainsFunc(m.LastSeen.Containers, of)
	}
	if has {
		blind = nil
	}
	return has, blind
}

// sorted returns the machines by name.
func (s *ClusterState) sorted() []*Machine {
	return slices.SortedFunc(slices.Values(s.Machines), func(a, b *Machine) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
}

// nameIndex knows the names of machines and containers.
type nameIndex struct {
	once       sync.Once
	machines   map[string]string
	containers map[string]string
}

func (s *ClusterState) index() *nameIndex {
	s.names.once.Do(func() {
		s.names.machines, s.names.containers = map[string]string{}, map[string]string{}
		for _, m := range s.Machines {
			s.names.machines[m.ID] = m.Name
			for i := range m.Inventory.Containers {
				s.names.containers[m.Inventory.Containers[i].ID] = m.Inventory.Containers[i].Name
			}
		}
	})
	return &s.names
}

// MachineName returns the name of a machine, or its ID if it is not known.
func (s *ClusterState) MachineName(machineID string) string {
	return cmp.Or(s.index().machines[machineID], machineID)
}

// ContainerName returns the name of a container, or its ID if it is not known.
func (s *ClusterState) ContainerName(containerID string) string {
	return cmp.Or(s.index().containers[containerID], containerID)
}
