package machines

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// cluster is the machines of a namespace, as a client. Those that can't even be tried are unknown, too.
type cluster struct {
	*docker.Client
	// object returns the Machine of a name, or nil.
	object func(name string) *v1alpha1.Machine

	mu sync.RWMutex
	// machines are those that the client has.
	machines map[string]docker.Machine
	// faulty are the others, with the reasons.
	faulty map[string]api.Machine
	// waiting are the services that have no machine because of plans that are being carried out.
	waiting map[string]bool
	// touched are the services for which plans were begun that do something on a machine, by machines: statuses that say so may be late.
	touched map[string]map[string]bool
}

// touch remembers that a plan for a service does something on machines.
func (c *cluster) touch(service string, machines []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.touched == nil {
		c.touched = map[string]map[string]bool{}
	}
	for _, m := range machines {
		if c.touched[m] == nil {
			c.touched[m] = map[string]bool{}
		}
		c.touched[m][service] = true
	}
}

// touches tells whether a plan for a service was begun that does something on a machine.
func (c *cluster) touches(service, machine string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.touched[machine][service]
}

// forget forgets a service that is gone.
func (c *cluster) forget(service string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, service)
	for _, services := range c.touched {
		delete(services, service)
	}
}

// wait has a service looked at again when a plan ends.
func (c *cluster) wait(service string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = map[string]bool{}
	}
	c.waiting[service] = true
}

// waiters returns the services that wait for the end of a plan, and forgets them.
func (c *cluster) waiters() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := slices.Sorted(maps.Keys(c.waiting))
	c.waiting = nil
	return waiting
}

// set says which machines there are now, and which can't be tried, to which it adds those that the client does not take. It returns
// the names of those that are gone, or that can't be tried for another reason than before.
func (c *cluster) set(machines map[string]docker.Machine, faulty map[string]api.Machine) (changed []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, had := c.faulty, c.machines
	c.faulty = faulty
	// One after the other, so that one with a fault does not hold up the others.
	kept := maps.Clone(c.machines)
	maps.DeleteFunc(kept, func(name string, _ docker.Machine) bool {
		_, still := machines[name]
		return !still
	})
	_ = c.try(kept) // a part of what the client took before
	for _, name := range slices.Sorted(maps.Keys(machines)) {
		next := maps.Clone(c.machines)
		next[name] = machines[name]
		if err := c.try(next); err != nil {
			delete(next, name)
			_ = c.try(next)
			c.faulty[name] = unknown(machines[name], err)
		}
	}
	for name := range had {
		if _, still := c.machines[name]; !still {
			changed = append(changed, name)
		}
	}
	for _, names := range []map[string]api.Machine{before, c.faulty} {
		for name := range names {
			if before[name].Reason != c.faulty[name].Reason {
				changed = append(changed, name)
			}
		}
	}
	slices.Sort(changed)
	return slices.Compact(changed)
}

// endpoint returns how the client reaches a machine, if it has it and tries to.
func (c *cluster) endpoint(name string) (docker.Endpoint, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	m, ok := c.machines[name]
	return m.Endpoint, ok && !m.Gone
}

// try gives the client other machines, if it takes them.
func (c *cluster) try(machines map[string]docker.Machine) error {
	if err := c.SetMachines(slices.Collect(maps.Values(machines))); err != nil {
		return err
	}
	c.machines = machines
	return nil
}

// unknown is a machine that can't be tried.
func unknown(m docker.Machine, reason error) api.Machine {
	return api.Machine{ID: m.ID, Name: m.Name, Labels: m.Labels, Ingress: m.Ingress != nil, MeshAddress: m.MeshAddress, State: api.MachineUnknown, Reason: reason.Error()}
}

// ListMachines implements api.MachineClient.
func (c *cluster) ListMachines(ctx context.Context) ([]api.Machine, error) {
	machines, err := c.Client.ListMachines(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.RLock()
	machines = append(machines, slices.Collect(maps.Values(c.faulty))...)
	c.mu.RUnlock()
	for i := range machines {
		if m := c.object(machines[i].Name); m != nil {
			machines[i].Unschedulable, machines[i].Drain = intakeOf(m)
		}
	}
	return machines, nil
}

// intakeOf says why a Machine takes no new containers, and whether those that it has should go.
func intakeOf(m *v1alpha1.Machine) (unschedulable string, drain bool) {
	switch {
	case m.DeletionTimestamp != nil:
		return "it is being deleted", true
	case m.Spec.Unschedulable:
		return "its spec.unschedulable is true", false
	}
	return "", false
}

// engineState is what is known of a machine.
type engineState struct {
	docker.Status
	// machine is what is on it. It is nil for a machine that was not taken note of yet.
	machine *scheduler.Machine
	// owner is whose the containers of services are.
	owner api.Ownership
	// planned are the services whose plans do something on it now.
	planned []string
}

// look returns what is known of a machine, and what is on it.
func (c *cluster) look(ctx context.Context, name string) (*engineState, error) {
	status, _ := c.Status(name)
	machines, err := c.ListMachines(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at machine %s: %w", name, err)
	}
	i := slices.IndexFunc(machines, func(m api.Machine) bool { return m.ID == name })
	if i < 0 {
		return &engineState{}, nil
	}
	state, err := scheduler.Inspect(ctx, &only{c, machines[i]})
	if err != nil {
		return nil, err
	}
	if now, ok := c.Status(name); ok {
		status = now
	}
	return &engineState{Status: status, machine: state.Machines[0], owner: state.Owner}, nil
}

// only is a client that sees one machine.
type only struct {
	api.MachineClient
	machine api.Machine
}

// ListMachines implements api.MachineClient.
func (o *only) ListMachines(context.Context) ([]api.Machine, error) {
	return []api.Machine{o.machine}, nil
}
